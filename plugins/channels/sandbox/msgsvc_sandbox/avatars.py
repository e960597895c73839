"""Round signs for people and bots, as `static/avatars.js` makes them for what comes later."""

#: Colours in `static/base.css`.
TONES = 6


def initials(name: str) -> str:
    """The first letters of the first and the last word: `AB` of `Ann van Beek`."""
    words = name.split()
    letters = words[0][:1] + (words[-1][:1] if len(words) > 1 else "")
    return letters.upper()


def tone(key: str) -> int:
    """The number of a colour, always the same for the same person or bot."""
    return sum(ord(character) for character in key) % TONES
