"""What is known of a channel: stopped, away, receiving; and what its metrics say."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.channels.contract import ChannelHealth
from msgsvc_core.channels.health.outages import PROBE_JOB, ChannelOutages
from msgsvc_core.channels.health.problems import ChannelTrouble, ChannelTroubles
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.reception.models import InterruptionReason
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT
from tests.unit.parts.channels import (
    OWN,
    Fax,
    FaxPlugin,
    Observed,
    outages_with,
    own_channel,
    put_state,
    the_fax,
    watched_states,
)
from tests.unit.parts.rows import NOW_MS


class LimitedPlugin:
    """Registers the channel kind `limited`, which a limit of its own stops."""

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        return [ChannelKind("limited", Section, lambda _context, identity, _: Limited(identity))]


class Limited(Fax):
    async def limitation(self, tx: Tx) -> str | None:
        return "5 segments a day for the channel: 2 stopped"


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    extra = [("fax", FaxPlugin()), ("limited", LimitedPlugin())]
    async with memory_core(extra_plugins=extra) as core:
        yield core


async def state_of(core: MemoryCore, channel: str = OWN.key) -> ChannelState | None:
    """What is stored of a channel."""
    async with core.db.read() as tx:
        return await core.service.get(ChannelStates).find(tx, channel)


# ---- their state --------------------------------------------------------------------------------


async def test_a_stop_is_told_once_and_to_observers_after_the_commit(core: MemoryCore) -> None:
    observed = Observed()
    states, channel = watched_states(core, observed), own_channel(core)
    async with core.db.transaction() as tx:
        assert await states.stop(tx, channel, "bot_banned", "Unauthorized")
        assert not await states.stop(tx, channel, "bot_banned", "Unauthorized")
        assert observed.told == [("stopped", "chn_1", "bot_banned", "Unauthorized")]

    assert observed.told[1:] == [("changed", "chn_1", True)]
    assert [(event.name, event.data["channel"]) for event in core.emitted] == [
        ("channel.stopped", "support")
    ]


async def test_of_a_shared_bot_no_project_is_told(core: MemoryCore, tx: Tx) -> None:
    observed, channel = Observed(), core.channels["messenger_a"]
    await watched_states(core, observed).stop(tx, channel, "bot_banned", "Unauthorized")

    assert core.emitted == []
    assert observed.told == [("stopped", "messenger_a", "bot_banned", "Unauthorized")]


async def test_what_a_check_found_of_a_channel_that_was_changed_since_says_nothing(
    core: MemoryCore,
) -> None:
    states, before = core.service.get(ChannelStates), own_channel(core)
    own_channel(core)
    health = ChannelHealth(ok=False, detail="Unauthorized", revoked=True)

    assert not await states.apply_health(before, health, asked_at_ms=NOW_MS)
    assert await state_of(core) is None


async def test_a_ban_after_the_question_outlives_its_answer(core: MemoryCore) -> None:
    observed = Observed()
    states, channel = watched_states(core, observed), own_channel(core)
    async with core.db.transaction() as tx:
        await put_state(tx, "chn_1", status="stopped")
    healthy = ChannelHealth(ok=True, detail="Shop bot")
    assert not await states.apply_health(channel, healthy, asked_at_ms=NOW_MS - 5)
    assert observed.told == []

    assert await states.apply_health(channel, healthy, asked_at_ms=NOW_MS)
    assert observed.told == [("recovered", "chn_1"), ("changed", "chn_1", False)]


async def test_the_health_of_a_bot_that_works_writes_nothing(core: MemoryCore) -> None:
    observed = Observed()
    states, channel = watched_states(core, observed), own_channel(core)
    healthy = ChannelHealth(ok=True, detail="Shop bot")

    assert not await states.apply_health(channel, healthy, asked_at_ms=NOW_MS)
    assert (await state_of(core), observed.told) == (None, [])


async def test_stopped_bots_alone_are_asked_whether_they_may_work_again(core: MemoryCore) -> None:
    observed = Observed()
    paused = fax_that_says(core, ok=True, detail="Shop bot")
    async with core.db.transaction() as tx:
        await put_state(tx, "messenger_a", status="stopped")
        await put_state(tx, paused.key, paused_until_ms=NOW_MS + 1)
        await put_state(tx, "chn_gone", status="stopped")
    await watched_states(core, observed).check_stopped(JobInTest(core.db), [])

    assert observed.told == [("recovered", "messenger_a"), ("changed", "messenger_a", False)]
    assert paused.checks == 0


# ---- outages ------------------------------------------------------------------------------------


def fax_that_says(core: MemoryCore, **health: Any) -> Fax:
    """The project's own bot, which answers so when its platform is asked."""
    core.channels.register(OWN, "fax", {"token": "t"})
    bot = the_fax(core, OWN.key)
    bot.health = ChannelHealth(**health)
    return bot


async def test_an_outage_is_told_once_and_probed_soon(core: MemoryCore, tx: Tx) -> None:
    observed, channel = Observed(), own_channel(core)
    outages = outages_with(core, observed)
    assert await outages.start(tx, channel, "x" * 400)
    assert not await outages.start(tx, channel, "again")

    [told] = observed.told
    assert (told[:2], len(str(told[2]))) == (("unavailable", "chn_1"), 300)
    assert core.event_names == ["channel.unavailable"]
    [job] = await core.jobs_named(tx, PROBE_JOB)
    # Ten seconds, a fifth more or less.
    assert 8_000 <= job.run_at_ms - NOW_MS <= 12_000


async def probe(core: MemoryCore, observed: Observed) -> JobInTest:
    """Asks the platform for the second time since it went away."""
    async with core.db.transaction() as tx:
        await put_state(tx, "chn_1", outage_since_ms=NOW_MS, outage_probes=1)
    ctx = JobInTest(core.db)
    job = claimed(NewJob(PROBE_JOB, {"channel": "chn_1"}))
    await outages_with(core, observed).probe(ctx, [job])
    return ctx


async def test_a_platform_that_is_still_away_is_asked_again_later(core: MemoryCore) -> None:
    fax_that_says(core, ok=False, detail="no answer", unreachable=True)
    ctx = await probe(core, Observed())

    [(_, after_s)] = ctx.rescheduled
    # The third probe: four times the first wait.
    assert after_s is not None
    assert 32 <= after_s <= 48
    state = await state_of(core)
    assert state is not None
    assert (state.outage_trial, state.outage_probes, state.outage_detail) == (0, 2, "no answer")


async def test_a_platform_that_answers_is_tried_with_what_waits(core: MemoryCore) -> None:
    observed = Observed()
    fax_that_says(core, ok=True, detail="Shop bot")
    async with core.db.transaction() as tx:
        await core.jobs.enqueue(tx, NewJob("message.deliver", lane=lane_of("chn_1")))
    ctx = await probe(core, observed)

    state = await state_of(core)
    assert state is not None
    assert state.outage_trial == 2
    assert (ctx.completed, observed.told) == ([], [("outage", "chn_1")])


async def test_an_outage_ends_at_once_where_nothing_waits(core: MemoryCore) -> None:
    observed = Observed()
    fax_that_says(core, ok=True, detail="Shop bot")
    ctx = await probe(core, observed)

    assert len(ctx.completed) == 1
    assert observed.told == [("recovered", "chn_1"), ("outage", "chn_1")]
    assert core.event_names == ["channel.recovered"]


async def test_a_probe_of_what_is_no_outage_any_more_ends(core: MemoryCore) -> None:
    own_channel(core)
    async with core.db.transaction() as tx:
        await put_state(tx, "chn_1")
    ctx, job = JobInTest(core.db), claimed(NewJob(PROBE_JOB, {"channel": "chn_1"}))
    await core.service.get(ChannelOutages).probe(ctx, [job])

    assert ctx.completed == [job]


# ---- reception ----------------------------------------------------------------------------------

POLLING = InterruptionReason.POLLING_FAILED


async def test_an_interruption_is_noted_once_it_has_lasted_and_told_once(core: MemoryCore) -> None:
    watch = core.service.get(ReceptionHealth).watch(own_channel(core))
    lasting_s = core.config.jobs.reception_failing_s
    await watch.failed(POLLING, "timeout")
    core.clock.advance(lasting_s - 1)
    await watch.failed(POLLING, "timeout")
    assert await state_of(core) is None
    core.clock.advance(1)
    await watch.failed(POLLING, "timeout")
    await watch.failed(POLLING, "timeout")

    [event] = core.emitted
    state = await state_of(core)
    assert state is not None
    # Since the first failure, not since it was noted.
    assert state.interrupted_since_ms == NOW_MS
    assert (event.name, event.data["channel"]) == ("channel.reception_interrupted", "support")


async def test_another_reason_is_noted_and_not_told_again(core: MemoryCore) -> None:
    channel = own_channel(core)
    async with core.db.transaction() as tx:
        await put_state(tx, "chn_1", interrupted_since_ms=NOW_MS, interrupted_detail="timeout")
        began = await core.service.get(ReceptionHealth).interrupt(
            tx, channel, POLLING, "x" * 400, NOW_MS + 1
        )

    state = await state_of(core)
    assert (began, core.emitted) == (False, [])
    assert state is not None
    assert (state.interrupted_since_ms, state.interrupted_detail) == (NOW_MS, "x" * 300)


async def test_a_bot_that_receives_again_is_told_of_by_whoever_receives_for_it(
    core: MemoryCore,
) -> None:
    watch = core.service.get(ReceptionHealth).watch(own_channel(core))
    async with core.db.transaction() as tx:
        # Another process noted it.
        await put_state(tx, "chn_1", interrupted_since_ms=NOW_MS)
    await watch.worked()
    await watch.worked()

    assert core.event_names == ["channel.reception_recovered"]


async def test_of_a_channel_that_was_changed_nothing_is_noted(core: MemoryCore) -> None:
    watch = core.service.get(ReceptionHealth).watch(own_channel(core))
    own_channel(core)
    await watch.failed(POLLING, "timeout")
    core.clock.advance(core.config.jobs.reception_failing_s)
    await watch.failed(POLLING, "timeout")

    assert await state_of(core) is None


# ---- metrics ------------------------------------------------------------------------------------


async def test_what_is_wrong_with_channels_is_counted_by_their_labels(core: MemoryCore) -> None:
    own_channel(core)
    async with core.db.transaction() as tx:
        await put_state(tx, "messenger_a", status="stopped")
        await put_state(tx, "messenger_b", outage_since_ms=5_000, interrupted_since_ms=1_000)
        await put_state(tx, "chn_1", status="stopped")
    await core.metrics.database.refresh()

    assert sample(core, "msgsvc_channels_stopped", "messenger_a") == 1
    assert sample(core, "msgsvc_channels_stopped", "messenger_b") == 0
    own = core.metrics.channels.label("chn_1")
    assert sample(core, "msgsvc_channels_stopped", own) == 1
    name = "msgsvc_channel_unavailable_since_timestamp_seconds"
    assert sample(core, name, "messenger_b") == 5
    # It is to receive nothing, and so is not interrupted.
    name = "msgsvc_channel_reception_interrupted_since_timestamp_seconds"
    assert sample(core, name, "messenger_b") == 0
    core.metrics.database.is_up = False
    assert sample(core, "msgsvc_channels_stopped", "messenger_a") is None


def sample(core: MemoryCore, name: str, channel: str) -> float | None:
    return core.metrics.registry.get_sample_value(name, {"channel": channel})


# ---- troubles -----------------------------------------------------------------------------------


async def test_a_channel_has_one_trouble_and_a_late_one_is_told_in_minutes(
    core: MemoryCore, tx: Tx
) -> None:
    channel, troubles = own_channel(core), core.service.get(ChannelTroubles)
    await put_state(tx, "chn_1", status="stopped", detail="Unauthorized")
    await core.jobs.enqueue(tx, NewJob("message.deliver", lane=lane_of("chn_1")))
    core.clock.advance(300)
    assert await troubles.of_project(tx, PROJECT) == [
        ChannelTrouble(channel.name, "stopped", "Unauthorized")
    ]
    await core.service.get(ChannelStates).clear_stop(tx, "chn_1")

    [trouble] = await troubles.of_project(tx, PROJECT)
    assert (trouble.kind, trouble.waited_ms) == ("late", 300_000)


async def test_a_channel_whose_messages_wait_for_less_than_five_minutes_is_not_late(
    core: MemoryCore, tx: Tx
) -> None:
    own_channel(core)
    later_ms = NOW_MS + HOUR_MS
    for run_at_ms in (NOW_MS, later_ms):
        job = NewJob("message.deliver", lane=lane_of("chn_1"), run_at_ms=run_at_ms)
        await core.jobs.enqueue(tx, job)
    core.clock.advance(299.999)

    assert await core.service.get(ChannelTroubles).of_project(tx, PROJECT) == []


async def test_a_limit_of_its_own_is_a_channels_trouble(core: MemoryCore, tx: Tx) -> None:
    core.channels.register(OWN, "limited", {})

    assert await core.service.get(ChannelTroubles).of_project(tx, PROJECT) == [
        ChannelTrouble(OWN.name, "limited", "5 segments a day for the channel: 2 stopped")
    ]
