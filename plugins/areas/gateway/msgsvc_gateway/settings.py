"""The section `[gateway]` of the configuration."""

from pydantic import Field

from msgsvc_core.config.sections import Section


class GatewaySettings(Section):
    """Lifetimes and limits of messages that other servers send through gateways."""

    gateways_per_project: int = Field(20, ge=1, description="Gateways that a project may have.")
    requests_per_minute: int = Field(
        600, ge=1, description="Messages per gateway and minute, whoever they are for."
    )
    messages_per_hour: int = Field(
        10, ge=1, description="Messages to one phone number or email address per gateway and hour."
    )
    lifetime_s: int = Field(
        300,
        ge=30,
        le=3600,
        description="Seconds for which a message is tried on one channel after the other; codes do not"
        " live for long.",
    )
    again_within_s: int = Field(
        300,
        ge=0,
        le=3600,
        description="A message to somebody who got one within so many seconds begins with the next"
        " channel: they pressed Resend because the first did not arrive. 0 for never.",
    )
    max_body_bytes: int = Field(65536, ge=1024, description="Largest body that a sender may post.")
