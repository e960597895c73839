"""What the bot says: the question, and what becomes of its message."""

from msgsvc_core.channels import Button, OutgoingMessage
from msgsvc_core.texts import Translate


def question(_: Translate, project: str, *, yes_data: str, cancel_data: str) -> OutgoingMessage:
    """Asks whether to sign in to `project`."""
    yes = Button(_("Yes"), data=yes_data)
    cancel = Button(_("Cancel"), data=cancel_data)
    return OutgoingMessage(_("Sign in to {project}?", project=project), buttons=((yes, cancel),))


def confirmed(_: Translate, project: str, return_url: str | None) -> OutgoingMessage:
    """Takes the question's place after Yes. `return_url` hands the code to the site."""
    done = _("You are signed in to {project}.", project=project)
    if return_url is None:
        way_back = _("Go back to the page where you began.")
        return OutgoingMessage(f"{done} {way_back}")
    return OutgoingMessage(done, buttons=((Button(_("Return to the site"), url=return_url),),))


def denied(_: Translate, project: str) -> OutgoingMessage:
    """Takes the question's place after Cancel."""
    return OutgoingMessage(_("Cancelled. You are not signed in to {project}.", project=project))


def too_late(_: Translate) -> OutgoingMessage:
    """Takes the question's place when its answer can't count any more."""
    return OutgoingMessage(
        _("This request to sign in is no longer valid. Please begin again on the site.")
    )


def already(_: Translate) -> str:
    """A notice for who presses again after their own Yes."""
    return _("You are signed in already.")
