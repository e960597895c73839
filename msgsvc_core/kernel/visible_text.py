"""Whether a text has visible characters, and its form in one line."""

import re
import unicodedata

from msgsvc_core.kernel.errors import InvalidValue

#: Characters that are certainly visible, and in nearly every text: a shortcut.
_PLAIN = re.compile(r"[!-~]")

#: Categories of invisible characters: spaces, controls, formats such as zero-width ones, and surrogates.
#: Characters unknown to this Python (`Cn`) and private ones (`Co`) may be visible.
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs"})

#: Invisible alone, but part of visible text: families of emoji, Persian words.
JOINERS = "\u200c\u200d"

#: Fillers, blanks, joiners and variation selectors, which Unicode classifies as letters, symbols or marks:
#: its property `Default_Ignorable_Code_Point`, and the empty Braille pattern.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def has_visible(text: str) -> bool:
    """Whether the text has at least one visible character."""
    if _PLAIN.search(text):
        return True
    return any(
        unicodedata.category(each) not in _UNSEEN and not _BLANK.match(each) for each in text
    )


def check_visible(text: str) -> str:
    """The text. Raises ValueError if it has no visible character."""
    if not has_visible(text):
        raise InvalidValue("must hold more than spaces and invisible characters")
    return text


def one_line(text: str) -> str:
    """A user's text in the form for one line or a button."""
    words = " ".join(text.split())
    return "".join(sign for sign in words if sign.isprintable() or sign in JOINERS)
