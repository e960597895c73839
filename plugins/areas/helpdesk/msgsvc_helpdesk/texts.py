"""System messages, plain text only: names are user input."""

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.i18n import Translate


def acknowledged(_: Translate, project: str, number: int) -> OutgoingMessage:
    """For who opened a ticket by writing."""
    return OutgoingMessage(
        _(
            "Thank you, your message has reached {project}. Its number is {number}; the answer will"
            " come in this chat.",
            project=project,
            number=number,
        )
    )


def stranger(_: Translate) -> OutgoingMessage:
    """For a person who writes to a shared bot without being subscribed to a project."""
    return OutgoingMessage(
        _(
            "I can't tell yet who your message is for. Open a link from a site that works with this"
            " bot, and write again."
        )
    )


def has_left(_: Translate, project: str) -> OutgoingMessage:
    """For who unsubscribed: no answer would reach them."""
    return OutgoingMessage(
        _(
            "You have unsubscribed from {project}, so no answer could reach you. Write /start to come"
            " back, and then your message again.",
            project=project,
        )
    )
