"""Templates of a provider's calls, and places in its answers."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from msgsvc_core.kernel.json import read_json

#: What a template may name: the number with its `+`, the number as digits alone, the text, the sender, the
#: message's key, and the secret of the settings.
PLACEHOLDERS = frozenset({"to", "digits", "text", "sender", "key", "secret"})

#: Bytes of a form: it has one text or receipt, and percent-decoding a megabyte keeps the event loop for a
#: tenth of a second.
MAX_FORM_BYTES = 65_536

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def placeholders_of(template: str) -> frozenset[str]:
    return frozenset(_PLACEHOLDER.findall(template))


def is_json(template: str) -> bool:
    """Whether a body's template is JSON: placeholders stand in its strings."""
    try:
        json.loads(template)
    except (ValueError, RecursionError):
        return False
    return True


def in_url(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: quote(values[found[1]], safe=""), template)


def in_json(template: str, values: Mapping[str, str]) -> Any:
    """The body as JSON. A placeholder is replaced within a string; nothing of a value is markup."""
    return _replaced(json.loads(template), values)


def in_form(template: str, values: Mapping[str, str]) -> dict[str, str]:
    """The fields of a form: lines of `name=value`."""
    pairs = (line.partition("=") for line in template.splitlines() if line.strip())
    return {name.strip(): _filled(value.strip(), values) for name, _, value in pairs}


def read_body(body: bytes, content_type: str) -> Any:
    """A call's or answer's body: JSON, or the fields of a form of at most `MAX_FORM_BYTES`. Raises
    `ValueError`, or `RecursionError`."""
    if "x-www-form-urlencoded" in content_type:
        if len(body) > MAX_FORM_BYTES:
            raise ValueError(f"a form of {len(body)} bytes")
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    return read_json(body)


def at(found: Any, place: str) -> str | None:
    """The text or number at a place such as `messages.0.id`; None if there is none."""
    for name in place.split("."):
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    if isinstance(found, str):
        return found
    # True is an int; it is no id.
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None


def _replaced(found: Any, values: Mapping[str, str]) -> Any:
    if isinstance(found, str):
        return _filled(found, values)
    if isinstance(found, list):
        return [_replaced(each, values) for each in found]
    if isinstance(found, dict):
        return {name: _replaced(each, values) for name, each in found.items()}
    return found


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
