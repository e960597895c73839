"""The data of agents' buttons: `~hd:<action>:<part>:...`, at most 64 bytes.

No part is secret: a press is authorised as an agent of the ticket's project.
"""

from msgsvc_core.channels.inbound import OWN_BUTTON, InboundContext
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.outgoing import Button

PREFIX = "hd:"


def button(label: str, action: str, *parts: object) -> Button:
    return Button(label, data=OWN_BUTTON + PREFIX + ":".join([action, *map(str, parts)]))


def read(ctx: InboundContext) -> tuple[str, list[str]]:
    """The action of a press, and the parts that came with it."""
    assert isinstance(ctx.update, ButtonPressed)
    action, *parts = ctx.update.data.removeprefix(OWN_BUTTON + PREFIX).split(":")
    return action, parts
