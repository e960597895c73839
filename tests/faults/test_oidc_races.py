"""One code, refresh token, device code or backchannel request, many who present it at the same moment, over
several processes: one has it (RFC 6749, section 4.1.2; RFC 9700, section 4.14; RFC 8628, section 3.5)."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.provider import Callers, Provider, open_provider
from tests.faults.sign_in_desk import Outcome, as_text, open_desk, outcomes

pytestmark = pytest.mark.faults

#: Codes that are made before so many rounds: they are good for ten minutes.
ROUNDS_AT_ONCE = 50

#: No repetition of a refresh token is a retry.
STRICT = "\n[oidc]\ncode_lifetime_s = 600\nrefresh_reuse_s = 0\n"

#: A retry has two minutes.
LENIENT = "\n[oidc]\nrefresh_reuse_s = 120\n"

#: People are asked as often as the race needs it.
ASKING = "\n[auth]\nsessions_per_hour = 1000000\nsession_lifetime_s = 3600\n"

WON: Outcome = (200, None)
LOST: Outcome = (400, "invalid_grant")

Race = Callable[[Callers, str, int], Awaitable[list[tuple[Outcome, dict[str, Any]]]]]


@pytest.fixture
def processes(backend: SQLiteDatabases | PostgresDatabases, rounds: Rounds) -> int:
    return rounds(short=2, long=4) if backend.name == "postgresql" else 1


@pytest.fixture
async def url(backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[str]:
    made = await backend.empty()
    yield made
    await backend.give_back(made)


@pytest.fixture
def count(rounds: Rounds) -> int:
    return rounds(short=20, long=1000)


@pytest.fixture
def at_once(rounds: Rounds) -> int:
    return rounds(short=20, long=50)


async def race(
    provider: Provider,
    make: Callable[[int], Awaitable[list[str]]],
    present: Race,
    count: int,
    at_once: int,
) -> list[list[tuple[Outcome, dict[str, Any]]]]:
    """The answers of each round: `count` codes or tokens, each presented `at_once` times at once."""
    answers: list[list[tuple[Outcome, dict[str, Any]]]] = []
    async with provider.callers(at_once) as callers:
        for start in range(0, count, ROUNDS_AT_ONCE):
            made = await make(min(ROUNDS_AT_ONCE, count - start))
            answers += [await present(callers, text, at_once) for text in made]
    return answers


async def refused_refreshes(
    provider: Provider, answers: list[list[tuple[Outcome, dict[str, Any]]]]
) -> Counter[Outcome]:
    """What the refresh tokens that winners got are good for afterwards."""
    found: Counter[Outcome] = Counter()
    async with provider.callers(1) as callers:
        for answered in answers:
            for outcome, body in answered:
                if outcome == WON:
                    found += outcomes(await callers.refresh(body["refresh_token"], 1))
    return found


async def test_of_many_parallel_exchanges_of_one_code_one_succeeds_and_the_others_revoke_it(
    tmp_path: Path, url: str, processes: int, count: int, at_once: int, figure: Figure
) -> None:
    async with open_desk(tmp_path, url, ["oidc"], STRICT) as desk:
        provider = await open_provider(desk)
        desk.start(processes)
        answers = await race(provider, provider.codes, Callers.exchange, count, at_once)
        afterwards = await refused_refreshes(provider, answers)
        rows = await provider.grants_by_state()
    odd = [one for one in answers if outcomes(one) != {WON: 1, LOST: at_once - 1}]

    _figure(figure, "exchanges of one code", url, processes, answers, odd)
    assert not odd
    assert afterwards == {LOST: count}
    assert [dict(row) for row in rows] == [
        {"refresh_number": 1, "revoked_reason": "reused", "grants": count}
    ]


async def test_of_many_parallel_refreshes_one_succeeds_and_the_others_revoke_the_family(
    tmp_path: Path, url: str, processes: int, count: int, at_once: int, figure: Figure
) -> None:
    async with open_desk(tmp_path, url, ["oidc"], STRICT) as desk:
        provider = await open_provider(desk)
        desk.start(processes)
        answers = await race(provider, provider.refresh_tokens, Callers.refresh, count, at_once)
        afterwards = await refused_refreshes(provider, answers)
        rows = await provider.grants_by_state()
    odd = [one for one in answers if outcomes(one) != {WON: 1, LOST: at_once - 1}]

    _figure(figure, "refreshes by one token, none repeated", url, processes, answers, odd)
    assert not odd
    assert afterwards == {LOST: count}
    assert [dict(row) for row in rows] == [
        {"refresh_number": 2, "revoked_reason": "reused", "grants": count}
    ]


async def test_many_parallel_retries_of_a_refresh_get_one_successor(
    tmp_path: Path, url: str, processes: int, count: int, at_once: int, figure: Figure
) -> None:
    async with open_desk(tmp_path, url, ["oidc"], LENIENT) as desk:
        provider = await open_provider(desk)
        desk.start(processes)
        answers = await race(provider, provider.refresh_tokens, Callers.refresh, count, at_once)
        rows = await provider.grants_by_state()
        keys = await desk.query("SELECT status FROM oidc_keys ORDER BY status")
    odd = [
        one
        for one in answers
        if outcomes(one) != {WON: at_once} or len({body["refresh_token"] for _, body in one}) != 1
    ]

    _figure(figure, "refreshes by one token, as retries", url, processes, answers, odd)
    assert not odd
    # One rotation each.
    assert [dict(row) for row in rows] == [
        {"refresh_number": 2, "revoked_reason": None, "grants": count}
    ]
    # All processes needed the first key at the same moment, and sign by one.
    assert [row["status"] for row in keys] == ["current", "next"]


async def test_of_many_parallel_polls_with_one_approved_device_code_one_gets_the_tokens(
    tmp_path: Path, url: str, processes: int, count: int, at_once: int, figure: Figure
) -> None:
    async with open_desk(tmp_path, url, ["oidc"], STRICT) as desk:
        provider = await open_provider(desk)
        desk.start(processes)
        answers = await race(provider, provider.device_codes, Callers.poll, count, at_once)
        rows = await provider.grants_by_state()
    odd = [one for one in answers if outcomes(one) != {WON: 1, LOST: at_once - 1}]

    _figure(figure, "polls with one approved device code", url, processes, answers, odd)
    assert not odd
    assert sum(row["grants"] for row in rows) == count


async def test_of_many_parallel_polls_with_one_confirmed_backchannel_request_one_gets_the_tokens(
    tmp_path: Path, url: str, processes: int, count: int, at_once: int, figure: Figure
) -> None:
    async with open_desk(tmp_path, url, ["auth", "oidc"], ASKING) as desk:
        provider, people = await open_provider(desk), iter((await desk.people(count)).items())

        async def make(some: int) -> list[str]:
            return await provider.backchannel_requests(dict(islice(people, some)))

        desk.start(processes)
        answers = await race(provider, make, Callers.ask_for, count, at_once)
        rows = await provider.grants_by_state()
    odd = [one for one in answers if outcomes(one) != {WON: 1, LOST: at_once - 1}]

    _figure(figure, "polls with one confirmed backchannel request", url, processes, answers, odd)
    assert not odd
    assert sum(row["grants"] for row in rows) == count


def _figure(
    figure: Figure,
    what: str,
    url: str,
    processes: int,
    answers: list[list[tuple[Outcome, dict[str, Any]]]],
    odd: list[list[tuple[Outcome, dict[str, Any]]]],
) -> None:
    total: Counter[Outcome] = Counter()
    for one in answers:
        total += outcomes(one)
    at_once = len(answers[0])
    figure(
        f"{at_once} parallel {what} ({'SQLite' if url.startswith('sqlite') else 'PostgreSQL'})",
        f"{len(answers)} rounds over {processes} processes: {as_text(total)};"
        f" {len(odd)} odd rounds",
        rounds=len(answers),
        processes=processes,
        at_once=at_once,
        successes=total[WON],
        odd_rounds=len(odd),
    )
