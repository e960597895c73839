"""System messages: the code, and why there is none."""

from math import ceil

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.i18n import Translate


def code_message(_: Translate, *, project: str, code: str, minutes: int) -> OutgoingMessage:
    """The code, on its own line: easy to read and to copy."""
    head = _("Your code for {project}:", project=project)
    foot = _("It is valid for {minutes} min. Don't share it with anyone.", minutes=minutes)
    return OutgoingMessage(f"{head}\n\n{code}\n\n{foot}")


def look_above(_: Translate, project: str) -> OutgoingMessage:
    """For a user who opens a link again after the code was sent."""
    return OutgoingMessage(
        _("Your code for {project} is already in this chat, just above.", project=project)
    )


def wait(_: Translate, seconds: int) -> OutgoingMessage:
    """For a user who opened a link before another code may be sent."""
    if seconds < 60:
        return OutgoingMessage(
            _("You just got a code. Open the link again in {seconds} s.", seconds=seconds)
        )
    return OutgoingMessage(
        _("You got too many codes. Try again in {minutes} min.", minutes=ceil(seconds / 60))
    )


def not_now(_: Translate, project: str) -> OutgoingMessage:
    """For a user who opened a link whose code can't be sent."""
    return OutgoingMessage(
        _("{project} can't send you a code at the moment. Please try later.", project=project)
    )
