"""The windows of a pace: as the platform sees them they are never exceeded, and hardly undercut."""

import heapq
import random
from bisect import bisect_left
from collections.abc import Callable

import pytest

from msgsvc_core.channels import Pace
from msgsvc_core.channels.outbound.pacing import PRUNE_S, Pacer, Window
from msgsvc_devkit import FakeClock

#: What a call takes on its way there and back, in seconds.
Trip = Callable[[random.Random], tuple[float, float]]

ROADS: dict[str, Trip] = {
    "at once": lambda _: (0.0, 0.0),
    "near": lambda rng: (rng.uniform(0.001, 0.003), rng.uniform(0.001, 0.003)),
    "far": lambda _: (0.06, 0.06),
    "shaky": lambda rng: (rng.uniform(0.0, 0.2), rng.uniform(0.0, 0.2)),
    "stalling": lambda rng: (0.3 if rng.random() < 0.05 else 0.002, 0.001),
}


def arrivals(window: Window, count: int, road: Trip, began_s: float = 0.0) -> list[float]:
    """When calls reach the platform that are made as soon as the window lets them."""
    rng, now_s = random.Random(count), began_s
    known = window._road
    came: list[float] = []
    under_way: list[tuple[float, int, float]] = []
    while len(came) < count:
        while under_way and under_way[0][0] <= now_s:
            ended_s, call, call_began_s = heapq.heappop(under_way)
            known.note(ended_s - call_began_s)
            window.end(call, call_began_s, ended_s)
        wait_s = window.wait_s(now_s)
        if wait_s > 0:
            now_s = min(now_s + wait_s, under_way[0][0] if under_way else now_s + wait_s)
            continue
        there_s, back_s = road(rng)
        heapq.heappush(under_way, (now_s + there_s + back_s, window.begin(now_s), now_s))
        came.append(now_s + there_s)
    return came


def most_in(times: list[float], window_s: float) -> int:
    times = sorted(times)
    return max(bisect_left(times, at + window_s) - number for number, at in enumerate(times))


@pytest.mark.parametrize("name", ROADS)
@pytest.mark.parametrize(("calls", "window_s"), [(30, 1.0), (1, 1.0), (20, 60.0), (3, 1.0)])
def test_no_window_has_more_calls_than_it_may(name: str, calls: int, window_s: float) -> None:
    came = arrivals(Window(calls, window_s, 0.0), 20 * calls, ROADS[name])

    assert most_in(came, window_s) <= calls


@pytest.mark.parametrize("name", ["at once", "near", "far"])
def test_a_pace_is_used_to_the_full_where_the_road_is_steady(name: str) -> None:
    came = arrivals(Window(30, 1.0, 0.0), 3000, ROADS[name])

    assert came[-1] - came[0] <= 100 * 1.01


def test_calls_are_spread_over_the_window() -> None:
    came = arrivals(Window(30, 1.0, 0.0), 300, ROADS["near"])

    assert most_in(came, 0.1) <= 8


def test_who_was_idle_may_not_make_up_for_it() -> None:
    window = Window(30, 1.0, 0.0)
    came = arrivals(window, 30, ROADS["near"], began_s=3600.0)

    assert most_in(came, 0.1) <= 8


@pytest.mark.parametrize(("calls", "window_s"), [(30, 1.0), (1, 1.0), (20, 60.0)])
def test_a_new_owner_breaches_nothing_together_with_the_old_one(
    calls: int, window_s: float
) -> None:
    old = arrivals(Window(calls, window_s, 0.0), 5 * calls, ROADS["near"])
    taken_s = old[-1] + 0.01
    new = arrivals(Window(calls, window_s, taken_s), 5 * calls, ROADS["near"], began_s=taken_s)

    assert most_in(old + new, window_s) <= calls
    assert new[0] - taken_s <= 1.01 * window_s


def test_a_call_without_an_answer_holds_its_place_for_no_longer_than_it_may_be_on_the_way() -> None:
    window = Window(1, 1.0, 0.0)
    window.begin(1.0)

    assert window.wait_s(1.0) == pytest.approx(1.5, abs=0.01)
    assert window.wait_s(2.6) == 0


def test_a_call_that_was_not_made_leaves_its_place_to_others() -> None:
    window = Window(2, 1.0, 0.0)
    calls = [window.begin(5.0), window.begin(5.5)]
    assert window.wait_s(5.6) > 0.5
    for call in calls:
        window.cancel(call)

    assert window.wait_s(6.0) == 0


def test_room_counts_what_may_begin_soon() -> None:
    window = Window(30, 1.0, 0.0)
    assert window.room(0.0, 0.1) == 0
    assert window.room(10.0, 0.4) == 16  # a tenth of the window at once, and 0.4 s of it

    for _ in range(4):
        window.begin(10.0)

    assert window.room(10.0, 0.4) == 12
    assert window.room(10.0, 0.0) == 0


# ---- of a bot -----------------------------------------------------------------------------------


def pacer(pace: Pace, clock: FakeClock) -> Pacer:
    return Pacer(pace, lambda chat: chat.startswith("group"), lambda: clock.monotonic_ms() / 1000)


def call(paced: Pacer, chat_id: str, clock: FakeClock) -> None:
    paced.enter(chat_id).end(clock.monotonic_ms() / 1000)


def test_a_chat_waits_for_its_own_calls_alone() -> None:
    clock = FakeClock()
    paced = pacer(Pace(per_chat_s=1), clock)
    clock.advance(5)
    call(paced, "ann", clock)

    assert paced.chat_wait_s("ann") == pytest.approx(1.0, abs=0.01)
    assert paced.chat_wait_s("ben") == 0


def test_a_group_keeps_its_minute_beside_its_second() -> None:
    clock = FakeClock()
    paced = pacer(Pace(per_chat_s=1, per_group_min=20), clock)
    clock.advance(60)
    made: dict[str, int] = {"group": 0, "ann": 0}
    for _ in range(600):
        for chat_id in made:
            if paced.chat_wait_s(chat_id) == 0:
                call(paced, chat_id, clock)
                made[chat_id] += 1
        clock.advance(0.1)

    assert 17 <= made["group"] <= 20
    assert 50 <= made["ann"] <= 60


@pytest.mark.parametrize(("rate", "gap_s"), [(0.5, 2.0), (2.5, 0.5)])
def test_fractions_of_a_rate_are_kept_strictly(rate: float, gap_s: float) -> None:
    bot = pacer(Pace(per_bot_s=rate), FakeClock()).bot
    assert bot is not None

    assert bot.step_s == gap_s


def test_chats_that_nobody_writes_to_are_forgotten() -> None:
    clock = FakeClock()
    paced = pacer(Pace(per_chat_s=1), clock)
    for number in range(50):
        call(paced, f"chat-{number}", clock)
    clock.advance(PRUNE_S + 3)
    call(paced, "chat-0", clock)

    assert set(paced._chats) == {"chat-0"}
