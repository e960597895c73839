"""Short marks of longer texts: ids of dialogs, letters and colours of people."""

from hashlib import blake2b

#: Colours of avatars in `components.css`: `.hue-0` and so on.
HUES = 6


def anchor(parts: object) -> str:
    """`{{ [action, values] | anchor }}`: an id for an element of the page, the same for the same parts."""
    return f"d{_digest(repr(parts))}"


def hue(name: str) -> str:
    """`{{ name | hue }}`: the CSS class of somebody's colour, which they keep on every page."""
    return f"hue-{int(_digest(name), 16) % HUES}"


def initials(name: str) -> str:
    """`{{ name | initials }}`: one or two letters.

    >>> [initials(name) for name in ("Ann Lee", "ann", "Анна Мария Ли", "@ann_lee", "")]
    ['AL', 'A', 'АЛ', 'A', '?']
    """
    words = [word.lstrip("@#+(\"'«") for word in name.split()]
    letters = [word[0].upper() for word in words if word]
    return "".join([letters[0], letters[-1]][: len(letters)]) if letters else "?"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
