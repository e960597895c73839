"""Round avatars for people and bots, the same as those of `static/avatars.js` for later ones."""

#: Colours in `static/base.css`.
TONES = 6


def initials(name: str) -> str:
    """The first letters of the first and the last word: `AB` for `Ann van Beek`."""
    words = name.split()
    letters = words[0][:1] + (words[-1][:1] if len(words) > 1 else "")
    return letters.upper()


def tone(key: str) -> int:
    """The number of a colour, always the same for a person or bot."""
    return sum(ord(character) for character in key) % TONES
