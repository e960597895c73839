"""Checks of the channel's declaration, health check, secrets, and `close`."""

import asyncio
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import get_args

import pytest
from structlog.testing import capture_logs

from msgsvc_core.channels import (
    Channel,
    ChannelHealth,
    ChannelKind,
    DeliveryError,
    Reason,
    Receiving,
)
from msgsvc_core.service import Service
from msgsvc_devkit.conformance.failures import QUICK
from msgsvc_devkit.conformance.messenger import Fault, Messenger
from msgsvc_devkit.conformance.stage import CHANNEL, Stage, keyed, plainest, sent
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal

#: Names of settings that are URLs or file paths.
_PLACES = re.compile(r"(url|proxy|host|port|address|socket|path|file|folder|directory)(_|$)")


class Life(Stage):
    """From the first declaration to `close`."""

    def test_what_the_channel_declares_makes_sense(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        takes, pace = channel.capabilities, channel.pace
        paces = [pace.per_bot_s, pace.per_chat_s, pace.per_group_min]

        assert (channel.name, channel.key) == (CHANNEL, CHANNEL), (
            f"the channel calls itself {channel.name!r}; hand the identity on to Channel.__init__"
        )
        assert channel.receiving in get_args(Receiving), f"receiving is {channel.receiving!r}"
        assert takes.formats, "Capabilities.formats is empty: no message could be sent"
        assert takes.max_text_length > 0, "Capabilities.max_text_length is not even one"
        assert all(one is None or one > 0 for one in paces), (
            f"{pace}: a pace is more than 0, or None"
        )
        if (budget := channel.budget) is not None:
            assert budget.unit, f"{budget}: name the unit that is paid, for operators"
            assert min(budget.most + 1, budget.parts) > 0, f"{budget}: its amounts are positive"
        assert not channel.is_group(messenger.chat_id), "a person's own chat is taken for a group"

    def test_its_settings_say_what_they_mean_and_where_calls_go_is_the_operators(
        self, declared: ChannelKind
    ) -> None:
        for name, field in declared.settings.model_fields.items():
            assert field.description, f"the setting {name} has no description; add one to its Field"
            if _PLACES.search(name) or "Path" in str(field.annotation):
                assert name in declared.operator_settings, (
                    f"the setting {name} says where our calls or files go: a project that can set it"
                    " for its own bot reaches what it must not. Name it in operator_settings"
                )

    async def test_a_check_of_a_bot_that_works_says_who_it_is(self, channel: Channel) -> None:
        health = await _health(channel)

        assert (health.ok, health.revoked) == (True, False), f"`check` found {health}"
        assert health.profile is not None, "`check` succeeded without the bot's profile"
        assert health.profile.name, "`check` found a profile without a name"
        assert not (health.profile.username or "").startswith("@"), (
            "username has an @ in front; leave it out"
        )

    @pytest.mark.parametrize("fault", QUICK)
    async def test_a_check_of_a_platform_that_is_away_does_not_raise(
        self, channel: Channel, messenger: Messenger, fault: Fault
    ) -> None:
        await messenger.break_next(fault)
        health = await _health(channel)

        if fault == "reset" and health.ok:
            pytest.skip("the HTTP client asked a second time by itself")
        assert (health.ok, health.revoked) == (False, False), (
            f"during a fault ({fault}) `check` found {health}; it is not ok, and not revoked: the bot"
            " works again as soon as the platform does"
        )
        assert health.detail, (
            "`check` says nothing of what it found; fill `detail` for the operator"
        )

    async def test_a_revoked_bot_is_found_by_check_and_refused_as_banned(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        await messenger.revoke()
        health = await _health(channel)
        message = plainest("from nobody", channel.capabilities)
        error = await refusal(channel.send(chat_id, keyed(message)), "send of a revoked bot")

        assert (health.ok, health.revoked) == (False, True), (
            f"the token is valid no more, and `check` found {health}; set `revoked`, so that the core"
            " stops calling"
        )
        expect_reason(error, Reason.BOT_BANNED, "`send` of a revoked bot")

    async def test_no_secret_shows_in_what_the_channel_says_and_logs(
        self, channel: Channel, messenger: Messenger, chat_id: str, secrets: list[str]
    ) -> None:
        if not secrets:
            pytest.skip("the channel's settings hold no SecretStr")
        with _everything_said() as said:
            said.extend([repr(channel), str(channel), channel.link("a") or ""])
            for fault in QUICK:
                await messenger.break_next(fault)
                said.append(await _failure(channel, chat_id))
            for reason in (Reason.RATE_LIMITED, Reason.INVALID_MESSAGE):
                await messenger.fail_next(reason)
                said.append(await _failure(channel, chat_id))
            await messenger.revoke()
            said.append(await _failure(channel, chat_id))
            said.append(repr(await _health(channel)))

        for text in said:
            shown = [secret for secret in secrets if secret in text]
            assert not shown, (
                "a secret of the settings shows in: "
                + text.replace(shown[0] if shown else "", "<SECRET>")[:600]
                + "\nName no URL that holds it, and raise `from None` what would bring it along"
            )

    async def test_a_channel_is_closed_twice_and_unused(
        self, channel: Channel, service: Service, chat_id: str
    ) -> None:
        await sent(channel, chat_id, plainest("last", channel.capabilities))
        for number in ("first", "second"):
            await done(channel.close(), f"the {number} close", "Closing what is closed is no error")


async def _health(channel: Channel) -> ChannelHealth:
    return await done(channel.check(), "check", "`check` never raises: say it in ChannelHealth")


async def _failure(channel: Channel, chat_id: str) -> str:
    """The full traceback of a failing call, as in a log."""
    try:
        await channel.send(chat_id, keyed(plainest("refused", channel.capabilities)))
    except DeliveryError as error:
        return "".join(traceback.format_exception(error)) + repr(error) + error.text
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - another check judges its type
        return "".join(traceback.format_exception(error)) + repr(error)
    return ""


@contextmanager
def _everything_said() -> Iterator[list[str]]:
    """Everything logged in the block, by structlog and `logging`, at every level."""
    said: list[str] = []
    stream = StringIO()
    handler, root = logging.StreamHandler(stream), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with capture_logs() as logs:
            yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        said.append(stream.getvalue())
        said.extend(map(str, logs))
