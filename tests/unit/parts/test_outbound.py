"""What a channel sends: its gate, its pace, and buttons in words."""

import json
import time
from typing import Any

import pytest

from msgsvc_core.channels.contract import Capabilities, Pace
from msgsvc_core.channels.failures import ChannelPaused, DeliveryError, LimitReached, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound import RESERVED_S, OutboundGates
from msgsvc_core.channels.words import ChannelSender, TypedAnswers
from msgsvc_core.config.settings import JobSettings
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NewJob
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import FakeJobContext, FakeTx, claimed
from tests.unit.parts.channels import Observed, outages_with, watched_states
from tests.unit.parts.outbound import button_pages
from tests.unit.parts.rows import NOW_MS

# ---- the way out --------------------------------------------------------------------------------


def gates_with(core: FakeContext, observed: Observed) -> OutboundGates:
    states = watched_states(core, observed)
    return OutboundGates(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        channels=core.channels,
        states=states,
        outages=outages_with(core, observed),
        metrics=core.metrics.channels,
        settings=JobSettings(outage_failures=2),
    )


JOB = claimed(NewJob("message.deliver", lane=lane_of("messenger_a")))


async def call(core: FakeContext, gates: OutboundGates, *failures: DeliveryError) -> str:
    channel = core.channels.recording("messenger_a")
    channel.failures += failures
    message = OutgoingMessage("Hi")
    return await gates["messenger_a"].call(channel, JOB, "c1", lambda: channel.send("c1", message))


async def test_a_bot_that_is_told_to_wait_makes_no_call_until_then() -> None:
    core = plugin_context()
    gates = gates_with(core, Observed())
    core.db.answers.append(1)
    with pytest.raises(DeliveryError):
        await call(core, gates, DeliveryError(Reason.RATE_LIMITED, "slow down", 5))
    with pytest.raises(ChannelPaused):
        await call(core, gates)
    core.clock.advance(5)

    # The next owner of the lane keeps to it as well.
    assert core.db.statements[0][1]["until_ms"] == NOW_MS + 5_000
    assert await call(core, gates) == "m1"


async def test_a_limit_of_the_channels_own_pauses_neither_bot_nor_chat() -> None:
    core = plugin_context()
    gates = gates_with(core, Observed())
    with pytest.raises(LimitReached):
        await call(core, gates, LimitReached("5 messages an hour to one number"))

    assert await call(core, gates) == "m1"
    assert gates["messenger_a"].chat_delay_s("c1", 10) is None
    assert core.db.statements == []


async def test_one_chats_wait_holds_up_no_other() -> None:
    core = plugin_context()
    gates = gates_with(core, Observed())
    refusal = DeliveryError(Reason.RATE_LIMITED, "slow down", 5, scope="chat")
    with pytest.raises(DeliveryError):
        await call(core, gates, refusal)
    gate = gates["messenger_a"]

    assert gate.chat_delay_s("c1", 10) == 5
    assert gate.chat_delay_s("c2", 10) is None
    assert not gate.closed


async def test_calls_that_nobody_answers_open_the_circuit() -> None:
    core, observed = plugin_context(), Observed()
    gates = gates_with(core, observed)
    away = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "timeout") for _ in range(2)]
    core.db.answers.append(1)
    for failure in away:
        with pytest.raises(DeliveryError):
            await call(core, gates, failure)

    # The first may be the message's own fault.
    assert [failure.outage for failure in away] == [False, True]
    assert observed.told == [("unavailable", "messenger_a", "timeout")]
    with pytest.raises(ChannelPaused):
        await call(core, gates)


async def test_a_ban_stops_the_bot_and_costs_the_message_nothing_the_second_time() -> None:
    core, observed = plugin_context(), Observed()
    gates = gates_with(core, observed)
    core.db.answers.append(1)
    with pytest.raises(DeliveryError):
        await call(core, gates, DeliveryError(Reason.BOT_BANNED, "Unauthorized"))

    assert observed.told == [
        ("stopped", "messenger_a", "bot_banned", "Unauthorized"),
        ("changed", "messenger_a", True),
    ]
    with pytest.raises(ChannelPaused):
        await call(core, gates)


async def test_later_jobs_of_a_receiver_stay_behind_those_that_were_put_back() -> None:
    core = plugin_context()
    core.channels.recording("messenger_a").pace = Pace(per_chat_s=1)
    gate = gates_with(core, Observed())["messenger_a"]
    first, second, other = (
        claimed(
            NewJob("message.deliver", {"subscriber_id": who}, lane=lane_of("messenger_a")),
            now_ms=NOW_MS,
        )
        for who in ("sub_1", "sub_1", "sub_2")
    )
    gate.reschedule([first], NOW_MS + 5_000)
    ctx = FakeJobContext(core.db)
    left = await gate.defer_overtaking(ctx, [second, other])

    assert left == [other]
    assert ctx.rescheduled == [(second, NOW_MS + 6_000)]


def test_jobs_that_wait_for_something_else_keep_the_bots_turns_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, now_s = plugin_context(), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    core.channels.recording("messenger_a").pace = Pace(per_bot_s=30)
    gate = gates_with(core, Observed())["messenger_a"]
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


def test_a_change_reaches_the_gate_and_wakes_its_lane() -> None:
    core, woken = plugin_context(), list[tuple[str, int]]()
    core.jobs.woken_by(lambda lane, at_ms: woken.append((lane, at_ms)))
    gates = gates_with(core, Observed())
    gates.changed("messenger_a", stopped=True)

    assert gates.gate_of(lane_of("messenger_a")).closed
    assert woken == [(lane_of("messenger_a"), NOW_MS)]
    assert gates["messenger_a"].capacity().jobs == 0


# ---- buttons in words ---------------------------------------------------------------------------

QUESTION = OutgoingMessage(
    "Are you coming?", buttons=((Button("Yes", data="y"), Button("No", data="n")),)
)


def sender_with(core: FakeContext, moved: list[tuple[str, str]]) -> ChannelSender:
    async def on_moved(_tx: Tx, _channel: str, chat_id: str, new_chat_id: str) -> None:
        moved.append((chat_id, new_chat_id))

    return ChannelSender(
        db=core.db,
        clock=core.clock,
        secrets=core.secrets,
        texts=core.texts,
        pages=button_pages(core),
        on_moved=on_moved,
        language_of=core.subscribers.language_of,
    )


async def test_buttons_are_numbered_and_kept_before_the_call() -> None:
    core = plugin_context()
    channel = core.channels.recording("messenger_a")
    channel.capabilities = Capabilities(buttons="words")
    core.db.answers += [[{"user_id": "7", "lang": "en"}], 1, 1]
    await sender_with(core, []).send(channel, "c1", QUESTION)

    [text] = channel.texts
    assert text == "Are you coming?\n\n1 - Yes\n2 - No\nAnswer with the number."
    kept, named = core.db.statements[1][1], core.db.statements[2][1]
    assert json.loads(core.secrets.decrypt(kept["sealed"])) == [[1, "Yes", "y"], [2, "No", "n"]]
    assert (named["offer_id"], named["message_ref"]) == (kept["offer_id"], "m1")


async def test_a_chat_that_goes_on_elsewhere_is_followed() -> None:
    core, moved = plugin_context(), list[tuple[str, str]]()
    channel = core.channels.recording("messenger_a")
    channel.failures = [DeliveryError(Reason.CHAT_NOT_FOUND, "upgraded", moved_to="c2")]
    await sender_with(core, moved).send(channel, "c1", OutgoingMessage("Hi"))

    assert moved == [("c1", "c2")]
    assert [sent.chat_id for sent in channel.sent] == ["c2"]


async def test_what_the_bot_says_next_closes_a_question_of_the_project() -> None:
    core = plugin_context()
    channel = core.channels.recording("messenger_a")
    channel.capabilities = Capabilities(buttons="words")
    core.db.answers += [[{"found": 1}], 1]
    await sender_with(core, []).send(channel, "c1", OutgoingMessage("By the way"))

    closed = core.db.statements[1][1]
    # A sign-in stays open for its ten minutes.
    assert (closed["own"], closed["own_since_ms"]) == ("own%", NOW_MS - 600_000)


async def read_answer(text: str, *, buttons: Any = "words", sealed: str | None = None) -> Any:
    core = plugin_context()
    channel = core.channels.recording("messenger_a")
    channel.capabilities = Capabilities(buttons=buttons)
    choices = [[1, "Yes", "y"], [2, "No", "n"]]
    kept = sealed or core.secrets.encrypt(json.dumps(choices))
    tx = FakeTx(answers=[[{"sealed": kept, "message_ref": "m1"}]])
    answers = TypedAnswers(clock=core.clock, secrets=core.secrets, answer_hours=24)
    found = await answers.press_in(tx, channel, "c1", text)
    return None if found is None else (found[0].data, found[1])


@pytest.mark.parametrize("text", ["2", " no ", "NO!", "2."])
async def test_a_number_or_a_buttons_own_word_is_its_press(text: str) -> None:
    assert await read_answer(text) == ("n", "m1")


@pytest.mark.parametrize("text", ["3", "no way", "", "yes no"])
async def test_other_words_are_no_answer(text: str) -> None:
    assert await read_answer(text) is None


async def test_where_there_are_buttons_or_the_key_is_lost_words_are_words() -> None:
    assert await read_answer("2", buttons="native") is None
    assert await read_answer("2", sealed="v1.unreadable") is None
