r"""Texts on one line of a box, whatever is in them.

`\n` is a new line, `\\` a backslash, and at an end `\s` is a space and `\t` a tab. Where lines have parts, a
backslash before the sign between them makes it a part of the text. Before anything else it is only itself.
"""

import re

_WITHIN = {"\n": "n", "\\": "\\"}
_AT_ENDS = {" ": "s", "\t": "t"}


def to_line(text: str, *, apart: str = "") -> str:
    """Joins parts to one line, with `apart` between them."""
    signs = {**_WITHIN, **_AT_ENDS, apart: apart}
    found = rf"\A[ \t]|[ \t]\Z|[\\\n{re.escape(apart)}]"
    return re.sub(found, lambda match: "\\" + signs[match[0]], text)


def from_line(line: str, *, apart: str = "") -> str:
    """The text of a line, or of a part of it between two `apart`."""
    texts = {sign: text for text, sign in {**_WITHIN, **_AT_ENDS, apart: apart}.items()}
    found = rf"\A\\([st])|\\([st])\Z|\\([n\\{re.escape(apart)}])"
    return re.sub(found, lambda match: texts[match[match.lastindex or 0]], line.strip(" \t"))
