"""kill -9 of a served process while it imports people, and what was taken in of the file."""

import random
import time
from pathlib import Path

import httpx2
import pytest

from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: Rows of the file: of fifty a slice, there are many for a kill to come into.
ROWS = 3000

PATH = "/v1/people/imports"


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> Shop:
    return await open_shop(tmp_path, await backend.empty())


def _state(shop: Shop) -> tuple[str, int, int, int]:
    [found] = shop.query("SELECT status, added, unchanged, refused FROM core_imports")
    status, added, unchanged, refused = found
    return status, added, unchanged, refused


def _begin(url: str, key: str) -> None:
    lines = "".join(f"{7_000_000 + number},u{number},imported\n" for number in range(ROWS))
    content = f"address,external_id,tags\n{lines}not a number,,\n"
    with httpx2.Client(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=HUNG_S
    ) as client:
        answer = client.post(
            PATH, data={"channel": "messenger_a"}, files={"file": ("p.csv", content.encode())}
        )
        assert answer.status_code == 202, answer.text


def test_each_row_is_taken_in_and_counted_once_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=3, long=20)
    with shop.deployment.serving() as server:
        _begin(server.url, shop.key)
        until(lambda: _state(shop)[1] > 0, timeout_s=30)
        server.kill()
    in_midst = int(_state(shop)[0] == "running")
    for _ in range(kills - 1):
        with shop.deployment.serving() as server:
            time.sleep(random.uniform(0.0, 0.3))
            server.kill()
        in_midst += _state(shop)[0] == "running"
    with shop.deployment.serving():
        until(lambda: _state(shop)[0] == "completed", timeout_s=120)

    [(people,)] = shop.query("SELECT COUNT(*) FROM core_subscribers")
    [(tagged,)] = shop.query("SELECT COUNT(*) FROM core_subscriber_tags")
    figure(
        f"kill -9 in the midst of an import ({shop.database_url.partition(':')[0]})",
        f"{in_midst} of {kills} kills in time, {ROWS} rows: {people - PEOPLE} people",
        kills=kills,
        in_midst=in_midst,
        wrong=abs(people - PEOPLE - ROWS),
    )
    assert _state(shop) == ("completed", ROWS, 0, 1)
    assert (people, tagged) == (PEOPLE + ROWS, ROWS)
    assert shop.query("SELECT * FROM core_import_slices") == []
