"""Whole numbers as text: of forms, buttons and paths, by anybody."""

#: Digits of one at most. Python refuses to read thousands, and the databases hold 18.
MOST_DIGITS = 15


def whole_number(text: str) -> int | None:
    """The number that plain digits stand for; None for anything else, or for more of them."""
    is_one = len(text) <= MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text) if is_one else None
