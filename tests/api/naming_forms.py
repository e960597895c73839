"""Where the rules of a form name resources, for `tests/api/naming.py`."""

from collections.abc import Callable
from typing import Any

from tests.api.resources import Resources

_FIELD = {"key": "name", "type": "text", "label": "Name"}


def _beside(route: str, own: Resources) -> dict[str, Any]:
    """What a form is asked for beside its rules. Links tell whether others have its slug, so it is
    one of the asker's own."""
    if route == "update_form":
        return {}
    return {"slug": f"{own['slug']}-named", "title": "Form", "fields": [_FIELD]}


def _target(name: str, it: str, own: Resources) -> dict[str, Any]:
    """Where a form's rule leads: to who or what is named."""
    if name == "tag":
        return {"kind": "tag", "tag": it}
    if name == "tags":
        return {"kind": "ticket", "tags": [it]}
    whom = {name: it} if name != "channel" else {"external_id": own["external_id"], name: it}
    return {"kind": "subscriber", **whom}


#: A body for every field of a rule that names a resource.
FORM_BODIES: dict[str, Callable[[str, Resources], Any]] = {
    f"{route}.rules.to.{name}": lambda it, own, name=name, route=route: {
        **_beside(route, own),
        "rules": [{"to": _target(name, it, own)}],
    }
    for route in ("create_form", "update_form")
    for name in ("subscriber_id", "external_id", "channel", "tag", "tags")
}
