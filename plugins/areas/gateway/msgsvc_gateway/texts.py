"""Messages with codes of senders that leave the words to their provider."""

from msgsvc_core.kernel.i18n import Translate
from msgsvc_gateway.models import Purpose


def head(_: Translate, purpose: Purpose, project: str) -> str:
    """What a message is about."""
    return {
        "sign_in": _("Your code to sign in to {project}:", project=project),
        "register": _("Your code to register with {project}:", project=project),
        "forgot_password": _("Your code to reset your password at {project}:", project=project),
        "organization_invitation": _(
            "You are invited to an organization at {project}.", project=project
        ),
        "generic": _("Your code for {project}:", project=project),
        "user_permission_validation": _(
            "Your code to confirm a change of your account at {project}:", project=project
        ),
        "bind_new_identifier": _(
            "Your code to confirm your address at {project}:", project=project
        ),
        "mfa_verification": _("Your code to sign in to {project}:", project=project),
        "bind_mfa": _("Your code to set up two-step sign-in at {project}:", project=project),
    }[purpose]


def code_text(_: Translate, *, project: str, purpose: Purpose, code: str) -> str:
    """The code on a line of its own, easy to read and to copy."""
    parts = [head(_, purpose, project)]
    if code:
        parts += [code, _("Don't share it with anyone.")]
    return "\n\n".join(parts)


def link_label(_: Translate) -> str:
    """The button of a link for which the sender has no words."""
    return _("Open")
