"""System messages, plain text only: names are user input."""

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.i18n import Translate


def acknowledged(_: Translate, project: str, number: int) -> OutgoingMessage:
    """For a user who opened a ticket by writing."""
    return OutgoingMessage(
        _(
            "Thank you, your message has reached {project}. Its number is {number}; the answer will"
            " come in this chat.",
            project=project,
            number=number,
        )
    )


def stranger(_: Translate) -> OutgoingMessage:
    """For a user who writes to a shared bot without a subscription."""
    return OutgoingMessage(
        _(
            "I can't tell yet who your message is for. Open a link from a site that works with this"
            " bot, and write again."
        )
    )


def has_left(_: Translate, project: str) -> OutgoingMessage:
    """For a user who has unsubscribed: no reply would reach them."""
    return OutgoingMessage(
        _(
            "You have unsubscribed from {project}, so no answer could reach you. Write /start to come"
            " back, and then your message again.",
            project=project,
        )
    )
