"""Texts of strangers in a form that every database, JSON and UTF-8 take."""

#: What stands for a character that can't be stored (U+FFFD, the replacement character).
REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """The text with `REPLACEMENT` in place of NUL, which PostgreSQL does not store, and of halves of
    surrogate pairs, which have no UTF-8.

    >>> storable("caf\\udce9")
    'caf\ufffd'
    """
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    # A string of ASCII knows that it is one.
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves that belong together become the character that they are.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
