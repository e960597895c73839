"""Shades of an accent colour that are read in light and dark pages (WCAG 2.2, 1.4.3 and 1.4.11)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from msgsvc_core.kernel.colours import CONTROL_CONTRAST, TEXT_CONTRAST, Colour, contrast, parse

#: The light half of `--accent` in `tokens.css`.
DEFAULT_ACCENT = "#1b7560"

WHITE, BLACK = (255, 255, 255), (0, 0, 0)

#: Surfaces of `tokens.css` that the accent and links lie on.
_LIGHT_SURFACES: tuple[Colour, ...] = ((0xF6, 0xF7, 0xF6), (0xEE, 0xF0, 0xEE), WHITE)
_DARK_SURFACES: tuple[Colour, ...] = ((0x0D, 0x11, 0x10), (0x15, 0x1A, 0x18), (0x1F, 0x26, 0x24))
_DARK_CARD = _DARK_SURFACES[1]

#: Parts of the accent in a tinted surface.
_LIGHT_TINT, _DARK_TINT = 0.10, 0.18

#: Steps in which a colour is mixed with black or white until it is told apart.
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Scheme:
    """The tokens of one colour scheme, each `#rrggbb`."""

    accent: str
    accent_strong: str
    on_accent: str
    tint: str
    link: str


@dataclass(frozen=True, slots=True)
class Shades:
    """What an accent colour becomes. It is adjusted where it could not be told apart."""

    light: Scheme
    dark: Scheme

    def css(self, selector: str = ":root") -> str:
        """A rule that replaces the accent's tokens. It consists of our own colours alone."""
        lines = []
        for name in ("accent", "accent_strong", "on_accent", "tint", "link"):
            pair = f"light-dark({getattr(self.light, name)}, {getattr(self.dark, name)})"
            lines.append(f"  --{name.replace('_', '-')}: {pair};")
        return f"{selector} {{\n" + "\n".join(lines) + "\n}\n"


@lru_cache(256)
def shades_of(accent: str) -> Shades:
    """The shades of `#rrggbb`, in lower case."""
    colour = parse(accent)
    return Shades(
        light=_scheme(colour, WHITE, _LIGHT_TINT, _LIGHT_SURFACES, BLACK),
        dark=_scheme(colour, _DARK_CARD, _DARK_TINT, _DARK_SURFACES, WHITE),
    )


def _scheme(
    colour: Colour, card: Colour, part: float, surfaces: Sequence[Colour], towards: Colour
) -> Scheme:
    accent = _moved(colour, towards, lambda c: _least(c, surfaces) >= CONTROL_CONTRAST)
    on_accent = max(WHITE, BLACK, key=lambda text: contrast(text, accent))
    # A hovered control moves away from its text, which so stays readable.
    away = BLACK if on_accent == WHITE else WHITE
    tint = _mix(card, accent, part)
    grounds = (*surfaces, tint)
    link = _moved(accent, towards, lambda c: _least(c, grounds) >= TEXT_CONTRAST)
    return Scheme(
        accent=_hex(accent),
        accent_strong=_hex(_mix(accent, away, 0.18)),
        on_accent=_hex(on_accent),
        tint=_hex(tint),
        link=_hex(link),
    )


def _moved(colour: Colour, towards: Colour, is_enough: Callable[[Colour], bool]) -> Colour:
    mixes = (_mix(colour, towards, step / _STEPS) for step in range(_STEPS + 1))
    return next(filter(is_enough, mixes), towards)


def _least(colour: Colour, surfaces: Sequence[Colour]) -> float:
    return min(contrast(colour, surface) for surface in surfaces)


def _mix(one: Colour, other: Colour, part: float) -> Colour:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
