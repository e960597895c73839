"""The URL of a form, and its honeypot field."""

from msgsvc_forms.definition import Definition
from msgsvc_forms.models import Form

#: Names of the field that people don't see: the first that the form does not ask for itself.
_HONEYPOTS = ("website", "homepage", "web_address")


def page_url(base_url: str, form: Form) -> str:
    """The URL of the hosted page, to which the form is submitted too."""
    return f"{base_url}/f/{form.form_id}"


def honeypot_of(definition: Definition) -> str:
    """The name of the honeypot field, which only bots fill in."""
    keys = {field.key for field in definition.fields}
    free = (name for name in _HONEYPOTS if name not in keys)
    return next(free, "z_" + "_".join(sorted(keys))[:40])
