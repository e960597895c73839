"""What is known of a channel: stopped, away, receiving; and what its metrics say."""

from typing import Any

from msgsvc_core.channels.contract import ChannelHealth
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outages import PROBE_JOB
from msgsvc_core.channels.reception_health import ReceptionHealth
from msgsvc_core.channels.reception_models import InterruptionReason
from msgsvc_core.channels.state_metrics import ChannelStateMetrics
from msgsvc_core.channels.states import ChannelState
from msgsvc_core.channels.troubles import ChannelTrouble, ChannelTroubles
from msgsvc_core.config.settings import Section
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NewJob
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeChannels, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.channels import (
    FAX,
    OWN,
    Fax,
    Observed,
    outages_with,
    own_channel,
    state,
    watched_states,
)
from tests.unit.parts.outbound import outages_of, states_of
from tests.unit.parts.rows import NOW_MS

# ---- their state --------------------------------------------------------------------------------


async def test_a_stop_is_told_once_and_to_observers_after_the_commit() -> None:
    core, observed = plugin_context(), Observed()
    states, channel, tx = watched_states(core, observed), own_channel(core), FakeTx(answers=[1, 0])
    assert await states.stop(tx, channel, "bot_banned", "Unauthorized")
    assert not await states.stop(tx, channel, "bot_banned", "Unauthorized")
    assert observed.told == [("stopped", "chn_1", "bot_banned", "Unauthorized")]
    tx.commit()

    assert observed.told[1:] == [("changed", "chn_1", True)]
    assert [(event.name, event.data["channel"]) for event in core.events.emitted] == [
        ("channel.stopped", "support")
    ]


async def test_of_a_shared_bot_no_project_is_told() -> None:
    core, observed = plugin_context(), Observed()
    await watched_states(core, observed).stop(
        FakeTx(answers=[1]), core.channels["messenger_a"], "bot_banned", "Unauthorized"
    )

    assert core.events.emitted == []
    assert observed.told == [("stopped", "messenger_a", "bot_banned", "Unauthorized")]


async def test_what_a_check_found_of_a_channel_that_was_changed_since_says_nothing() -> None:
    core, observed = plugin_context(), Observed()
    states, before = watched_states(core, observed), own_channel(core)
    own_channel(core)
    health = ChannelHealth(ok=False, detail="Unauthorized", revoked=True)

    assert not await states.apply_health(before, health, asked_at_ms=NOW_MS)
    assert core.db.statements == []


async def test_a_ban_after_the_question_outlives_its_answer() -> None:
    core, observed = plugin_context(), Observed()
    states, channel = watched_states(core, observed), own_channel(core)
    core.db.answers += [[state("chn_1", status="stopped")], 0]
    healthy = ChannelHealth(ok=True, detail="Shop bot")

    assert not await states.apply_health(channel, healthy, asked_at_ms=NOW_MS - 5)
    assert core.db.statements[-1][1]["until_ms"] == NOW_MS - 5
    assert observed.told == []


async def test_the_health_of_a_bot_that_works_writes_nothing() -> None:
    core, observed = plugin_context(), Observed()
    states, channel = watched_states(core, observed), own_channel(core)
    core.db.answers.append([])
    healthy = ChannelHealth(ok=True, detail="Shop bot")

    assert not await states.apply_health(channel, healthy, asked_at_ms=NOW_MS)
    assert core.db.commits == 0


async def test_stopped_bots_alone_are_asked_whether_they_may_work_again() -> None:
    core, observed = plugin_context(), Observed()
    stopped, paused = state(status="stopped"), state("messenger_b", paused_until_ms=NOW_MS + 1)
    core.db.answers += [[stopped, paused, state("chn_gone", status="stopped")], [stopped], 1]
    await watched_states(core, observed).check_stopped(FakeJobContext(core.db), [])

    assert observed.told == [("recovered", "messenger_a"), ("changed", "messenger_a", False)]


# ---- outages ------------------------------------------------------------------------------------


def asked(**health: Any) -> FakeContext:
    """A service whose project has a bot that answers so when it is asked."""
    core = plugin_context(channels=FakeChannels(kinds=[FAX]))
    core.channels.register(OWN, "fax", {"token": "t"})
    channel = core.channels["chn_1"]
    assert isinstance(channel, Fax)
    channel.health = ChannelHealth(**health)
    return core


async def test_an_outage_is_told_once_and_probed_soon() -> None:
    core, observed = plugin_context(), Observed()
    channel, outages = own_channel(core), outages_with(core, observed)
    assert await outages.start(FakeTx(answers=[1]), channel, "x" * 400)
    assert not await outages.start(FakeTx(answers=[0]), channel, "again")

    [told] = observed.told
    assert (told[:2], len(str(told[2]))) == (("unavailable", "chn_1"), 300)
    assert core.events.names == ["channel.unavailable"]
    [job] = core.jobs.named(PROBE_JOB)
    # Ten seconds, a fifth more or less.
    assert 8_000 <= (job.run_at_ms or 0) - NOW_MS <= 12_000


async def probe(core: FakeContext, observed: Observed, *answers: Answer) -> FakeJobContext:
    core.db.answers += [[state("chn_1", outage_since_ms=NOW_MS, outage_probes=1)], *answers]
    ctx = FakeJobContext(core.db)
    job = claimed(NewJob(PROBE_JOB, {"channel": "chn_1"}))
    await outages_with(core, observed).probe(ctx, [job])
    return ctx


async def test_a_platform_that_is_still_away_is_asked_again_later() -> None:
    core, observed = asked(ok=False, detail="no answer", unreachable=True), Observed()
    ctx = await probe(core, observed, 1)

    [(_, after_s)] = ctx.rescheduled
    # The third probe: four times the first wait.
    assert after_s is not None
    assert 32 <= after_s <= 48
    params = core.db.statements[-1][1]
    assert (params["trial"], params["probes"], params["detail"]) == (0, 2, "no answer")


async def test_a_platform_that_answers_is_tried_with_what_waits() -> None:
    core, observed = asked(ok=True, detail="Shop bot"), Observed()
    await core.jobs.enqueue(FakeTx(), NewJob("message.deliver", lane=lane_of("chn_1")))
    ctx = await probe(core, observed, 1)

    assert core.db.statements[-1][1]["trial"] == 2
    assert (ctx.completed, observed.told) == ([], [("outage", "chn_1")])


async def test_an_outage_ends_at_once_where_nothing_waits() -> None:
    core, observed = asked(ok=True, detail="Shop bot"), Observed()
    ctx = await probe(core, observed, 1)

    assert len(ctx.completed) == 1
    assert observed.told == [("recovered", "chn_1"), ("outage", "chn_1")]
    assert core.events.names == ["channel.recovered"]


async def test_a_probe_of_what_is_no_outage_any_more_ends() -> None:
    core = plugin_context()
    ctx = FakeJobContext(core.db)
    core.db.answers.append([state("chn_1")])
    await outages_of(core).probe(ctx, [claimed(NewJob(PROBE_JOB, {"channel": "chn_1"}))])

    assert len(ctx.completed) == 1


# ---- reception ----------------------------------------------------------------------------------


def reception_of_bots(core: FakeContext) -> ReceptionHealth:
    return ReceptionHealth(
        clock=core.clock,
        db=core.db,
        events=core.events,
        channels=core.channels,
        states=states_of(core),
        failing_s=60,
    )


POLLING = InterruptionReason.POLLING_FAILED


async def test_an_interruption_is_noted_once_it_has_lasted_and_told_once() -> None:
    core = plugin_context()
    watch = reception_of_bots(core).watch(own_channel(core))
    await watch.failed(POLLING, "timeout")
    core.clock.advance(59)
    await watch.failed(POLLING, "timeout")
    assert core.db.statements == []
    core.clock.advance(1)
    core.db.answers.append(1)
    await watch.failed(POLLING, "timeout")
    await watch.failed(POLLING, "timeout")

    [event] = core.events.emitted
    # Since the first failure, not since it was noted.
    assert core.db.statements[0][1]["since_ms"] == NOW_MS
    assert (event.name, event.data["channel"]) == ("channel.reception_interrupted", "support")


async def test_another_reason_is_noted_and_not_told_again() -> None:
    core = plugin_context()
    channel, tx = own_channel(core), FakeTx(answers=[0, 1])
    began = await reception_of_bots(core).interrupt(tx, channel, POLLING, "x" * 400, NOW_MS)

    assert (began, core.events.emitted) == (False, [])
    assert len(tx.statements[1][1]["detail"]) == 300


async def test_a_bot_that_receives_again_is_told_of_by_whoever_receives_for_it() -> None:
    core = plugin_context()
    watch = reception_of_bots(core).watch(own_channel(core))
    # Another process noted it.
    core.db.answers += [[state("chn_1", interrupted_since_ms=NOW_MS)], 1]
    await watch.worked()
    await watch.worked()

    assert core.events.names == ["channel.reception_recovered"]


async def test_of_a_channel_that_was_changed_nothing_is_noted() -> None:
    core = plugin_context()
    watch = reception_of_bots(core).watch(own_channel(core))
    own_channel(core)
    await watch.failed(POLLING, "timeout")
    core.clock.advance(60)
    await watch.failed(POLLING, "timeout")

    assert core.db.statements == []


# ---- metrics ------------------------------------------------------------------------------------


async def test_what_is_wrong_with_channels_is_counted_by_their_labels() -> None:
    core = plugin_context()
    own_channel(core)

    async def troubled(_tx: Tx) -> list[ChannelState]:
        def of(channel: str, **fields: Any) -> ChannelState:
            return ChannelState(**state(channel, **fields))

        return [
            of("messenger_a", status="stopped"),
            of("messenger_b", outage_since_ms=5_000, interrupted_since_ms=1_000),
            of("chn_1", status="stopped"),
        ]

    metrics = ChannelStateMetrics(
        configured=("messenger_a", "messenger_b"),
        label=core.metrics.channels.label,
        find=core.channels.get,
        troubled=troubled,
        database=core.metrics.database,
    )
    await core.metrics.database.refresh()
    samples = {
        (sample.name, sample.labels["channel"]): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }

    assert samples["msgsvc_channels_stopped", "messenger_a"] == 1
    assert samples["msgsvc_channels_stopped", "messenger_b"] == 0
    assert samples["msgsvc_channels_stopped", core.metrics.channels.label("chn_1")] == 1
    name = "msgsvc_channel_unavailable_since_timestamp_seconds"
    assert samples[name, "messenger_b"] == 5
    # It is to receive nothing, and so is not interrupted.
    name = "msgsvc_channel_reception_interrupted_since_timestamp_seconds"
    assert samples[name, "messenger_b"] == 0
    core.metrics.database.is_up = False
    assert [sample for family in metrics.collect() for sample in family.samples] == []


# ---- troubles -----------------------------------------------------------------------------------


async def test_a_channel_has_one_trouble_and_a_late_one_is_told_in_minutes() -> None:
    core = plugin_context()
    channel = own_channel(core)
    troubles = ChannelTroubles(clock=core.clock, channels=core.channels, states=states_of(core))
    shared = len(core.channels.list_for_project(PROJECT)) - 1
    well: list[Answer] = [[], []] * shared
    stop = state("chn_1", status="stopped", detail="Unauthorized")
    stopped = FakeTx(answers=[[stop], *well])
    since = [{"run_at_ms": NOW_MS - 299_999}]
    late = FakeTx(answers=[[], *well, since, [{"run_at_ms": NOW_MS - 300_000}]])
    busy = FakeTx(answers=[[], *well, since, [{"run_at_ms": NOW_MS + 1}]])

    assert await troubles.of_project(stopped, PROJECT) == [
        ChannelTrouble(channel.name, "stopped", "Unauthorized")
    ]
    [trouble] = await troubles.of_project(late, PROJECT)
    assert (trouble.kind, trouble.waited_ms) == ("late", 300_000)
    assert await troubles.of_project(busy, PROJECT) == []


class Limited(Fax):
    async def limitation(self, tx: Tx) -> str | None:
        return "5 segments a day for the channel: 2 stopped"


async def test_a_limit_of_its_own_is_a_channels_trouble() -> None:
    core = plugin_context()
    limited = ChannelKind("limited", Section, lambda _context, identity, _: Limited(identity))
    channels = FakeChannels(kinds=[limited])
    channels.register(OWN, "limited", {})
    troubles = ChannelTroubles(clock=core.clock, channels=channels, states=states_of(core))
    well: list[Answer] = [[], []] * (len(channels.list_for_project(PROJECT)) - 1)

    assert await troubles.of_project(FakeTx(answers=[[], *well]), PROJECT) == [
        ChannelTrouble(OWN.name, "limited", "5 segments a day for the channel: 2 stopped")
    ]
