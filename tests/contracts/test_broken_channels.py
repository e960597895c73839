"""The kit itself: each of its checks fails for a channel that breaks what it is about."""

import inspect
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.channels import Channel
from msgsvc_devkit import ChannelContract
from msgsvc_devkit.conformance import inbox as inboxes
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.stage import (
    CHANNEL,
    kind_of,
    new_service,
    second_channel,
    secrets_of,
)
from tests.contracts import (  # noqa: F401 - enter their channels
    broken_addresses,
    broken_doubt,
    broken_files,
    broken_limits,
    broken_menus,
    broken_receivers,
    broken_reports,
    broken_threads,
)
from tests.contracts.broken_channels import BROKEN, Broken
from tests.contracts.pigeon import PigeonChannel, PigeonMessenger, RepeatablePigeonChannel
from tests.contracts.test_channel_contract import PigeonPlugin

CHECKS = sorted(name for name, _ in inspect.getmembers(ChannelContract) if name.startswith("test_"))


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes is given up soon."""
    monkeypatch.setattr(inboxes, "PATIENCE_S", 0.5)


def cases(check: str) -> Iterator[dict[str, Any]]:
    """The arguments of each of a check's parametrised forms."""
    marks = getattr(getattr(ChannelContract, check), "pytestmark", [])
    choices = [(mark.args[0], mark.args[1]) for mark in marks if mark.name == "parametrize"]
    for values in product(*(values for _, values in choices)):
        yield dict(zip((name for name, _ in choices), values, strict=True))


async def failures(broken: Broken, folder: Path) -> list[str]:
    """What the check says of the channel, form by form."""
    found: list[str] = []
    for number, case in enumerate(cases(broken.check)):
        try:
            await _run(broken, case, folder / str(number))
        except (AssertionError, pytest.fail.Exception) as failure:
            found.append(str(failure))
        except pytest.skip.Exception:
            continue
    return found


async def _run(broken: Broken, case: dict[str, Any], folder: Path) -> None:
    plugin = PigeonPlugin(broken.channel)
    messenger = PigeonMessenger(plugin.pigeons, broken.receiving)
    if issubclass(broken.channel, broken_receivers.Signed):
        messenger.proof = "signature"
    async with AsyncExitStack() as stack:
        door = await stack.enter_async_context(Door().open())
        service = new_service(plugin, "pigeon", messenger.settings, folder)
        stack.push_async_callback(service.channels.close)
        check = getattr(ChannelContract(), broken.check)
        wanted = inspect.signature(check).parameters
        found: dict[str, Any] = {
            "door": door,
            "service": service,
            "messenger": messenger,
            "secrets": secrets_of(service, "pigeon"),
            "declared": kind_of(service, "pigeon"),
            **case,
        }
        channel: Channel = service.channels[CHANNEL]
        if {"channel", "inbox"} & set(wanted):
            channel.profile = (await channel.check()).profile
        if "successor" in wanted:
            found["successor"] = second_channel(service, "pigeon", channel)
        inbox = Inbox(channel, messenger, door)
        if "inbox" in wanted:
            await inbox.open()
        if "chat_id" in wanted:
            await messenger.start()
        found |= {"channel": channel, "inbox": inbox, "chat_id": messenger.chat_id}
        outcome = check(**{name: found[name] for name in wanted})
        if inspect.isawaitable(outcome):
            await outcome


@pytest.mark.parametrize(
    "broken", BROKEN, ids=lambda one: f"{one.channel.__name__}-{one.check.removeprefix('test_')}"
)
@pytest.mark.usefixtures("short_patience")
async def test_a_broken_channel_fails_its_check(broken: Broken, tmp_path: Path) -> None:
    said = await failures(broken, tmp_path)

    assert said, f"{broken.channel.__name__} passed {broken.check}"
    assert all(len(text) > 20 for text in said), f"a failure says too little: {said}"


@pytest.mark.parametrize("channel", [PigeonChannel, RepeatablePigeonChannel])
@pytest.mark.parametrize("check", CHECKS)
async def test_a_check_passes_where_nothing_is_broken(
    check: str, channel: type[PigeonChannel], tmp_path: Path
) -> None:
    receiving = "webhook" if check.startswith("test_webhook") else "poll"

    assert await failures(Broken(channel, check, receiving), tmp_path) == []


async def test_a_channel_that_verifies_signatures_passes(tmp_path: Path) -> None:
    check = "test_webhook_call_that_is_not_signed_is_refused"

    assert await failures(Broken(broken_receivers.Signed, check, "webhook"), tmp_path) == []


def test_every_check_has_a_channel_that_fails_it() -> None:
    assert {broken.check for broken in BROKEN} == set(CHECKS)
