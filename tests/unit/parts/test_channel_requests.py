"""Bots that a messenger makes for a project: rules built from fakes."""

from typing import Any

import pytest

from msgsvc_core.channels import BotCreated, BotProfile, ChannelUser, DeliveryError, Reason
from msgsvc_core.channels.project_channels.requests import (
    FINISHED,
    JOB,
    OPEN_MS,
    ChannelRequests,
)
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.channel import RecordingBotMaker
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed, fake_settings
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.test_own_channels import own_channels_of

MANAGER = "messenger_a"
CREATED = BotCreated(
    update_id="1",
    chat_id="7",
    user=ChannelUser("7", "Ann"),
    account="42",
    username="Support_X_bot",
)


@pytest.fixture
def core() -> FakeContext:
    core = plugin_context()
    manager = core.channels.recording(MANAGER)
    manager.bot_maker, manager.profile = RecordingBotMaker(), BotProfile("Factory", "factory")
    return core


def requests_of(core: FakeContext, own_channels: Any = None) -> ChannelRequests:
    return ChannelRequests(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        channels=core.channels,
        own_channels=own_channels or own_channels_of(core),
        settings=fake_settings(),
    )


def row(core: FakeContext, **changed: Any) -> Answer:
    now_ms = core.clock.now_ms()
    values = {
        "project_id": PROJECT,
        "request_id": "chr_1",
        "name": "support",
        "plugin": "recording",
        "manager": MANAGER,
        "username": "support_x_bot",
        "status": "made",
        "account": "42",
        "detail": None,
        "created_at_ms": now_ms,
        "expires_at_ms": now_ms + OPEN_MS,
    }
    return [{**values, **changed}]


class Refuses:
    """Own channels, of which there can be no more."""

    async def create(self, tx: Tx, project_id: str, body: object) -> None:
        raise Conflict("a project has at most {limit} channels of its own", limit=2)


async def test_a_request_has_a_username_that_nobody_can_guess_and_a_link(core: FakeContext) -> None:
    requests = requests_of(core)
    answers: list[Answer] = [0, [{"count": 0}], [{"count": 0}], [], 1]
    made = [
        await requests.create(FakeTx(answers=list(answers)), PROJECT, "support", "recording")
        for _ in range(2)
    ]

    assert len({each.username for each in made}) == 2
    assert len(made[0].username) == len("support__bot") + 10
    assert made[0].username in (requests.link(made[0], "Shop") or "")
    core.clock.advance(OPEN_MS / 1000 - 1)
    assert not requests.has_expired(made[0])
    core.clock.advance(1)
    assert requests.has_expired(made[0])


async def test_without_a_bot_that_makes_others_nothing_is_asked(core: FakeContext) -> None:
    core.channels.recording(MANAGER).profile = None

    assert requests_of(core).manager("recording") is None
    with pytest.raises(ValidationFailed):
        await requests_of(core).create(FakeTx(), PROJECT, "support", "recording")


@pytest.mark.parametrize("is_asked", [True, False])
async def test_only_a_bot_that_was_asked_for_is_connected(
    core: FakeContext, is_asked: bool
) -> None:
    tx = FakeTx(answers=[row(core) if is_asked else []])
    await requests_of(core).record(tx, MANAGER, CREATED)

    assert tx.statements[0][1]["username"] == "support_x_bot"
    assert len(core.jobs.named(JOB)) == is_asked


@pytest.mark.parametrize(
    ("failure", "status", "detail"),
    [
        (None, "failed", "at most 2 channels"),
        (DeliveryError(Reason.INVALID_MESSAGE, "user not found"), "failed", "user not found"),
    ],
)
async def test_what_can_not_be_connected_ends_the_request(
    core: FakeContext, failure: DeliveryError | None, status: str, detail: str
) -> None:
    maker = core.channels.recording(MANAGER).bot_maker
    assert isinstance(maker, RecordingBotMaker)
    maker.settings["42"] = {}
    maker.failures += [failure] if failure else []
    requests = requests_of(core, Refuses())
    await requests.record(FakeTx(answers=[row(core)]), MANAGER, CREATED)
    [new] = core.jobs.named(JOB)
    core.db.answers += [row(core), row(core)]
    await requests.connect(FakeJobContext(core.db), [claimed(new)])

    written = core.db.statements[-1][1]
    assert written["status"] == status
    assert detail in written["detail"]
    [event] = core.events.emitted
    assert event.name == FINISHED
    assert (event.data["status"], event.data["detail"]) == ("failed", written["detail"])


async def test_a_platform_that_is_away_is_asked_again(core: FakeContext) -> None:
    maker = core.channels.recording(MANAGER).bot_maker
    assert isinstance(maker, RecordingBotMaker)
    maker.failures.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no answer"))
    requests = requests_of(core)
    await requests.record(FakeTx(answers=[row(core)]), MANAGER, CREATED)
    core.db.answers += [row(core)]

    with pytest.raises(DeliveryError):
        await requests.connect(FakeJobContext(core.db), [claimed(core.jobs.named(JOB)[0])])


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"status": "made"}, "connecting"),
        ({"status": "done"}, "connected"),
        ({"status": "failed", "detail": "gone"}, "failed"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "waiting", "expires_at_ms": 0}, "expired"),
    ],
)
async def test_what_does_not_wait_has_no_link_and_is_not_cancelled(
    core: FakeContext, changed: dict[str, Any], shown: str
) -> None:
    requests = requests_of(core)
    request = await requests.get(FakeTx(answers=[row(core, **changed)]), PROJECT, "chr_1")
    answer = requests.answer(request, "Shop")

    assert (answer.status, answer.link, answer.detail) == (shown, None, changed.get("detail"))
    with pytest.raises(Conflict, match=shown):
        tx = FakeTx(answers=[[], row(core, **changed)])
        await requests.cancel(tx, PROJECT, "chr_1")


async def test_a_request_that_waits_is_cancelled_by_one_statement(core: FakeContext) -> None:
    tx = FakeTx(answers=[row(core, status="cancelled")])
    cancelled = await requests_of(core).cancel(tx, PROJECT, "chr_1")

    assert cancelled.status == "cancelled"
    assert len(tx.statements) == 1
    with pytest.raises(NotFound):
        await requests_of(core).cancel(FakeTx(answers=[[], []]), PROJECT, "chr_2")
