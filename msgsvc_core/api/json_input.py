"""Parses JSON from untrusted clients (decision 0075)."""

import codecs
import json
import math
from typing import Any

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.validation_messages import shortened

#: Maximum nesting of arrays and objects.
MAX_DEPTH = 32

#: Maximum commas, colons and opening brackets of a body. A megabyte of `{},` would keep the event loop for
#: 0.13 s; 10,000 ids, or 500 messages with 50 values each, stay below.
MAX_MARKS = 100_000

#: Maximum names of an object, items of an array, and objects or arrays in one: each may be an error of its
#: own. A list of ids has 10,000, a batch 500 messages, unless the settings raise that.
MAX_NAMES, MAX_ITEMS, MAX_OBJECTS = 5_000, 20_000, 3_000

_INT64 = range(-(2**63), 2**63)


def parse_json(raw: bytes) -> Any:
    """The value in `raw`. Raises `ValidationFailed` for invalid JSON, and for values that the database
    can't store."""
    try:
        # Some programs begin with a byte order mark, which RFC 8259, section 8.1 lets a parser ignore.
        text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValidationFailed(
            "invalid UTF-8 at byte {position}", field="body", position=error.start
        ) from None
    marks = sum(map(raw.count, _MARKS))
    if marks > MAX_MARKS:
        raise ValidationFailed(
            "holds more than {limit} commas, colons and opening brackets",
            field="body",
            limit=MAX_MARKS,
        )
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
    if marks > MAX_ITEMS or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_shape(value)
    if "\\u" in text:
        _check_text(value)
    return value


#: What stands between values, and before them.
_MARKS = (b",", b":", b"{", b"[")

_TOO_DEEP = f"body: nested deeper than {MAX_DEPTH} levels"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(pairs) > MAX_NAMES:
        raise ValidationFailed(
            "an object has more than {limit} names", field="body", limit=MAX_NAMES
        )
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


def _check_shape(value: Any) -> None:
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        for each in level:
            _check_items(each)
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValidationFailed(_TOO_DEEP)


def _check_items(array: Any) -> None:
    """Raises `ValidationFailed` for an array that is longer than any request needs."""
    if len(array) <= MAX_OBJECTS or isinstance(array, dict):
        return
    objects = sum(isinstance(inner, dict | list) for inner in array)
    for count, limit in ((objects, MAX_OBJECTS), (len(array), MAX_ITEMS)):
        if count > limit:
            raise ValidationFailed(
                "an array has more than {limit} items", field="body", limit=limit
            )


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
