"""What a client will learn and may do, in words for people."""

from collections.abc import Iterable

from msgsvc_core.kernel.i18n import Translate


def scope_texts(_: Translate, scopes: Iterable[str], project: str) -> list[str]:
    """A line for each scope that a person should know of."""
    texts = {
        "openid": _("Recognise you when you sign in again"),
        "profile": _("See your name, user name and language"),
        "email": _("See your email address"),
        "phone": _("See your phone number"),
        "offline_access": _("Keep access while you are away"),
        "notify": _("Let {project} send you messages", project=project),
    }
    wanted = set(scopes)
    return [text for scope, text in texts.items() if scope in wanted]
