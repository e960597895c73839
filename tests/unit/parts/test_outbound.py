"""What a channel sends: its gate, its pace, and buttons in words."""

import time
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels import chats
from msgsvc_core.channels.buttons import offers
from msgsvc_core.channels.buttons.fallbacks import ChannelSender, TypedAnswers
from msgsvc_core.channels.contract import Capabilities, Channel, Pace
from msgsvc_core.channels.failures import ChannelPaused, DeliveryError, LimitReached, Reason
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.outbound.rate_limits import RESERVED_S
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.rows import NOW_MS


class Operator:
    """What the operator is told of channels."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    @hookimpl
    async def on_channel_stopped(self, channel: Channel, reason: str, detail: str) -> None:
        self.told.append(("stopped", channel.key, reason, detail))

    @hookimpl
    async def on_channel_unavailable(self, channel: Channel, detail: str) -> None:
        self.told.append(("unavailable", channel.key, detail))


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
async def core(operator: Operator) -> AsyncIterator[MemoryCore]:
    plugins = [("operator", operator)]
    async with memory_core(extra_plugins=plugins, jobs={"outage_failures": 2}) as core:
        yield core


# ---- the way out --------------------------------------------------------------------------------

JOB = claimed(NewJob("message.deliver", lane=lane_of("messenger_a")))


async def call(core: MemoryCore, *failures: DeliveryError) -> str:
    channel = core.recording()
    channel.failures += failures
    message, gate = OutgoingMessage("Hi"), core.service.get(OutboundGates)["messenger_a"]
    return await gate.call(channel, JOB, "c1", lambda: channel.send("c1", message))


async def state_of(core: MemoryCore) -> ChannelState | None:
    """What the other processes know of the channel."""
    async with core.db.read() as tx:
        return await core.service.get(ChannelStates).find(tx, "messenger_a")


async def test_a_bot_that_is_told_to_wait_makes_no_call_until_then(core: MemoryCore) -> None:
    with pytest.raises(DeliveryError):
        await call(core, DeliveryError(Reason.RATE_LIMITED, "slow down", 5))
    with pytest.raises(ChannelPaused):
        await call(core)
    core.clock.advance(5)

    # The next owner of the lane keeps to it as well.
    state = await state_of(core)
    assert state is not None
    assert state.paused_until_ms == NOW_MS + 5_000
    assert await call(core) == "m1"


async def test_a_limit_of_the_channels_own_pauses_neither_bot_nor_chat(core: MemoryCore) -> None:
    with pytest.raises(LimitReached):
        await call(core, LimitReached("5 messages an hour to one number"))

    assert await call(core) == "m1"
    assert core.service.get(OutboundGates)["messenger_a"].chat_delay_s("c1", 10) is None
    assert await state_of(core) is None


async def test_one_chats_wait_holds_up_no_other(core: MemoryCore) -> None:
    with pytest.raises(DeliveryError):
        await call(core, DeliveryError(Reason.RATE_LIMITED, "slow down", 5, scope="chat"))
    gate = core.service.get(OutboundGates)["messenger_a"]

    assert gate.chat_delay_s("c1", 10) == 5
    assert gate.chat_delay_s("c2", 10) is None
    assert not gate.closed


async def test_calls_that_nobody_answers_open_the_circuit(
    core: MemoryCore, operator: Operator
) -> None:
    away = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "timeout") for _ in range(2)]
    for failure in away:
        with pytest.raises(DeliveryError):
            await call(core, failure)

    # The first may be the message's own fault.
    assert [failure.outage for failure in away] == [False, True]
    assert operator.told == [("unavailable", "messenger_a", "timeout")]
    with pytest.raises(ChannelPaused):
        await call(core)


async def test_a_ban_stops_the_bot_and_costs_the_message_nothing_the_second_time(
    core: MemoryCore, operator: Operator
) -> None:
    with pytest.raises(DeliveryError):
        await call(core, DeliveryError(Reason.BOT_BANNED, "Unauthorized"))
    state = await state_of(core)

    assert operator.told == [("stopped", "messenger_a", "bot_banned", "Unauthorized")]
    assert state is not None
    assert state.stopped
    with pytest.raises(ChannelPaused):
        await call(core)


async def test_later_jobs_of_a_receiver_stay_behind_those_that_were_put_back(
    core: MemoryCore,
) -> None:
    core.recording().pace = Pace(per_chat_s=1)
    gate = core.service.get(OutboundGates)["messenger_a"]
    first, second, other = (
        claimed(
            NewJob("message.deliver", {"subscriber_id": who}, lane=lane_of("messenger_a")),
            now_ms=NOW_MS,
        )
        for who in ("sub_1", "sub_1", "sub_2")
    )
    gate.reschedule([first], NOW_MS + 5_000)
    ctx = JobInTest(core.db)
    left = await gate.defer_overtaking(ctx, [second, other])

    assert left == [other]
    assert ctx.rescheduled == [(second, NOW_MS + 6_000)]


def test_jobs_that_wait_for_something_else_keep_the_bots_turns_for_a_moment_only(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    core.recording().pace = Pace(per_bot_s=30)
    gate = core.service.get(OutboundGates)["messenger_a"]
    gate.paced_capacity()
    now_s += 1
    free = gate.paced_capacity()
    assert free is not None
    jobs = [
        claimed(NewJob("message.deliver", lane=lane_of("messenger_a"))) for _ in range(free.jobs)
    ]
    gate.reserve_turns(jobs)
    reserved = gate.paced_capacity()
    now_s += RESERVED_S
    later = gate.paced_capacity()

    # Their batch waits for a call without a response, say; a sign-in question must not.
    assert reserved is not None
    assert later is not None
    assert (reserved.jobs, later.jobs) == (0, free.jobs)


def test_a_change_reaches_the_gate_and_wakes_its_lane(core: MemoryCore) -> None:
    woken: list[tuple[str, int]] = []
    core.jobs.woken_by(lambda lane, at_ms: woken.append((lane, at_ms)))
    gates = core.service.get(OutboundGates)
    gates.changed("messenger_a", stopped=True)

    assert gates.gate_of(lane_of("messenger_a")).closed
    assert woken == [(lane_of("messenger_a"), NOW_MS)]
    assert gates["messenger_a"].capacity().jobs == 0


# ---- buttons in words ---------------------------------------------------------------------------

QUESTION = OutgoingMessage(
    "Are you coming?", buttons=((Button("Yes", data="y"), Button("No", data="n")),)
)


async def say(core: MemoryCore, message: OutgoingMessage) -> None:
    """The bot, on a platform without buttons, writes to a chat."""
    core.recording().capabilities = Capabilities(buttons="words")
    await core.service.get(ChannelSender).send(core.recording(), "c1", message)


async def answer(core: MemoryCore, text: str) -> tuple[str, str] | None:
    """The button that a text in the chat presses, by its data, and the reference of its message."""
    answers = TypedAnswers(clock=core.clock, secrets=core.secrets, answer_hours=24)
    async with core.db.read() as tx:
        found = await answers.press_in(tx, core.recording(), "c1", text)
    return None if found is None else (found[0].data, found[1])


async def test_buttons_are_numbered_and_kept_before_the_call(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    early: list[tuple[str, str] | None] = []

    async def send(_chat_id: str, message: OutgoingMessage) -> str:
        shown.append(message.text)
        early.append(await answer(core, "2"))
        return "m1"

    monkeypatch.setattr(core.recording(), "send", send)
    async with core.db.transaction() as tx:
        await chats.touch(tx, "messenger_a", "c1", user_id="7", project_id=PROJECT, now_ms=NOW_MS)
        await chats.set_language(tx, "messenger_a", "c1", "ru")
    await say(core, QUESTION)

    assert shown == ["Are you coming?\n\n1 - Yes\n2 - No\nОтветьте номером."]
    assert early == [("n", "")]
    assert await answer(core, "1") == ("y", "m1")


async def test_a_chat_that_goes_on_elsewhere_is_followed(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await core.person(tx, chat_id="c1")
    core.recording().failures = [DeliveryError(Reason.CHAT_NOT_FOUND, "upgraded", moved_to="c2")]
    await say(core, OutgoingMessage("Hi"))

    async with core.db.read() as tx:
        assert (await core.subscribers.get(tx, PROJECT, "sub_1")).chat_id == "c2"
    assert [sent.chat_id for sent in core.recording().sent] == ["c2"]


async def test_what_the_bot_says_next_closes_a_question_of_the_project(core: MemoryCore) -> None:
    await say(core, QUESTION)
    await say(core, OutgoingMessage("By the way"))

    assert await answer(core, "2") is None


async def test_what_the_bot_says_next_leaves_a_sign_in_open_for_its_ten_minutes(
    core: MemoryCore,
) -> None:
    await say(core, OutgoingMessage("Is it you?", buttons=((Button("Yes", data="~a:1"),),)))
    core.clock.advance(600)
    await say(core, OutgoingMessage("By the way"))
    in_time = await answer(core, "1")
    core.clock.advance(1)
    await say(core, OutgoingMessage("By the way"))

    assert in_time == ("~a:1", "m1")
    assert await answer(core, "1") is None


@pytest.mark.parametrize("text", ["2", " no ", "NO!", "2."])
async def test_a_number_or_a_buttons_own_word_is_its_press(core: MemoryCore, text: str) -> None:
    await say(core, QUESTION)

    assert await answer(core, text) == ("n", "m1")


@pytest.mark.parametrize("text", ["3", "no way", "", "yes no"])
async def test_other_words_are_no_answer(core: MemoryCore, text: str) -> None:
    await say(core, QUESTION)

    assert await answer(core, text) is None


async def test_where_there_are_buttons_or_the_key_is_lost_words_are_words(
    core: MemoryCore,
) -> None:
    await say(core, QUESTION)
    core.recording().capabilities = Capabilities()
    where_there_are_buttons = await answer(core, "2")
    core.recording().capabilities = Capabilities(buttons="words")
    async with core.db.transaction() as tx:
        await offers.change(tx, "messenger_a", "c1", "m1", sealed="v1.unreadable")

    assert where_there_are_buttons is None
    assert await answer(core, "2") is None
