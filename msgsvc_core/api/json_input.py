"""Parses JSON from untrusted clients (decision 0075)."""

import json
import math
from typing import Any

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.validation_messages import shortened

#: Maximum nesting of arrays and objects.
MAX_DEPTH = 32

_INT64 = range(-(2**63), 2**63)


def parse_json(raw: bytes) -> Any:
    """The value in `raw`. Raises `ValidationFailed` for invalid JSON, and for values that the database
    can't store."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValidationFailed(
            "invalid UTF-8 at byte {position}", field="body", position=error.start
        ) from None
    if not text.strip():
        raise ValidationFailed("is empty; send a JSON object, `{}` at the least", field="body")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValidationFailed(
            "broken JSON at line {line}, column {column}: {reason}",
            field="body",
            line=error.lineno,
            column=error.colno,
            reason=error.msg,
        ) from None
    except RecursionError:
        raise ValidationFailed(_TOO_DEEP) from None
    # Both walks are rarely needed; counting brackets and looking for escapes is cheap.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    if "\\u" in text:
        _check_text(value)
    return value


_TOO_DEEP = f"body: nested deeper than {MAX_DEPTH} levels"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        # `add` returns None, so only a repeated name is found.
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValidationFailed(
            "the name {name!r} stands twice in one object", field="body", name=shortened(name)
        )
    return found


def _integer(text: str) -> int:
    # Python raises ValueError for integers of thousands of digits.
    if len(text) > 20 or (value := int(text)) not in _INT64:
        raise ValidationFailed("an integer is beyond 64 bits", field="body")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValidationFailed("a number is beyond what a double holds", field="body")
    return value


def _constant(text: str) -> Any:
    raise ValidationFailed("{text} is not JSON", field="body", text=text)


def _check_depth(value: Any) -> None:
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValidationFailed(_TOO_DEEP)


def _check_text(value: Any) -> None:
    """Rejects what `\\u` escapes allow: NUL, and unpaired surrogates."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and not is_storable(item):
            raise ValidationFailed("a text holds NUL or half of a surrogate pair", field="body")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)


def is_storable(text: str) -> bool:
    """Whether both databases can store the text."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        # An unpaired surrogate: nothing else has no UTF-8.
        return False
    return True
