"""Checks of bots that a channel's bot offers to make and manages."""

from urllib.parse import urlsplit

import pytest

from msgsvc_core.channels import Channel
from msgsvc_devkit.conformance.stage import Stage


class BotMakers(Stage):
    """`bot_maker`, where a channel has one."""

    def test_a_bot_to_be_made_has_a_name_of_its_own_and_a_link(self, channel: Channel) -> None:
        if channel.bot_maker is None:
            pytest.skip("this channel makes no bots (bot_maker)")
        first, second = (
            channel.bot_maker.suggest("A shop & more", random)
            for random in ("a1b2c3d4e5", "f6g7h8i9j0")
        )
        link = channel.bot_maker.link(first, "A shop & more")

        assert first != second, (
            f"two bots of the same title would both be {first!r}: use the random characters"
        )
        assert urlsplit(link).scheme == "https", f"the link is {link!r}, and no https URL"
        assert first in link, f"the link {link!r} does not name {first!r}, so another bot is made"
        assert " " not in link, f"the title is not quoted in the link {link!r}"
