"""Channels, their state, and the way in and out: rules built from fakes."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.addresses import ChannelAddresses
from msgsvc_core.channels.commands import CommandCatalogue, ListedCommand
from msgsvc_core.channels.contract import BotProfile, Capabilities, Channel, ChannelHealth, Pace
from msgsvc_core.channels.dispatch import InboundDispatcher
from msgsvc_core.channels.failures import ChannelPaused, DeliveryError, ForeignBot, Reason
from msgsvc_core.channels.inbound import Inbound, InboundContext, InboundRule
from msgsvc_core.channels.kinds import ChannelKind, ChannelKinds, WrongKind, WrongSettings
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outages import PROBE_JOB, ChannelOutages
from msgsvc_core.channels.outbound import OutboundGates
from msgsvc_core.channels.reception_health import ReceptionHealth
from msgsvc_core.channels.reception_models import InterruptionReason
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.channels.state_metrics import ChannelStateMetrics
from msgsvc_core.channels.states import ChannelState, ChannelStates
from msgsvc_core.channels.updates import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    MessageReceived,
    Started,
    Update,
)
from msgsvc_core.channels.words import ChannelSender, TypedAnswers
from msgsvc_core.config.sections import OwnChannelSettings
from msgsvc_core.config.settings import JobSettings, Section
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NewJob, exponential
from msgsvc_core.kernel.errors import Conflict, Unavailable, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeChannels,
    FakeJobContext,
    FakeTx,
    channel_context,
    claimed,
    fake_settings,
    inbound_context,
)
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.outbound import ignore, outages_of, states_of
from tests.unit.parts.rows import NOW_MS, row_of

OWN = ChannelIdentity("support", "chn_1", PROJECT)


def own_channel(core: FakeContext) -> RecordingChannel:
    """The project's own bot `support`."""
    core.channels.register(OWN, "recording", {})
    return core.channels.recording("chn_1")


def state(channel: str = "messenger_a", **fields: Any) -> dict[str, Any]:
    values = {"status": "working", "reason": None, "detail": None, "paused_until_ms": 0}
    return row_of(ChannelState(channel, changed_at_ms=NOW_MS, **{**values, **fields}))


# ---- kinds --------------------------------------------------------------------------------------


class FaxSettings(Section):
    """Of a kind with a secret, and with what only the operator sets."""

    token: SecretStr
    base_url: str = "https://fax.example"
    lines: int = 1


class Fax(RecordingChannel):
    """Whether it was closed, and how it is when its platform is asked."""

    is_closed = False
    health = ChannelHealth(ok=True, detail="Shop bot")

    async def check(self) -> ChannelHealth:
        return self.health

    async def close(self) -> None:
        self.is_closed = True


def fax(_context: object, identity: ChannelIdentity, _settings: Section) -> Channel:
    return Fax(identity)


FAX = ChannelKind("fax", FaxSettings, fax, operator_settings=frozenset({"base_url"}), title="Fax")


def kinds_of(core: FakeContext, *allowed: str, **operators: Any) -> ChannelKinds:
    return ChannelKinds(
        [FAX, *RecordingPlugin().register_channel_kinds()],
        context=channel_context(),
        secrets=core.secrets,
        settings=OwnChannelSettings(kinds=allowed, settings={"fax": operators}),
    )


def test_a_project_has_channels_of_the_allowed_kinds_alone() -> None:
    core = plugin_context()

    assert set(kinds_of(core).for_projects) == {"fax", "recording"}
    assert set(kinds_of(core, "fax").for_projects) == {"fax"}
    with pytest.raises(WrongKind, match="fax"):
        kinds_of(core, "fax").check_own("recording", {})
    with pytest.raises(WrongKind, match="no loaded plugin"):
        kinds_of(core).check_own("pigeon", {})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"token": "t", "base_url": "http://10.0.0.1"}, "base_url: only the operator"),
        ({}, "token"),
        ({"token": "t", "lines": "many"}, "lines"),
        ({"token": "t", "colour": "red"}, "colour: there is no such setting"),
    ],
)
def test_what_a_project_may_not_set_is_refused_by_the_settings_name(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(WrongSettings, match=why):
        kinds_of(plugin_context()).check_own("fax", options)


def test_secrets_are_named_and_not_shown_and_what_the_operator_set_is_neither() -> None:
    kinds = kinds_of(plugin_context(), base_url="https://inside.example")
    shown = kinds.shown("fax", {"token": "t-1234", "lines": 2})

    assert (shown.values, shown.secrets) == ({"lines": 2}, ["token"])


def test_a_bot_is_known_by_its_secret_whatever_else_is_set() -> None:
    kinds = kinds_of(plugin_context())
    same = kinds.digests("fax", {"token": "t", "lines": 2})

    assert kinds.digests("fax", {"token": "t"}) == same
    assert kinds.digests("fax", {"token": "other"}) != same


# ---- the registry -------------------------------------------------------------------------------


class Received:
    """What a registry hands on, and how often it looked for channels of other processes."""

    def __init__(self) -> None:
        self.looks = 0
        self.checked: list[str] = []

    async def refresh(self) -> None:
        self.looks += 1

    async def apply_health(self, channel: Channel, _health: ChannelHealth, _at_ms: int) -> bool:
        self.checked.append(channel.key)
        return True


def addresses_of(core: FakeContext) -> ChannelAddresses:
    return ChannelAddresses(
        base_url="https://msgsvc.example",
        secrets=core.secrets,
        start_codes=StartCodes(clock=core.clock, secrets=core.secrets),
    )


def channels_of(core: FakeContext, received: Received | None = None) -> Channels:
    received = received or Received()
    return Channels(
        db=core.db,
        kinds=kinds_of(core),
        settings=fake_settings(),
        addresses=addresses_of(core),
        commands=CommandCatalogue(texts=core.texts, declared=list),
        refresh=received.refresh,
        receive=ignore,
        apply_health=received.apply_health,
    )


async def test_a_projects_own_channel_goes_before_the_shared_one_of_its_name() -> None:
    channels = channels_of(plugin_context())
    channels.register(ChannelIdentity("messenger_a", "chn_1", PROJECT), "recording", {})
    channels.register(ChannelIdentity("support", "chn_2", PROJECT), "recording", {})

    assert [each.key for each in channels.list_for_project(PROJECT)] == [
        "chn_1",
        "messenger_b",
        "chn_2",
    ]
    assert [each.key for each in channels.list_for_project("prj_2")] == [
        "messenger_a",
        "messenger_b",
    ]
    with pytest.raises(ForeignBot):
        channels.name_for("prj_2", "chn_1")


async def test_an_unknown_bot_is_looked_for_where_other_processes_write_theirs() -> None:
    received = Received()
    channels = channels_of(plugin_context(), received)

    assert await channels.find("chn_01JGYZ0000000000000000000") is None
    assert await channels.find("telegram") is None
    assert received.looks <= 1
    with pytest.raises(Conflict, match="the channel 'fax'"):
        await channels.get_bot(PROJECT, "chn_gone", "fax")
    with pytest.raises(Conflict, match="the one that is there now"):
        await channels.get_bot(PROJECT, "chn_gone", "messenger_a")


async def test_a_channel_that_changes_is_closed_after_the_calls_that_are_under_way() -> None:
    channels = channels_of(plugin_context())
    channels.register(OWN, "fax", {"token": "t"})
    async with channels.borrow("chn_1") as channel:
        channels.unregister("chn_1")
        assert isinstance(channel, Fax)
        assert not channel.is_closed
        await channel.send("c1", OutgoingMessage("still works"))

    assert channels.get("chn_1") is None
    await channels.close()
    assert channel.is_closed


async def test_a_profile_stays_while_the_bot_is_the_same() -> None:
    channels = channels_of(plugin_context())
    channels.register(OWN, "fax", {"token": "t"})
    channels["chn_1"].profile = BotProfile("Shop bot")
    channels.register(OWN, "fax", {"token": "t", "lines": 2})
    assert channels["chn_1"].profile == BotProfile("Shop bot")
    channels.register(OWN, "fax", {"token": "other"})

    assert channels["chn_1"].profile is None


def test_a_question_is_linked_only_where_it_can_be_answered() -> None:
    channels = channels_of(plugin_context())
    for name in ("messenger_a", "messenger_b"):
        one = channels[name]
        assert isinstance(one, RecordingChannel)
        one.capabilities = Capabilities(buttons="links" if name == "messenger_a" else "words")

    assert set(channels.deep_links(PROJECT, "auth_1")) == {"messenger_a", "messenger_b"}
    assert set(channels.deep_links(PROJECT, "auth_1", asks=True)) == {"messenger_b"}
    with pytest.raises(Unavailable):
        channels.deep_links(PROJECT, "auth_1", ["messenger_a"], asks=True)
    with pytest.raises(ValidationFailed, match="messenger_a"):
        channels.check_answers(PROJECT, "messenger_a")
    channels.check_answers(PROJECT, None)


def test_channels_of_one_kind_are_told_apart_by_their_names() -> None:
    channels = channels_of(plugin_context())
    channels.register(ChannelIdentity("sales", "chn_1", PROJECT), "fax", {"token": "1"})
    assert channels.display_name("sales", PROJECT) == "Fax"
    channels.register(ChannelIdentity("support_team", "chn_2", PROJECT), "fax", {"token": "2"})

    assert channels.display_name("support_team", PROJECT) == "Fax (Support Team)"
    assert channels.display_name("messenger_a") == "Messenger A"


def test_the_address_and_secret_of_a_webhook_are_its_channels_own() -> None:
    channels = channels_of(plugin_context())
    a, b = channels["messenger_a"], channels["messenger_b"]

    assert channels.hook_url(a) == "https://msgsvc.example/hooks/messenger_a"
    assert channels.hook_secrets(a) != channels.hook_secrets(b)
    assert len(channels.hook_secrets(a)[0]) == 64


async def test_where_no_link_carries_a_payload_people_write_it_or_its_short_code() -> None:
    core = plugin_context()
    channels, long = channels_of(core), "auth_s_0123456789012345678901"
    one = channels["messenger_a"]
    assert isinstance(one, RecordingChannel)
    one.capabilities = Capabilities(start_links=False)
    links = channels.deep_links(PROJECT, long)
    tx = FakeTx(answers=[1])
    await channels.remember_start(tx, PROJECT, long, NOW_MS + 1)

    [written] = channels.start_messages(PROJECT, long, links).values()
    assert long not in written
    assert core.secrets.decrypt(tx.statements[0][1]["sealed"]) == long
    # A project whose channels all have links needs none.
    one.capabilities = Capabilities()
    await channels.remember_start(FakeTx(), PROJECT, long, NOW_MS + 1)
    assert channels.qr_links(links, PROJECT, "x")["messenger_a"] == (
        "https://msgsvc.example/qr/messenger_a/x.svg"
    )


# ---- their state --------------------------------------------------------------------------------


class Observed:
    """What was told of a channel's state."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def changed(self, key: str, *, stopped: bool) -> None:
        self.told.append(("changed", key, stopped))

    def outage_changed(self, key: str) -> None:
        self.told.append(("outage", key))

    async def stopped(self, _tx: Tx, channel: Channel, reason: str, detail: str) -> None:
        self.told.append(("stopped", channel.key, reason, detail))

    async def recovered(self, _tx: Tx, channel: Channel) -> None:
        self.told.append(("recovered", channel.key))


def watched_states(core: FakeContext, observed: Observed) -> ChannelStates:
    states = ChannelStates(
        clock=core.clock,
        db=core.db,
        events=core.events,
        channels=core.channels,
        check_every_s=60,
        on_stopped=observed.stopped,
        on_recovered=observed.recovered,
    )
    states.observers.append(observed)
    return states


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
    core.db.answers.append(0)
    healthy = ChannelHealth(ok=True, detail="Shop bot")

    assert not await states.apply_health(channel, healthy, asked_at_ms=NOW_MS - 5)
    assert core.db.statements[0][1]["until_ms"] == NOW_MS - 5
    assert observed.told == []


async def test_stopped_bots_alone_are_asked_whether_they_may_work_again() -> None:
    core, observed = plugin_context(), Observed()
    stopped, paused = state(status="stopped"), state("messenger_b", paused_until_ms=NOW_MS + 1)
    core.db.answers += [[stopped, paused, state("chn_gone", status="stopped")], 1]
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


def outages_with(core: FakeContext, observed: Observed) -> ChannelOutages:
    async def unavailable(_tx: Tx, channel: Channel, detail: str) -> None:
        observed.told.append(("unavailable", channel.key, detail))

    return ChannelOutages(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        metrics=core.metrics.channels,
        channels=core.channels,
        states=watched_states(core, observed),
        wait_s=exponential(10, 2, 60),
        on_unavailable=unavailable,
    )


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


# ---- the way in ---------------------------------------------------------------------------------

ANN = ChannelUser("7", "Ann", lang="ru-RU")


class Handled:
    """A dispatcher that keeps what it was given."""

    def __init__(self, refuses: type[Exception] | None = None) -> None:
        self.contexts: list[InboundContext] = []
        self.unclaimed: list[InboundContext] = []
        self.refuses = refuses

    async def handle(self, ctx: InboundContext) -> None:
        if self.refuses is not None:
            raise self.refuses("refused")
        self.contexts.append(ctx)

    async def handle_unclaimed(self, ctx: InboundContext) -> None:
        self.unclaimed.append(ctx)


def inbound_of(core: FakeContext, handled: Handled) -> Inbound:
    return Inbound(
        db=core.db,
        clock=core.clock,
        texts=core.texts,
        channels=core.channels,
        outbox=core.outbox,
        dispatcher=handled,
        commands=CommandCatalogue(texts=core.texts, declared=list),
    )


HELLO = MessageReceived(update_id="u1", chat_id="c7", user=ANN, text="hello")
CHAT: Answer = [{"project_id": PROJECT, "lang": None}]


async def test_an_update_is_handled_once_in_the_persons_language() -> None:
    core, handled = plugin_context(), Handled()
    core.db.answers += [1, CHAT, 0]
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("messenger_a", HELLO)

    [ctx] = handled.contexts
    assert (ctx.lang, ctx.chat.project_id, ctx.channel_name) == ("ru", PROJECT, "messenger_a")


async def test_what_another_projects_bot_was_asked_is_taken_as_unknown() -> None:
    core, handled = plugin_context(), Handled(refuses=ForeignBot)
    core.db.answers += [1, CHAT, 1, CHAT]
    await inbound_of(core, handled).receive("messenger_a", HELLO)

    assert [ctx.update for ctx in handled.unclaimed] == [HELLO]


async def test_a_handler_that_fails_and_a_bot_that_is_gone_stop_nobody() -> None:
    core, handled = plugin_context(), Handled(refuses=RuntimeError)
    core.db.answers += [1, CHAT]
    inbound = inbound_of(core, handled)
    await inbound.receive("messenger_a", HELLO)
    await inbound.receive("chn_gone", HELLO)

    # Nothing of the first was kept, and the second asked for nothing.
    assert core.db.commits == 0
    assert len(core.db.statements) == 2


def dispatcher_of(core: FakeContext, *rules: InboundRule) -> InboundDispatcher:
    answers = TypedAnswers(clock=core.clock, secrets=core.secrets, answer_hours=24)

    async def project_button(ctx: InboundContext) -> None:
        await ctx.answer_button("the project's")

    dispatcher = InboundDispatcher(
        texts=core.texts,
        typed_answers=answers,
        start_codes=StartCodes(clock=core.clock, secrets=core.secrets),
        chats=core.subscribers,
        on_project_button=project_button,
    )
    dispatcher.declare(rules)
    return dispatcher


class Rules:
    """Handlers that keep which of them ran, in order; those of `leaves` leave the update to others."""

    def __init__(self, *leaves: str) -> None:
        self.ran: list[str] = []
        self._leaves = leaves

    def __call__(self, on: Any, name: str = "", **more: Any) -> InboundRule:
        said = more.pop("said", name or more.get("prefix", "") or str(on))

        async def handler(ctx: InboundContext) -> bool | None:
            self.ran.append(f"{said} {ctx.argument}".strip())
            return False if said in self._leaves else None

        return InboundRule(on, handler, name=name, **more)


async def dispatch(core: FakeContext, update: Update, *rules: InboundRule) -> None:
    ctx = inbound_context(update, channels=core.channels, outbox=core.outbox)
    await dispatcher_of(core, *rules).handle(ctx)


def said(text: str) -> MessageReceived:
    return MessageReceived(update_id="u1", chat_id="c7", user=ANN, text=text)


async def test_a_start_goes_to_the_rule_of_the_longest_prefix_that_takes_it() -> None:
    core, rule = plugin_context(), Rules("auth_s_")
    rules = (
        rule("start", prefix="auth_"),
        rule("start", prefix="auth_s_"),
        rule("start", prefix="x"),
    )
    started = Started(update_id="u1", chat_id="c7", user=ANN, payload="auth_s_1")
    await dispatch(core, started, *rules)

    assert rule.ran == ["auth_s_", "auth_"]
    assert core.outbox.sent == []


async def test_a_start_that_nobody_takes_is_answered() -> None:
    core = plugin_context()
    await dispatch(core, Started(update_id="u1", chat_id="c7", user=ANN, payload="old_1"))

    assert "no longer valid" in core.outbox.texts[0]


async def test_a_command_has_its_argument_and_other_texts_go_by_priority() -> None:
    core, rule = plugin_context(), Rules("dialogue")
    rules = (
        rule("message", said="rest", priority=90),
        rule("message", said="dialogue", priority=20),
        rule("command", "stop"),
        rule("aside", said="afterwards"),
    )
    await dispatch(core, said("/Stop all"), *rules)
    await dispatch(core, said("/unknown"), *rules)

    assert rule.ran == ["stop all", "afterwards all", "dialogue", "rest"]


async def test_a_command_for_another_bot_is_a_text() -> None:
    core, rule = plugin_context(), Rules()
    core.channels["messenger_a"].profile = BotProfile("Shop", "shop_bot")
    rules = (rule("message", said="text"), rule("command", "stop"))
    for text in ("/stop@shop_bot", "/stop@other_bot"):
        await dispatch(core, said(text), *rules)

    assert rule.ran == ["stop", "text"]


async def test_the_bots_own_buttons_and_the_projects_are_told_apart() -> None:
    core, rule = plugin_context(), Rules()
    for data in ("~my:stop", "~old:1", "anything"):
        update = ButtonPressed(
            update_id="u1", chat_id="c7", user=ANN, message_ref="m1", data=data, button_ref=data
        )
        await dispatch(core, update, rule("button", prefix="my:"))

    assert rule.ran == ["my:"]
    assert core.outbox.answered == [
        ("messenger_a", "~old:1", "This button no longer works."),
        ("messenger_a", "anything", "the project's"),
    ]


async def test_messages_go_to_the_chat_that_a_person_used_last() -> None:
    core = plugin_context()
    core.subscribers.person(user_id="7", chat_id="old")
    await dispatch(core, said("hello"))
    assert core.subscribers.everybody[0].chat_id == "c7"
    await dispatch(core, ChatMoved(update_id="u2", chat_id="c7", user=ANN, new_chat_id="c8"))

    assert core.subscribers.everybody[0].chat_id == "c8"
    await dispatch(core, Blocked(update_id="u3", chat_id="c8", user=ANN))
    assert core.subscribers.everybody[0].status == "blocked"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"on": "command", "name": "stop"}, {"on": "command", "name": "stop"}),
        ({"on": "start", "prefix": "a_"}, {"on": "start", "prefix": "a_"}),
        ({"on": "button", "prefix": ""}, {"on": "message"}),
        ({"on": "command", "name": "Стоп"}, {"on": "message"}),
    ],
)
def test_rules_that_clash_are_refused_at_start(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    rule = Rules()

    with pytest.raises(ValueError, match=r"two rules|its name"):
        dispatcher_of(plugin_context(), rule(**first), rule(**second))


def test_commands_are_listed_as_they_were_declared() -> None:
    rule = Rules()
    listed = rule("command", "orders", about=lambda _: _("list of commands"))
    dispatcher = dispatcher_of(plugin_context(), rule("command", "hidden"), listed)

    assert dispatcher.commands == [ListedCommand("orders", listed.about or (lambda _: ""))]
