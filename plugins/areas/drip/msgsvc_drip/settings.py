"""The section `[drip]` of the configuration."""

from pydantic import Field

from msgsvc_core.config.sections import Section


class DripSettings(Section):
    """Limits of chains, and how their steps are taken."""

    # Decision 0075.
    steps_per_chain: int = Field(50, ge=1, description="Steps per drip campaign.")
    chains_per_project: int = Field(100, ge=1, description="Drip campaigns per project.")
    look_s: float = Field(2.0, gt=0, le=60, description="Seconds between polls for due steps.")
    batch: int = Field(500, ge=1, le=1000, description="Due steps processed per transaction.")
    late_minutes: int = Field(
        60,
        ge=1,
        le=720,
        description="Minutes after its `at_local_time` within which a step still goes out; later, it"
        " waits for that time of the next day.",
    )
