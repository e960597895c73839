"""Bots that a messenger makes for a project."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels import BotCreated, BotProfile, ChannelUser, DeliveryError, Reason
from msgsvc_core.channels.project_channels.models import ChannelRequestAnswer, CreateChannelBody
from msgsvc_core.channels.project_channels.request_store import ChannelRequest
from msgsvc_core.channels.project_channels.requests import (
    FINISHED,
    JOB,
    OPEN_MS,
    RANDOM,
    ChannelRequests,
)
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.channel import RecordingBotMaker
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT

MANAGER = "messenger_a"
ACCOUNT = "42"


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    """A project may have one channel, whose bot `messenger_a` can make."""
    async with memory_core(own_channels={"per_project": 1}) as core:
        manager = core.recording(MANAGER)
        manager.bot_maker, manager.profile = RecordingBotMaker(), BotProfile("Factory", "factory")
        yield core


def maker_of(core: MemoryCore) -> RecordingBotMaker:
    maker = core.recording(MANAGER).bot_maker
    assert isinstance(maker, RecordingBotMaker)
    maker.settings[ACCOUNT] = {}
    return maker


async def requested(core: MemoryCore, tx: Tx, name: str = "support") -> ChannelRequest:
    return await core.service.get(ChannelRequests).create(tx, PROJECT, name, "recording")


async def bot_made(core: MemoryCore, tx: Tx, username: str) -> None:
    """The platform tells of a bot that somebody made."""
    user = ChannelUser("7", "Ann")
    created = BotCreated(update_id="1", chat_id="7", user=user, account=ACCOUNT, username=username)
    await core.service.get(ChannelRequests).record(tx, MANAGER, created)


async def shown(core: MemoryCore, tx: Tx, request: ChannelRequest) -> ChannelRequestAnswer:
    """The request as it is stored."""
    requests = core.service.get(ChannelRequests)
    return requests.answer(await requests.get(tx, PROJECT, request.request_id), "Shop")


async def test_a_request_has_a_username_that_nobody_can_guess_and_a_link(
    core: MemoryCore, tx: Tx
) -> None:
    requests = core.service.get(ChannelRequests)
    made = [await requested(core, tx) for _ in range(2)]

    assert len({each.username for each in made}) == 2
    assert len(made[0].username) == len("support__bot") + RANDOM
    assert made[0].username in (requests.link(made[0], "Shop") or "")
    core.clock.advance(OPEN_MS / 1000 - 1)
    assert not requests.has_expired(made[0])
    core.clock.advance(1)
    assert requests.has_expired(made[0])


async def test_a_later_request_for_a_channel_replaces_the_one_before(
    core: MemoryCore, tx: Tx
) -> None:
    first, second = await requested(core, tx), await requested(core, tx)

    assert (await shown(core, tx, first)).status == "cancelled"
    assert (await shown(core, tx, second)).status == "pending"


async def test_a_request_that_waits_takes_the_place_of_a_channel(core: MemoryCore, tx: Tx) -> None:
    await requested(core, tx)

    with pytest.raises(Conflict, match="at most 1 channels"):
        await requested(core, tx, "sales")


async def test_without_a_bot_that_makes_others_nothing_is_asked(core: MemoryCore, tx: Tx) -> None:
    core.recording(MANAGER).profile = None

    assert core.service.get(ChannelRequests).manager("recording") is None
    with pytest.raises(ValidationFailed):
        await requested(core, tx)


async def test_only_a_bot_that_was_asked_for_is_connected(core: MemoryCore, tx: Tx) -> None:
    request = await requested(core, tx)
    await bot_made(core, tx, "support_x_bot")
    assert await core.jobs_named(tx, JOB) == []
    # Platforms keep the case in which people write it.
    await bot_made(core, tx, request.username.capitalize())

    [job] = await core.jobs_named(tx, JOB)
    assert job.payload == {"project_id": PROJECT, "request_id": request.request_id}


async def made(core: MemoryCore) -> tuple[ChannelRequest, Job]:
    """A request whose bot was made, and the job that connects it."""
    async with core.db.transaction() as tx:
        request = await requested(core, tx)
        await bot_made(core, tx, request.username)
        [job] = await core.jobs_named(tx, JOB)
    return request, job


async def connected(core: MemoryCore, request: ChannelRequest, job: Job) -> ChannelRequestAnswer:
    """The request after its job."""
    await core.service.get(ChannelRequests).connect(JobInTest(core.db), [job])
    async with core.db.read() as tx:
        return await shown(core, tx, request)


async def test_a_bot_that_was_made_becomes_the_channel(core: MemoryCore) -> None:
    maker_of(core)
    request, job = await made(core)
    assert (await connected(core, request, job)).status == "connected"

    async with core.db.read() as tx:
        channel = await core.service.get(ProjectChannels).get(tx, PROJECT, "support")
    assert channel.channel_id in core.channels
    [event] = core.emitted
    assert (event.name, event.data["status"]) == (FINISHED, "connected")


async def test_a_bot_for_which_there_is_no_room_any_more_fails_its_request(
    core: MemoryCore,
) -> None:
    maker_of(core)
    request, job = await made(core)
    async with core.db.transaction() as tx:
        sales = CreateChannelBody(name="sales", plugin="recording")
        await core.service.get(ProjectChannels).create(tx, PROJECT, sales)

    check_failed(core, await connected(core, request, job), "at most 1 channels")


async def test_a_bot_that_the_platform_does_not_know_fails_its_request(core: MemoryCore) -> None:
    refused = DeliveryError(Reason.INVALID_MESSAGE, "user not found")
    maker_of(core).failures.append(refused)
    request, job = await made(core)

    check_failed(core, await connected(core, request, job), "user not found")


def check_failed(core: MemoryCore, answer: ChannelRequestAnswer, why: str) -> None:
    assert answer.status == "failed"
    assert answer.detail is not None
    assert why in answer.detail
    [event] = core.emitted
    assert event.name == FINISHED
    assert (event.data["status"], event.data["detail"]) == ("failed", answer.detail)


async def test_a_platform_that_is_away_is_asked_again(core: MemoryCore) -> None:
    away = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no answer")
    maker_of(core).failures.append(away)
    request, job = await made(core)
    with pytest.raises(DeliveryError):
        await connected(core, request, job)

    assert core.emitted == []
    assert (await connected(core, request, job)).status == "connected"


@pytest.mark.parametrize("status", ["connecting", "connected", "failed", "cancelled", "expired"])
async def test_what_does_not_wait_has_no_link_and_is_not_cancelled(
    core: MemoryCore, status: str
) -> None:
    requests, maker = core.service.get(ChannelRequests), maker_of(core)
    if status in {"connecting", "connected", "failed"}:
        request, job = await made(core)
        if status == "failed":
            maker.failures.append(DeliveryError(Reason.INVALID_MESSAGE, "gone"))
        if status != "connecting":
            await connected(core, request, job)
    async with core.db.transaction() as tx:
        if status in {"cancelled", "expired"}:
            request = await requested(core, tx)
        if status == "cancelled":
            await requests.cancel(tx, PROJECT, request.request_id)
        if status == "expired":
            core.clock.advance(OPEN_MS / 1000)
        answer = await shown(core, tx, request)

        detail = "gone" if status == "failed" else None
        assert (answer.status, answer.link, answer.detail) == (status, None, detail)
        with pytest.raises(Conflict, match=status):
            await requests.cancel(tx, PROJECT, request.request_id)


async def test_a_request_that_waits_is_cancelled(core: MemoryCore, tx: Tx) -> None:
    requests, request = core.service.get(ChannelRequests), await requested(core, tx)
    assert (await shown(core, tx, request)).link is not None
    cancelled = await requests.cancel(tx, PROJECT, request.request_id)

    assert cancelled.status == "cancelled"
    assert (await shown(core, tx, request)).status == "cancelled"
    with pytest.raises(NotFound):
        await requests.cancel(tx, PROJECT, "chr_2")
