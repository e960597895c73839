"""What can be chosen, as lines of a box: `value`, `value | label`, or `value | English | Russian`.

A backslash before `|` or another backslash makes it a part of the text, and `\\n` is a new line in it; before
anything else it is only itself.
"""

import re
from collections.abc import Iterable
from typing import Any

from msgsvc_forms.fields import Option

_WRITTEN = {"\\": r"\\", "|": r"\|", "\n": r"\n"}
_READ = {written[1]: sign for sign, written in _WRITTEN.items()}


def to_lines(options: Iterable[str | Option]) -> str:
    """One on each line."""
    return "\n".join(map(_line, options))


def from_lines(text: str) -> list[Any]:
    """The options of a field's body; what is wrong with them, its rules say."""
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
        if sign == "|":
            parts.append("")
        else:
            parts[-1] += sign
    return [_read(part.strip()) for part in parts]


def _written(text: str) -> str:
    return re.sub(r"[\\|\n]", lambda found: _WRITTEN[found[0]], text)


def _read(text: str) -> str:
    return re.sub(r"\\([\\|n])", lambda found: _READ[found[1]], text)
