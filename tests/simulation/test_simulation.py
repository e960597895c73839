"""Short simulations, by seed; and that a broken part is found out."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from math import floor

import pytest

from msgsvc_core.channels.outbound import rate_limits
from msgsvc_core.channels.outbound.ordering import FifoKeyLock, RetryOrder
from msgsvc_core.channels.outbound.pacing import Pacer, Window
from msgsvc_core.jobs import lanes
from tests.simulation import bulk, report, stepped
from tests.simulation.invariants import Violated, jain
from tests.simulation.platform import NO_FAULTS
from tests.simulation.virtual_time import VirtualLoop, virtual_time

SHORT = stepped.Options(1, 240, bots=2, tenants=2, workers=2, kills=1, clock_steps=1)

#: Nothing fails here but what is broken on purpose.
CALM = stepped.Options(
    1,
    120,
    bots=1,
    tenants=2,
    workers=2,
    faults=NO_FAULTS,
    kills=0,
    clock_steps=0,
    outages=0,
    added_bots=0,
)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_invariant_holds_whatever_fails(seed: int) -> None:
    figures = stepped.run(replace(SHORT, seed=seed))

    assert figures.shown >= figures.accepted - figures.unknown
    assert figures.killed == 1
    # Its lanes were owned, and went on.
    assert figures.takeovers_s


def test_a_wait_that_is_too_short_for_a_float_ends() -> None:
    with virtual_time(1) as virtual:
        loop = VirtualLoop(virtual)
        virtual.now_s = 20.9
        loop.finish(asyncio.sleep(1e-17))
        loop.close()

        assert virtual.now_s > 20.9


def test_a_bot_that_is_added_meanwhile_sends_at_once() -> None:
    figures = stepped.run(replace(CALM, added_bots=2))

    # Each of the added ones has questions, which wait for two seconds at most.
    assert figures.bots_added == 2
    assert figures.shown == figures.accepted > CALM.messages


def test_a_seed_repeats_its_run() -> None:
    first, second = (stepped.run(replace(CALM, seed=7, kills=1)) for _ in range(2))

    assert first.digest == second.digest


def test_two_tenants_who_share_a_bot_get_as_much_of_it() -> None:
    figures = stepped.run(replace(CALM, messages=300))

    assert min(figures.fairness.values()) > 0.9
    assert min(figures.used.values()) > 0.8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_million_messages_keep_every_invariant(seed: int) -> None:
    figures = bulk.run(bulk.Options(seed, 1_000_000, bots=2, events=10))

    assert figures.messages == 1_000_000
    assert figures.stepped < 20_000
    assert min(figures.used.values()) > 0.95


def test_skipping_what_repeats_changes_nothing() -> None:
    options = bulk.Options(5, 3000, bots=1, events=6)
    skipped, stepped_singly = bulk.run(options), bulk.run(replace(options, skips=False))

    assert skipped.stepped < stepped_singly.stepped == stepped_singly.messages == skipped.messages
    assert skipped.virtual_s == pytest.approx(stepped_singly.virtual_s, abs=0.1)
    assert skipped.question_waits_s == pytest.approx(stepped_singly.question_waits_s, abs=0.01)


def test_the_tables_name_every_bot() -> None:
    many = bulk.run(bulk.Options(1, 2000, bots=2, events=4))
    table = report.by_bot(None, many)

    assert list(table.columns[0].cells) == ["bot00", "bot01"]
    assert report.table(None, many).row_count > 0


def test_jains_index_is_one_for_equal_shares_and_less_for_others() -> None:
    assert jain([3, 3, 3]) == 1
    assert jain([1, 0, 0, 0]) == 0.25


# ---- broken on purpose --------------------------------------------------------------------------


class Hasty(Pacer):
    """Lets a tenth more through than the platform allows."""

    def _window(self, rate: float | None, per_s: float) -> Window | None:
        return super()._window(None if rate is None else floor(rate * 1.1), per_s)


def test_a_pace_that_lets_a_tenth_more_through_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limits, "Pacer", Hasty)

    with pytest.raises(Violated, match=r"seed 1: bot00 exceeded its pace"):
        stepped.run(CALM)


def test_the_same_is_found_out_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "Pacer", Hasty)

    with pytest.raises(Violated, match=r"seed 3: bot00 exceeded its pace"):
        bulk.run(bulk.Options(3, 100_000, bots=1, events=2))


def test_an_order_that_ignores_an_earlier_message_of_the_chat_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @asynccontextmanager
    async def at_once(_lock: FifoKeyLock, _keys: object):
        yield

    monkeypatch.setattr(FifoKeyLock, "acquire", at_once)
    monkeypatch.setattr(RetryOrder, "behind", lambda _order, _job, _now_ms: None)

    with pytest.raises(Violated, match=r"was shown in the order"):
        stepped.run(replace(CALM, messages=200, faults=replace(NO_FAULTS, chat_refused=0.05)))


def test_a_lease_that_two_runners_have_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def granted(*_arguments: object, **_options: object) -> str:
        return "kept"

    monkeypatch.setattr(lanes, "own", granted)

    with pytest.raises(Violated, match=r"exceeded its pace|was shown 2 times"):
        stepped.run(CALM)


def test_a_lane_that_claims_too_far_ahead_of_a_question_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = bulk.Options(3, 6000, bots=1, events=20, check_questions_s=0.6)
    monkeypatch.setattr(rate_limits, "AHEAD_S", 0.9)
    monkeypatch.setattr(rate_limits, "RESERVED_S", 1.8)

    with pytest.raises(Violated, match=r"seed 3: 'Sign in\? \d+' of bot00 waited"):
        bulk.run(options)


def test_a_lane_that_stands_still_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # It waits for more room than the pace ever has.
    monkeypatch.setattr(rate_limits, "AHEAD_S", 5.0)

    with pytest.raises(Violated, match="seed 3: bot00 has sent nothing for 120 s"):
        bulk.run(bulk.Options(3, 100, bots=1, events=0))
