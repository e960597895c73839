"""Errors of services, in the language of the page's reader."""

from dataclasses import replace
from typing import TYPE_CHECKING

from msgsvc_core.kernel.errors import Finding, Refusal
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


#: Statuses within a refusal, such as "it is {status}".
STATUSES = frozenset(
    {
        _("active"),
        _("blocked"),
        _("cancelled"),
        _("collecting"),
        _("completed"),
        _("ended"),
        _("failed"),
        _("gone"),
        _("paused"),
        _("pending"),
        _("running"),
        _("scheduled"),
        _("sent"),
        _("skipped"),
        _("stopped"),
        _("unsubscribed"),
        _("waiting"),
    }
)


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

    def with_words(finding: Finding) -> Finding:
        status = finding.params.get("status")
        if status not in STATUSES:
            return finding
        return replace(finding, params={**finding.params, "status": ours(str(status))})

    return explained(map(with_words, refusal.findings), translate, label)


def faults_of(refusal: Refusal | str | None, name: str, translate: Translate) -> list[str]:
    """What is wrong with one field of a form, without its name; empty if nothing is."""
    if refusal is None or isinstance(refusal, str):
        return []
    at_field = [each for each in refusal.findings if each.path and each.path[-1] == name]
    return [explained([replace(each, path=())], translate) for each in at_field]


def faults(context: "Context", name: str) -> list[str]:
    """`{% for fault in faults("name") %}`: of the form that was refused, if it has that field."""
    page = context["page"]
    return faults_of(page.error, name, context["_"]) if name in page.form else []


def in_page(context: "Context", refusal: Refusal | str) -> str:
    """The filter `worded` of templates."""
    return worded(refusal, context["_"])
