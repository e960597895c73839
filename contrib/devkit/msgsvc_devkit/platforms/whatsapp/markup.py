"""Reads a text as WhatsApp shows it.

The platform documents what the markup is (https://faq.whatsapp.com/539178204879377), not where it counts.
The fake follows what clients of others have found: a sign counts if it stands after a blank, punctuation,
another sign or at the beginning, and its closing one before anything but a letter or digit; backticks count
everywhere."""

import re

#: Text between three backticks, over several lines; and between one, in one line.
_CODE = re.compile(r"```(.+?)```|`([^`\n]+)`", re.DOTALL)

_SIGNS = {"*": "bold", "_": "italic", "~": "strikethrough"}

_STYLED = re.compile(
    r"""(?:(?<=[\s>*_~(\[{"'«.,:;!?/])|(?<![^\n]))([*_~])(?=\S)([^\n]*?\S)\1(?![^\W_])""",
    re.VERBOSE,
)

_QUOTE, _ITEM = re.compile(r"^> ?", re.MULTILINE), re.compile(r"^[*-] ", re.MULTILINE)

#: Where code stood, while the rest is read (private use).
_HOLE = "\ue000"


def read_text(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The visible text, and its markup as (look, text)."""
    looks: list[tuple[str, str]] = []
    codes: list[str] = []

    def cut(found: re.Match[str]) -> str:
        codes.append(found[1] or found[2])
        looks.append(("monospace", codes[-1]))
        return _HOLE

    rest = _CODE.sub(cut, text)
    rest = _ITEM.sub("• ", _QUOTE.sub("", rest))
    rest = _styled(rest, looks)
    for code in codes:
        rest = rest.replace(_HOLE, code, 1)
    return rest, looks


def _styled(text: str, looks: list[tuple[str, str]]) -> str:
    def shown(found: re.Match[str]) -> str:
        inside = _styled(found[2], looks)
        looks.append((_SIGNS[found[1]], inside))
        return inside

    return _STYLED.sub(shown, text)
