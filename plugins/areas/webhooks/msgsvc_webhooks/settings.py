"""The section `[webhooks]`."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field, field_validator

from msgsvc_core.config.sections import OWN_USERS, LimitTitle, Section


class WebhookSettings(Section):
    """What an operator can change about webhooks."""

    # Decision 0075.
    endpoints_per_project: Annotated[int, LimitTitle(lambda _: _("Webhooks"))] = Field(
        5,
        ge=1,
        description="Webhook endpoints per project.",
        json_schema_extra={OWN_USERS: 50},
    )
    attempt_timeout_s: float = Field(
        10.0, gt=0, le=60, description="Seconds for one attempt, reading the answer included."
    )
    max_answer_bytes: int = Field(
        64 * 1024,
        ge=2048,
        description="Bytes of a response that are read before the connection is closed.",
    )
    # Decision 0075.
    retry_timeouts_and_throttling: bool = Field(
        False,
        description="Also retry after 408, 425 and 429; otherwise they end a delivery, as any 4xx "
        "does.",
        json_schema_extra={OWN_USERS: True},
    )
    # Decision 0075.
    disable_failing: bool = Field(
        False,
        description="Disable a webhook whose receiver answers 410, or that fails for"
        " `disable_after_days`; otherwise only its project does.",
        json_schema_extra={OWN_USERS: True},
    )
    disable_after_days: float = Field(
        5.0, gt=0, description="Days without a success before a failing webhook is disabled."
    )
    replay_events: int = Field(
        50_000, ge=1, description="Events that one replay goes through at most."
    )
    allow_http: bool = Field(False, description="Accept http:// endpoints in addition to https://.")
    allow_cidrs: tuple[str, ...] = Field(
        (), description="Non-public ranges that may be called, for development."
    )
    journal_days: int = Field(30, ge=2, description="Days for which deliveries can be looked up.")

    @field_validator("allow_cidrs")
    @classmethod
    def _are_ranges(cls, cidrs: tuple[str, ...]) -> tuple[str, ...]:
        for cidr in cidrs:
            ip_network(cidr)
        return cidrs
