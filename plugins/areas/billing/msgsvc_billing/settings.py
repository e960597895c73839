"""The section `[billing]` of the configuration."""

from typing import Annotated

from pydantic import Field, model_validator

from msgsvc_core.billing import Plan
from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.clock import DAY_MS

#: What each operation costs unless the configuration says otherwise (decision 0075).
PRICES = {"auth.confirmed": 1}


class PlanSettings(Section):
    """What an account gets by a plan. What is not given is unlimited."""

    monthly_credits: int | None = Field(
        None, ge=0, le=1_000_000_000, description="Credits of each month; a login costs one."
    )
    max_projects: int | None = Field(None, ge=1, description="Projects of the account.")
    max_members: int | None = Field(None, ge=1, description="Active members of each project.")
    csv_export: bool = Field(True, description="Whether CSV export is available.")


def _shipped() -> dict[str, PlanSettings]:
    """The plans of decision 0075, and an example of a larger one."""
    return {
        "free": PlanSettings(monthly_credits=100, max_projects=1, max_members=1, csv_export=False),
        "basic": PlanSettings(monthly_credits=700),
        "pro": PlanSettings(monthly_credits=10_000),
    }


class BillingSettings(Section):
    """What is sold, and for how much."""

    plans: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,32}$")], PlanSettings] = Field(
        default_factory=_shipped,
        description="Plans by name, `[billing.plans.<name>]`; they replace the default plans "
        "`free`, `basic` and `pro`.",
    )
    default_plan: str = Field("free", description="The plan of a new account.")
    operators_limited: bool = Field(
        False,
        description="Whether operator accounts are subject to their plan's limits on projects, "
        "members and exports; otherwise they have no limits.",
    )
    grace_days: float = Field(
        3,
        ge=0,
        le=365,
        description="Grace period: days for which paid operations continue after the last credit.",
    )
    prices: dict[str, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict,
        description="Credits for one `auth.confirmed` (1), `message.sent`, `otp.send`,"
        " `broadcast.message`, `ticket.reply` or `form.submission` (each 0); of other plugins' operations"
        " as well.",
    )

    @model_validator(mode="after")
    def _known_default(self) -> "BillingSettings":
        if self.default_plan not in self.plans:
            raise ValueError(f"default_plan: must be one of {', '.join(sorted(self.plans))}")
        return self

    @property
    def grace_ms(self) -> int:
        return round(self.grace_days * DAY_MS)

    def price(self, operation: str) -> int:
        """Credits for one of it; 0 for what nobody named."""
        return self.prices.get(operation, PRICES.get(operation, 0))

    def terms(self, plan: str) -> PlanSettings:
        """Of a plan that is not sold any more, those of the default plan."""
        return self.plans.get(plan, self.plans[self.default_plan])

    def plan(self, name: str) -> Plan:
        """What the core knows of a plan."""
        terms = self.terms(name)
        return Plan(name, terms.max_projects, terms.max_members, terms.csv_export)
