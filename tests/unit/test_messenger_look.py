"""What a kind of messenger may say of its looks."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import memory_core
from msgsvc_devkit.channel import RecordingChannel

LIGHT = ChatColours(ground="#dfe7ee", bubble="#ffffff", text="#16202a", link="#1d5f99")
DARK = ChatColours(ground="#10161c", bubble="#1d2730", text="#eef2f5", link="#8cc4f0")
LOOK = MessengerLook(LIGHT, DARK)
STYLED = {
    "button_primary": "#1d6fb8",
    "button_success": "#23783c",
    "button_danger": "#c2352b",
    "button_styled_text": "#ffffff",
}


@pytest.mark.parametrize(
    "colour", ["", "red", "#fff", "#FFFFFF", "#ffffff;}", "#ffffff00", "#fffff\n"]
)
def test_a_colour_is_six_hexadecimal_digits(colour: str) -> None:
    for name in ("ground", "bubble", "text", "link"):
        with pytest.raises(ValueError, match=f"ChatColours.{name} is a colour"):
            replace(LIGHT, **{name: colour})
    if colour:
        with pytest.raises(ValueError, match=r"ChatColours\.button is a colour"):
            replace(LIGHT, button=colour)


@pytest.mark.parametrize(
    ("name", "colours"),
    [
        ("text", {"text": "#aaaaaa"}),
        ("link", {"link": "#6fb7f0"}),
        ("button_text", {"button": "#5577aa"}),
        ("button_text", {"button_text": "#eeeeee"}),
        ("button_success", {**STYLED, "button_success": "#6fbf73"}),
        ("button_primary", {**STYLED, "button_styled_text": "#aa3333"}),
    ],
)
def test_what_can_not_be_read_is_refused(name: str, colours: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"ChatColours.{name}: ")):
        replace(LIGHT, **colours)


def test_styles_of_buttons_have_all_of_their_colours_or_none() -> None:
    assert replace(LIGHT, **STYLED).has_styles
    assert not LIGHT.has_styles
    with pytest.raises(ValueError, match="all colours of styled buttons, or none"):
        replace(LIGHT, **(STYLED | {"button_danger": ""}))


class BirdsPlugin:
    """Registers three channel kinds, one of which has no look."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        looks = {"dove": LOOK, "pigeon": MessengerLook(LIGHT, DARK), "raven": None}
        return [
            ChannelKind(
                name, Section, lambda _context, who, _given: RecordingChannel(who), look=look
            )
            for name, look in looks.items()
        ]


async def test_a_channel_has_the_look_of_its_kind_and_looks_that_are_shared_count_once() -> None:
    used = {name: {"plugin": name} for name in ("dove", "raven")}
    async with memory_core(extra_plugins=[("birds", BirdsPlugin())], channels=used) as core:
        channels = core.channels

    assert channels.kinds.looks == [LOOK]
    assert channels["dove"].identity.look == LOOK
    assert channels["raven"].identity.look is None
