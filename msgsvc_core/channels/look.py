"""How a messenger's chats look, for previews on pages."""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from msgsvc_core.content.outgoing import ButtonStyle
from msgsvc_core.kernel.colours import TEXT_CONTRAST, contrast, is_colour, parse

#: Where buttons are: apart, below the message, or inside it.
ButtonPlace = Literal["below", "inside"]


@dataclass(frozen=True, slots=True)
class ChatColours:
    """Colours of a chat in one colour scheme, each `#rrggbb` in lower case.

    `ground` is behind the messages, `bubble` behind the text of a message from a bot, `text` and `link` are
    on it. `button` is behind `button_text`; without them buttons have the colours of the message and its
    links. On messengers that show the style of a button, `button_primary`, `button_success` and
    `button_danger` are behind the `button_styled_text` of such; without them a style is not shown. Raises
    `ValueError` for colours that can't be told apart (4.5:1, WCAG 2.2).
    """

    ground: str
    bubble: str
    text: str
    link: str
    button: str = ""
    button_text: str = ""
    button_primary: str = ""
    button_success: str = ""
    button_danger: str = ""
    button_styled_text: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not is_colour(value) and (value or not each.name.startswith("button")):
                raise ValueError(f"ChatColours.{each.name} is a colour such as #1a2b3c: {value!r}")
        pairs = [
            ("text", self.text, self.bubble),
            ("link", self.link, self.bubble),
            ("button_text", self.button_text or self.link, self.button or self.bubble),
        ]
        if self.has_styles:
            pairs += [
                (f"button_{style}", self.button_styled_text, getattr(self, f"button_{style}"))
                for style in get_args(ButtonStyle)
            ]
        for name, text, behind in pairs:
            found = contrast(parse(text), parse(behind))
            if found < TEXT_CONTRAST:
                raise ValueError(
                    f"ChatColours.{name}: {text} on {behind} has a contrast of {found:.1f},"
                    f" and must have {TEXT_CONTRAST} to be read"
                )

    @property
    def has_styles(self) -> bool:
        """Whether styles of buttons are shown. All of their colours are given, or none."""
        styled = [getattr(self, f"button_{style}") for style in get_args(ButtonStyle)]
        given = [bool(each) for each in (*styled, self.button_styled_text)]
        if any(given) != all(given):
            raise ValueError("ChatColours: give all colours of styled buttons, or none")
        return all(given)


@dataclass(frozen=True, slots=True)
class MessengerLook:
    """How a messenger's chats look in its light and its dark theme, as `ChannelKind.look` declares it."""

    light: ChatColours
    dark: ChatColours
    buttons: ButtonPlace = "below"
