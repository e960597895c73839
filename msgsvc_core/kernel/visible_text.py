"""What people see of a text: whether anything, and how it looks in one line."""

import re
import unicodedata

from msgsvc_core.kernel.errors import InvalidValue

#: What is seen in any case, and is there in nearly every text: it spares a look at each character.
_PLAIN = re.compile(r"[!-~]")

#: Spaces, controls, formats such as zero-width ones, and halves of surrogate pairs. Characters that
#: this Python does not know yet (`Cn`) and private ones (`Co`) may well be seen.
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs"})

#: Not printable by themselves, and part of what is: families of emoji, Persian words.
JOINERS = "\u200c\u200d"

#: Fillers, blanks, joiners and variation selectors, which Unicode counts as letters, symbols or marks:
#: its property `Default_Ignorable_Code_Point`, and the empty pattern of Braille.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def has_visible(text: str) -> bool:
    """Whether the text holds one character at least that people see."""
    if _PLAIN.search(text):
        return True
    return any(
        unicodedata.category(each) not in _UNSEEN and not _BLANK.match(each) for each in text
    )


def check_visible(text: str) -> str:
    """The same. Raises ValueError for a text of spaces and invisible characters alone."""
    if not has_visible(text):
        raise InvalidValue("must hold more than spaces and invisible characters")
    return text


def one_line(text: str) -> str:
    """A text of somebody's as it may stand in a line or on a button."""
    words = " ".join(text.split())
    return "".join(sign for sign in words if sign.isprintable() or sign in JOINERS)
