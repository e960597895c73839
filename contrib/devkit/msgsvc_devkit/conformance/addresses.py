"""Checks of how channels read the addresses and ids of people, which projects and other programs give."""

from collections.abc import Callable

import pytest

from msgsvc_core.channels import Channel
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs

#: Texts that no platform knows anybody by.
NOBODYS = ("", "nobody at all", "a\0b", "<b>", "9" * 400)


class Addresses(Stage):
    """`parse_address` and `parse_chat_id`."""

    def test_an_address_has_one_normal_form(self, channel: Channel, messenger: Messenger) -> None:
        needs(channel.capabilities.addresses, "people who are known by an address")
        own = messenger.user.user_id

        assert channel.parse_address(own) == own, (
            f"updates name the user {own!r}, and `parse_address` makes another form of it,"
            f" {channel.parse_address(own)!r}: the person would be two"
        )
        assert messenger.chat_id == own, (
            f"messages go to {messenger.chat_id!r}, and the address is {own!r}; both are the address"
        )

    def test_what_is_no_address_is_refused_without_repeating_it(self, channel: Channel) -> None:
        needs(channel.capabilities.addresses, "people who are known by an address")
        _refuses(channel.parse_address, "parse_address")

    def test_the_id_of_a_person_is_taken_as_other_programs_have_it(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        if type(channel).parse_chat_id is Channel.parse_chat_id:
            pytest.skip("people of this channel can't be imported (parse_chat_id)")
        own = messenger.user.user_id

        assert channel.parse_chat_id(own) == own, (
            f"updates name the user {own!r}, and `parse_chat_id` returns"
            f" {channel.parse_chat_id(own)!r}: an imported person would be another"
        )
        _refuses(channel.parse_chat_id, "parse_chat_id")


def _refuses(parse: Callable[[str], str], name: str) -> None:
    __tracebackhide__ = True
    for text in NOBODYS:
        refusal = _refusal(parse, name, text)
        assert not text or text not in refusal, (
            f"the refusal of `{name}` repeats what was given; it is personal data, and is logged"
        )


def _refusal(parse: Callable[[str], str], name: str, text: str) -> str:
    """The words of the refusal, which has to be one."""
    __tracebackhide__ = True
    try:
        found = parse(text)
    except InvalidValue as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        pytest.fail(f"{name}({text[:20]!r}) raises {type(error).__name__}; raise InvalidValue")
    pytest.fail(f"{name}({text[:20]!r}) is {found[:20]!r}; it is nobody's: raise InvalidValue")
