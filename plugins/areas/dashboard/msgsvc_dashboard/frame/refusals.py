"""Errors of services, in the language of the page's reader."""

from typing import TYPE_CHECKING

from msgsvc_core.kernel.errors import Refusal
from msgsvc_core.kernel.i18n import Translate, explained

if TYPE_CHECKING:
    from jinja2.runtime import Context


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: What fields of the API are called on pages.
FIELDS = {
    "attributes": _("Attributes"),
    "channel": _("Messenger"),
    "code": _("Code"),
    "email": _("Email"),
    "key": _("Key"),
    "lang": _("Language"),
    "name": _("Name"),
    "password": _("Password"),
    "permission": _("Permission"),
    "role": _("Role"),
    "status": _("Status"),
    "tags": _("Tags"),
    "template": _("Template"),
    "text": _("Text"),
    "timezone": _("Time zone"),
    "url": _("Address"),
}


def worded(refusal: Refusal | str, translate: Translate) -> str:
    """An error in the reader's language: each text by the catalogue of its package, fields by the labels
    of the pages. A string is a message of the area itself."""
    if isinstance(refusal, str):
        return translate(refusal)
    ours = translate[__name__]

    def label(field: str) -> str:
        # English pages call a field as the API does.
        name = FIELDS.get(field, field)
        translated = ours(name)
        return field if translated == name else translated

    return explained(refusal.findings, translate, label)


def in_page(context: "Context", refusal: Refusal | str) -> str:
    """The filter `worded` of templates."""
    return worded(refusal, context["_"])
