"""The section `[scheduling]` of the configuration."""

from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.config.sections import OWN_USERS, LimitTitle, Section


class SchedulingSettings(Section):
    """How many may wait, and what becomes of a time at which the service was down."""

    # Decision 0075.
    open_records: Annotated[
        int, LimitTitle(lambda _: _("Scheduled and recurring messages that wait"))
    ] = Field(
        100,
        ge=1,
        description="Unfinished scheduled and recurring messages per project.",
        json_schema_extra={OWN_USERS: 10000},
    )
    missed: Literal["run_once", "skip"] = Field(
        "run_once",
        description="Handling of a time missed by more than `grace_minutes`: `run_once` sends once, "
        "late; `skip` sends nothing and emits `scheduled.skipped`.",
    )
    grace_minutes: int = Field(
        10,
        ge=1,
        le=1440,
        description="Minutes by which a message may be late without being missed.",
    )
    batch: int = Field(
        200,
        ge=1,
        le=1000,
        description="Messages to one subscriber each that are handed over in one transaction.",
    )
    kept_days: int = Field(30, ge=1, description="Days for which finished ones can be read.")
