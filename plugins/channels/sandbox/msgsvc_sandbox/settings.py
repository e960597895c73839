"""What the configuration can say: `[sandbox]`, and each `[channels.<name>]` of this kind."""

from typing import Literal

from pydantic import Field

from msgsvc_core.config.settings import Section


class SandboxSettings(Section):
    """Who may use the messenger. Whoever may is anybody in it: it has no passwords."""

    pages: Literal["local", "everyone", "off"] = Field(
        "local",
        description="Who is served /sandbox: `local` is this machine and private networks.",
    )


class SandboxChannelSettings(Section):
    """One bot in the sandbox messenger."""

    title: str = Field(
        "",
        max_length=64,
        description="The bot's name as people see it; by default made of the channel's name.",
    )
