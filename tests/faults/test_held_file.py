"""SQLite's file held by another process under load: told in time, nothing lost, and over when it is free."""

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.sqlite import WRITE_WAIT_S
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: Requests at once.
AT_ONCE = 12

#: Seconds by which an answer may come later than the deadline, on a busy machine: in the short form as many
#: as are left until the client takes it for hung.
LATE_S, SHORT_LATE_S = 3.0, HUNG_S - WRITE_WAIT_S

#: Seconds in which readiness is answered; in the short form it is answered before all who write.
READY_S = 5.0


@contextmanager
def held(path: Path) -> Iterator[None]:
    """This process, which is not the server's, keeps the file as long as the block lasts."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.fixture
async def shop(tmp_path: Path) -> Shop:
    return await open_shop(tmp_path)


def test_everybody_is_told_in_time_and_nothing_accepted_is_lost(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    times = rounds(short=1, long=6)
    path = sqlite_path(shop.database_url)
    answers: Counter[int] = Counter()
    slowest_s, texts, ready = 0.0, list[str](), list[tuple[int, bool]]()

    with shop.deployment.serving() as server, httpx2.Client(timeout=HUNG_S) as client:

        def send(text: str) -> tuple[int, bool, float]:
            began_s = time.monotonic()
            # One of three with a key.
            key = text.replace(" ", "-") if int(text.rpartition(" ")[2]) % 3 == 0 else None
            answer = shop.post(client, server.url, text, key)
            took_s = time.monotonic() - began_s
            return answer.status_code, "Retry-After" in answer.headers, took_s

        for _ in range(times):
            for _ in range(20):
                shop.send(client, server.url)
            # In the midst of delivering them.
            new = [shop.next_text() for _ in range(AT_ONCE)]
            with held(path), ThreadPoolExecutor(AT_ONCE) as threads:
                sending = [threads.submit(send, text) for text in new]
                began_s = time.monotonic()
                answer = client.get(f"{server.url}/readyz")
                in_time = time.monotonic() - began_s < rounds(short=HUNG_S, long=READY_S)
                is_first = not any(one.done() for one in sending)
                ready.append((answer.status_code, in_time and is_first))
                done = [one.result() for one in sending]
            answers.update(status for status, _, _ in done)
            slowest_s = max(slowest_s, *(took_s for _, _, took_s in done))
            assert all(can_wait for status, can_wait, _ in done if status != 202)
            texts += new
            until(lambda: client.get(f"{server.url}/readyz").status_code == 200)
            shop.send(client, server.url)
        until(shop.all_final)

    ledger = shop.ledger()
    figure(
        "SQLite's file held by another process",
        f"{times} times, {dict(answers)} of {AT_ONCE * times} at once, the slowest after"
        f" {slowest_s:.1f} s; {ledger.text}",
        times=times,
        slowest_s=round(slowest_s, 2),
        **ledger.numbers,
    )
    ledger.check()
    assert answers == Counter({503: AT_ONCE * times})
    assert slowest_s < WRITE_WAIT_S + rounds(short=SHORT_LATE_S, long=LATE_S)
    assert set(ready) == {(503, True)}
    # Who was refused left nothing.
    assert not set(texts) & set(shop.outbox)
