"""kill -9 and SIGTERM of a served process while messages are on their way, and what is left of them."""

import random
import time
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: Seconds within which a server ends that was told to (issue's bar; `jobs.grace_s` is as long).
END_S = 30.0


@pytest.fixture
async def shop(tmp_path: Path) -> Shop:
    return await open_shop(tmp_path)


def test_a_message_accepted_before_a_kill_is_delivered_after_the_restart(shop: Shop) -> None:
    # Longer than all that is done here: the server is killed in the midst of the call.
    shop.configure(delay_s=120.0)
    with shop.deployment.serving() as server, httpx2.Client(timeout=HUNG_S) as client:
        first = shop.send(client, server.url)
        until(lambda: shop.statuses()[first] == "sending")
        # To the same person, whose first message is not over: this one is accepted, and not begun.
        for _ in range(PEOPLE - 1):
            shop.next_text()
        second = shop.send(client, server.url)
        server.kill()
    before = shop.statuses()

    shop.configure()
    with shop.deployment.serving():
        until(shop.all_final)

    assert before == {first: "sending", second: "queued"}
    assert shop.statuses() == {first: "unknown", second: "sent"}
    assert shop.outbox == {f"message {PEOPLE}": 1}


def test_nothing_accepted_is_lost_or_shown_twice_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=5, long=50)
    for _ in range(kills):
        with shop.deployment.serving() as server, shop.streaming(server.url):
            time.sleep(random.uniform(0.3, 1.2))
            server.kill()
    with shop.deployment.serving():
        until(shop.all_final, timeout_s=120)

    ledger = shop.ledger()
    intact = shop.query("PRAGMA integrity_check") == [("ok",)]
    figure(
        "kill -9 of the embedded service",
        f"{kills} kills, {ledger.text}, integrity_check {'ok' if intact else 'BAD'}",
        kills=kills,
        **ledger.numbers,
    )
    ledger.check()
    # What a kill leaves in doubt is at most what was in the hands of the platform: a call a chat.
    assert ledger.statuses["unknown"] <= kills * PEOPLE
    assert intact


def test_nothing_accepted_is_lost_or_shown_twice_over_many_ends(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    ends = rounds(short=2, long=20)
    codes: Counter[int] = Counter()
    slowest_s = 0.0
    in_doubt = 0
    for _ in range(ends):
        with shop.deployment.serving() as server, shop.streaming(server.url):
            time.sleep(random.uniform(0.3, 1.2))
            told = time.monotonic()
            codes[server.end()] += 1
            slowest_s = max(slowest_s, time.monotonic() - told)
        in_doubt += Counter(shop.statuses().values())["sending"]
    with shop.deployment.serving():
        until(shop.all_final, timeout_s=120)

    ledger = shop.ledger()
    figure(
        "SIGTERM of the embedded service",
        f"{ends} ends, {ledger.text}, the slowest took {slowest_s:.1f} s",
        ends=ends,
        slowest_s=round(slowest_s, 2),
        **ledger.numbers,
    )
    ledger.check()
    assert codes == {0: ends}
    assert not in_doubt
    assert not ledger.statuses["unknown"]
    assert slowest_s <= END_S
