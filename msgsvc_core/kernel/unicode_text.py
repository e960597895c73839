"""Unicode normalization of texts whose length was checked.

Normalizing sorts runs of combining marks in time quadratic in their length (CVE-2023-46695): 128,000 of them
take half a minute, in which a process does nothing else. So nothing else calls `unicodedata.normalize`, and
here nobody can without a limit.
"""

import unicodedata
from typing import Literal

Form = Literal["NFC", "NFKC", "NFKD"]

#: Characters that may be normalized; a run of as many combining marks takes some 1 ms.
MAX_NORMALIZED = 1_024


def normalized(form: Form, text: str, *, most: int = MAX_NORMALIZED) -> str | None:
    """The text in a normalization form; None if it has more than `most` characters, which is at most
    `MAX_NORMALIZED`."""
    assert most <= MAX_NORMALIZED
    return unicodedata.normalize(form, text) if len(text) <= most else None
