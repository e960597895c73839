"""A form's own patterns for texts, in RE2, whose time is linear in the length of the text.

Python's `re` backtracks, and a tenant's pattern could keep a process busy for years. See
docs/decisions/0041-forms.md.
"""

from functools import lru_cache
from typing import Any

from msgsvc_core.kernel.errors import InvalidValue

#: Characters of a pattern.
MOST_PATTERN = 200

#: Bytes that a compiled pattern, and matching by it, may take.
MOST_MEMORY = 1 << 20


def check_pattern(pattern: str) -> str:
    """The pattern. Raises ValueError with an explanation for its author."""
    import re2  # noqa: PLC0415 - megabytes that a process without such a form does not need

    try:
        _compiled(pattern)
    except re2.error as error:
        why = error.args[0] if error.args else "it is too large"
        told = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise InvalidValue("is no pattern of RE2: {reason}", reason=told) from None
    return pattern


def matches(pattern: str, text: str) -> bool:
    """Whether the complete text matches."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - see above

    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.log_errors = False
    options.never_capture = True
    return re2.compile(pattern, options=options)
