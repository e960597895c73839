"""One one-time code, many who guess, give or replace it at the same moment, over several processes."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.sign_in_desk import Clients, Desk, Outcome, as_text, open_desk, outcomes

pytestmark = pytest.mark.faults

#: Wrong guesses that a code stands, the default.
ATTEMPTS = 3

#: Codes that are sent before so many rounds; they are good for half an hour.
ROUNDS_AT_ONCE = 50

LIMITLESS = "\n[otp]\nresend_after_s = 0\nsends_per_hour = 1000000\n"

SENT: Outcome = (202, None)
RIGHT: Outcome = (200, None)
WRONG: Outcome = (400, "otp_invalid")
ENDED: Outcome = (400, "otp_max_attempts")
TOO_EARLY: Outcome = (425, "too_early")

_CODE = re.compile(r"^(\d{6})$", re.MULTILINE)


@pytest.fixture
def processes(backend: SQLiteDatabases | PostgresDatabases, rounds: Rounds) -> int:
    return rounds(short=2, long=4) if backend.name == "postgresql" else 1


@pytest.fixture
async def url(backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[str]:
    made = await backend.empty()
    yield made
    await backend.give_back(made)


async def sent_codes(
    desk: Desk, clients: Clients, people: Sequence[str], chats: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Id and code of what each of the people was sent, as their messenger shows it."""
    answers = await clients.post(
        "/v1/otp/send", [{"subscriber_id": one, "ttl_minutes": 30} for one in people]
    )
    assert outcomes(answers) == {SENT: len(people)}
    wanted = {chats[one] for one in people}

    async def shown() -> dict[str, str]:
        found = {chat: match[1] for chat, text in desk.outbox if (match := _CODE.search(text))}
        return found if wanted <= set(found) else {}

    codes = await until(shown, timeout_s=60)
    return {
        one: (answer["otp_id"], codes[chats[one]])
        for one, (_, answer) in zip(people, answers, strict=True)
    }


async def all_told(desk: Desk) -> None:
    """Returns when the service knows of every message that it was shown."""

    async def none_left() -> bool:
        rows = await desk.query("SELECT 1 FROM otp_codes WHERE sent_at_ms IS NULL")
        return not rows

    await until(none_left, timeout_s=60)


async def events(desk: Desk) -> dict[str, Counter[str]]:
    """How often each event of the plugin was emitted, by the code's id."""
    found: dict[str, Counter[str]] = {}
    rows = await desk.query("SELECT name, data FROM core_events WHERE name LIKE 'otp.%'")
    for row in rows:
        counted = found.setdefault(json.loads(row["data"])["otp_id"], Counter())
        counted[row["name"].removeprefix("otp.")] += 1
    return found


def wrong_guesses(code: str, count: int) -> list[str]:
    """As many different codes, none of them the right one."""
    return [f"{(int(code) + 1 + number) % 10**6:06d}" for number in range(count)]


async def test_of_many_parallel_wrong_guesses_as_many_are_compared_as_may_be(
    tmp_path: Path, url: str, processes: int, rounds: Rounds, figure: Figure
) -> None:
    on_sqlite = url.startswith("sqlite")
    count = rounds(short=10, long=50 if on_sqlite else 500)
    at_once = rounds(short=50, long=200)
    total: Counter[Outcome] = Counter()
    odd: list[Counter[Outcome]] = []
    taken_after = 0
    async with open_desk(tmp_path, url, ["otp"]) as desk:
        chats = await desk.people(count)
        people = list(chats)
        desk.start(processes)
        async with desk.clients(at_once) as clients:
            for start in range(0, count, ROUNDS_AT_ONCE):
                some = people[start : start + ROUNDS_AT_ONCE]
                for otp_id, code in (await sent_codes(desk, clients, some, chats)).values():
                    guesses = wrong_guesses(code, at_once)
                    bodies = [{"otp_id": otp_id, "code": guess} for guess in guesses]
                    found = outcomes(await clients.post("/v1/otp/verify", bodies))
                    total += found
                    if found != {WRONG: ATTEMPTS, ENDED: at_once - ATTEMPTS}:
                        odd.append(found)
                    right = {"otp_id": otp_id, "code": code}
                    late = outcomes(await clients.post("/v1/otp/verify", [right]))
                    taken_after += late != {ENDED: 1}
        await all_told(desk)
        told = await events(desk)
        rows = await desk.query("SELECT otp_id, status, attempts, code_hash FROM otp_codes")
    compared = sum(counted["failed_attempt"] for counted in told.values())
    reached = sum(counted["max_attempts_reached"] for counted in told.values())

    figure(
        f"{at_once} parallel wrong guesses of one code ({'SQLite' if on_sqlite else 'PostgreSQL'})",
        f"{count} rounds over {processes} processes: {compared} compared, {reached} max_attempts_reached;"
        f" {as_text(total)}; {len(odd)} odd rounds",
        rounds=count,
        processes=processes,
        at_once=at_once,
        compared=compared,
        reached=reached,
        odd_rounds=len(odd),
    )
    assert not odd
    assert not taken_after
    assert len(rows) == count
    for row in rows:
        assert told[row["otp_id"]] == {
            "sent": 1,
            "failed_attempt": ATTEMPTS,
            "max_attempts_reached": 1,
        }
        assert (row["status"], row["attempts"]) == ("max_attempts_reached", ATTEMPTS)
        assert row["code_hash"] is None


async def test_of_many_parallel_right_guesses_one_succeeds(
    tmp_path: Path, url: str, processes: int, rounds: Rounds, figure: Figure
) -> None:
    on_sqlite = url.startswith("sqlite")
    count = rounds(short=5, long=20 if on_sqlite else 100)
    at_once = rounds(short=40, long=100)
    total: Counter[Outcome] = Counter()
    odd: list[Counter[Outcome]] = []
    async with open_desk(tmp_path, url, ["otp"]) as desk:
        chats = await desk.people(count)
        desk.start(processes)
        async with desk.clients(at_once) as clients:
            codes = await sent_codes(desk, clients, list(chats), chats)
            for subscriber_id, (_, code) in codes.items():
                body = {"subscriber_id": subscriber_id, "code": code}
                found = outcomes(await clients.post("/v1/otp/verify", [body] * at_once))
                total += found
                if found != {RIGHT: 1, WRONG: at_once - 1}:
                    odd.append(found)
        await all_told(desk)
        told = await events(desk)

    figure(
        f"{at_once} parallel right guesses of one code ({'SQLite' if on_sqlite else 'PostgreSQL'})",
        f"{count} rounds over {processes} processes: {as_text(total)}; {len(odd)} odd rounds",
        rounds=count,
        processes=processes,
        at_once=at_once,
        successes=total[RIGHT],
        odd_rounds=len(odd),
    )
    assert not odd
    assert all(told[otp_id] == {"sent": 1, "verified": 1} for otp_id, _ in codes.values())


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param(LIMITLESS, {SENT: 50}, id="as often as they like"),
        pytest.param("", {SENT: 1, TOO_EARLY: 49}, id="by the default limits"),
    ],
)
async def test_many_parallel_sends_leave_one_active_code(
    tmp_path: Path,
    url: str,
    processes: int,
    rounds: Rounds,
    figure: Figure,
    sections: str,
    expected: dict[Outcome, int],
) -> None:
    on_sqlite = url.startswith("sqlite")
    count = rounds(short=3, long=50)
    total: Counter[Outcome] = Counter()
    odd: list[Counter[Outcome]] = []
    async with open_desk(tmp_path, url, ["otp"], sections) as desk:
        chats = await desk.people(count)
        desk.start(processes)
        async with desk.clients(50) as clients:
            for subscriber_id in chats:
                bodies = [{"subscriber_id": subscriber_id}] * 50
                found = outcomes(await clients.post("/v1/otp/send", bodies))
                total += found
                if found != expected:
                    odd.append(found)
        rows = await desk.query(
            "SELECT subscriber_id, COUNT(*) AS codes,"
            " SUM(CASE WHEN status = 'active' THEN 1 ELSE 0 END) AS active,"
            " SUM(CASE WHEN code_hash IS NULL THEN 0 ELSE 1 END) AS hashes"
            " FROM otp_codes GROUP BY subscriber_id"
        )
    most_active = max(row["active"] for row in rows)

    figure(
        f"50 parallel sends to one person, {'limited' if expected != {SENT: 50} else 'unlimited'}"
        f" ({'SQLite' if on_sqlite else 'PostgreSQL'})",
        f"{count} rounds over {processes} processes: {as_text(total)}; at most {most_active} active",
        rounds=count,
        processes=processes,
        sent=total[SENT],
        most_active=most_active,
        odd_rounds=len(odd),
    )
    assert not odd
    assert len(rows) == count
    assert all(
        (row["codes"], row["active"], row["hashes"]) == (expected[SENT], 1, 1) for row in rows
    )
