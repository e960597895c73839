"""The events of broadcasts."""

from pydantic import Field

from msgsvc_broadcasts.models import BroadcastId
from msgsvc_broadcasts.variants import ChosenBy, Clicked, ClickedShare, Reason, VariantName
from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import Url
from msgsvc_core.events import EventSpec
from msgsvc_core.mailings.models import Failed, Sent, Skipped, Total, Unknown


class ComparedVariant(ResponseModel):
    """What had become of a variant."""

    name: VariantName
    sent: Sent
    failed: Failed
    clicked: Clicked
    clicked_share: ClickedShare


class WinnerChosen(ResponseModel):
    """Fields of `broadcast.winner_chosen`."""

    job_id: BroadcastId
    variant: VariantName
    by: ChosenBy
    reason: Reason | None = Field(
        description="Why it is this one, if clicks decided; null for a choice.",
        examples=["most_clicks"],
    )
    variants: list[ComparedVariant] = Field(description="What was compared.")


class BroadcastEnded(ResponseModel):
    """Fields of `broadcast.completed` and `broadcast.cancelled`."""

    job_id: BroadcastId
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total


class LinkClicked(ResponseModel):
    """Fields of `link.clicked`."""

    job_id: BroadcastId
    message_id: str | None = Field(
        description="Message that has the link; null if it is not known yet.",
        examples=[examples.MESSAGE_ID],
    )
    url: Url = Field(
        description="The page that the link leads to.", examples=[f"{examples.SITE_URL}/sale"]
    )


BROADCAST_EVENTS = (
    EventSpec(
        "broadcast.completed",
        "A broadcast is fully processed.",
        BroadcastEnded,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "broadcast.winner_chosen",
        "The winner of a broadcast's variants was chosen, and goes to the rest of the audience.",
        WinnerChosen,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "broadcast.cancelled",
        "A broadcast was cancelled, and none of its deliveries is in progress any more.",
        BroadcastEnded,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "link.clicked",
        "A recipient opened a link of a broadcast for the first time; only with `link_tracking`.",
        LinkClicked,
        group="people",
        title=lambda _, _data: _("Opened a link"),
    ),
)
