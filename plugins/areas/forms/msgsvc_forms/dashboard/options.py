"""Options as lines of a text area: `value`, `value | label`, or `value | English | Russian`."""

import re
from collections.abc import Iterable
from typing import Any

from msgsvc_core.dashboard.one_line import from_line, to_line
from msgsvc_forms.fields import Option

_APART = "|"


def to_lines(options: Iterable[str | Option]) -> str:
    """One option per line."""
    return "\n".join(map(_line, options))


def from_lines(text: str) -> list[Any]:
    """The options of a field's body, unvalidated."""
    return [_option(line) for line in text.split("\n") if line.strip()]


def _line(option: str | Option) -> str:
    if isinstance(option, str):
        return _written(option)
    label = option.label
    texts = [label] if isinstance(label, str) else [label.get("en", ""), label.get("ru", "")]
    return " | ".join(map(_written, [option.value, *texts]))


def _option(line: str) -> Any:
    value, *labels = _parts(line)
    if not labels:
        return value
    if len(labels) == 1:
        return {"value": value, "label": labels[0]}
    if len(labels) > 2:
        return {"value": value, "label": labels}
    by_lang = {lang: text for lang, text in zip(("en", "ru"), labels, strict=True) if text}
    return {"value": value, "label": by_lang or value}


def _parts(line: str) -> list[str]:
    parts = [""]
    for sign in re.findall(r"\\.|.", line):
        if sign == _APART:
            parts.append("")
        else:
            parts[-1] += sign
    return [from_line(part, apart=_APART) for part in parts]


def _written(text: str) -> str:
    return to_line(text, apart=_APART)
