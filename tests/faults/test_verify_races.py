"""One code, many who exchange it at the same moment, over several processes: one has it."""

from collections import Counter
from pathlib import Path

import pytest

from msgsvc_auth.models import CreateSessionBody
from msgsvc_auth.service import SignIn
from msgsvc_core.channels import ChannelUser
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.sign_in_desk import Desk, Outcome, as_text, open_desk, outcomes

pytestmark = pytest.mark.faults

#: The defaults' lifetimes and limits are for people; a race of minutes goes by longer ones.
SECTIONS = """
[auth]
sessions_per_hour = 1000000
session_lifetime_s = 3600
code_lifetime_s = 3600
"""

#: Codes that are made in one transaction.
AT_ONCE = 100

USED: Outcome = (409, "auth_code_used")


async def confirmed_codes(desk: Desk, count: int) -> dict[str, str]:
    """The session of each code: `count` sessions that were said Yes to, each by somebody else."""
    sign_in, made = desk.service.get(SignIn), dict[str, str]()
    for start in range(0, count, AT_ONCE):
        async with desk.service.db.transaction() as tx:
            for number in range(start, min(start + AT_ONCE, count)):
                opened = await sign_in.open(tx, desk.project_id, CreateSessionBody())
                user = ChannelUser(f"user-{number}", f"Person {number}")
                confirmed = await sign_in.confirm(
                    tx, opened.session, "messenger_a", user, f"chat-{number}"
                )
                assert confirmed is not None
                made[confirmed.code] = opened.session.session_id
    return made


async def test_of_many_parallel_verifies_of_one_code_one_succeeds(
    tmp_path: Path,
    backend: SQLiteDatabases | PostgresDatabases,
    rounds: Rounds,
    figure: Figure,
) -> None:
    on_postgres = backend.name == "postgresql"
    processes = rounds(short=2, long=4) if on_postgres else 1
    count = rounds(short=20, long=1000 if on_postgres else 200)
    at_once = rounds(short=40, long=100)
    url = await backend.empty()
    total: Counter[Outcome] = Counter()
    odd: list[Counter[Outcome]] = []
    wrong_person = 0
    async with open_desk(tmp_path, url, ["auth"], SECTIONS) as desk:
        codes = await confirmed_codes(desk, count)
        desk.start(processes)
        async with desk.clients(at_once) as clients:
            for code, session_id in codes.items():
                answers = await clients.post("/v1/auth/verify", [{"code": code}] * at_once)
                found = outcomes(answers)
                total += found
                if found != {(200, None): 1, USED: at_once - 1}:
                    odd.append(found)
                winners = [answer for outcome, answer in answers if outcome == (200, None)]
                wrong_person += any(answer["session_id"] != session_id for answer in winners)
        rows = await desk.query("SELECT session_id FROM auth_sessions WHERE status = 'consumed'")
    await backend.give_back(url)

    figure(
        f"{at_once} parallel verifies of one code ({backend.name})",
        f"{count} rounds over {processes} processes: {as_text(total)};"
        f" {len(odd)} rounds without exactly one success",
        rounds=count,
        processes=processes,
        at_once=at_once,
        successes=total[200, None],
        used=total[USED],
        odd_rounds=len(odd),
    )
    assert not odd
    assert not wrong_person
    assert {row["session_id"] for row in rows} == set(codes.values())
