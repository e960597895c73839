"""Settings: `[sandbox]`, and `[channels.<name>]` of this kind."""

from typing import Literal

from pydantic import Field

from msgsvc_core.config.sections import Section


class SandboxSettings(Section):
    """Access to the messenger. It has no passwords: anyone with access can act as any person."""

    pages: Literal["local", "everyone", "off"] = Field(
        "local",
        description="Who can access /sandbox: `local` is this machine and private networks.",
    )


class SandboxChannelSettings(Section):
    """One bot in the sandbox messenger."""

    title: str = Field(
        "",
        max_length=64,
        description="The bot's name as people see it; by default derived from the channel's name.",
    )
