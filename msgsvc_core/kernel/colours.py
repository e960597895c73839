"""Colours, and how well they are told apart (WCAG 2.2)."""

import re

#: Least contrast of text, and of what shows the state of a control (WCAG 2.2, 1.4.3 and 1.4.11).
TEXT_CONTRAST, CONTROL_CONTRAST = 4.5, 3.0

#: Red, green and blue, each 0-255.
Colour = tuple[int, int, int]

_HEX = re.compile("#[0-9a-f]{6}")


def is_colour(text: str) -> bool:
    """Whether it is `#rrggbb`, in lower case."""
    return _HEX.fullmatch(text) is not None


def parse(text: str) -> Colour:
    """The colour of `#rrggbb`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of two colours, 1-21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = (_linear(part / 255) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
