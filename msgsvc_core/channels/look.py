"""How a messenger's chats look, for previews on pages."""

from dataclasses import dataclass, fields
from typing import Literal

from msgsvc_core.kernel.colours import TEXT_CONTRAST, contrast, is_colour, parse

#: Where buttons are: apart, below the message, or inside it.
ButtonPlace = Literal["below", "inside"]


@dataclass(frozen=True, slots=True)
class ChatColours:
    """Colours of a chat in one colour scheme, each `#rrggbb` in lower case.

    `ground` is behind the messages, `bubble` behind the text of a message from a bot, `text` and `link` are
    on it. `button` is behind `button_text`; without them buttons have the colours of the message and its
    links. Raises `ValueError` for colours that can't be told apart (4.5:1, WCAG 2.2).
    """

    ground: str
    bubble: str
    text: str
    link: str
    button: str = ""
    button_text: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not is_colour(value) and (value or not each.name.startswith("button")):
                raise ValueError(f"ChatColours.{each.name} is a colour such as #1a2b3c: {value!r}")
        pairs = (
            ("text", self.text, self.bubble),
            ("link", self.link, self.bubble),
            ("button_text", self.button_text or self.link, self.button or self.bubble),
        )
        for name, text, behind in pairs:
            found = contrast(parse(text), parse(behind))
            if found < TEXT_CONTRAST:
                raise ValueError(
                    f"ChatColours.{name}: {text} on {behind} has a contrast of {found:.1f},"
                    f" and must have {TEXT_CONTRAST} to be read"
                )


@dataclass(frozen=True, slots=True)
class MessengerLook:
    """How a messenger's chats look in its light and its dark theme, as `ChannelKind.look` declares it."""

    light: ChatColours
    dark: ChatColours
    buttons: ButtonPlace = "below"
