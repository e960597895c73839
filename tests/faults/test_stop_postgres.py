"""PostgreSQL stopped in immediate mode under load, while `msgsvc serve` goes on running."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.faults.cluster import Cluster, cluster, missing
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, SENDERS, Shop, in_threads, open_shop
from tests.process import until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

#: Seconds within which the service answers once the database does; one that had to be restarted never would.
BACK_S, SHORT_BACK_S = 5.0, 30.0


@pytest.fixture
def postgres() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


@pytest.fixture
async def shop(tmp_path: Path, postgres: Cluster) -> Shop:
    return await open_shop(tmp_path, postgres.url)


class Clients:
    """Threads that send and look, and what they were answered."""

    def __init__(self, shop: Shop, url: str) -> None:
        self._shop = shop
        self._url = url
        self.stop = threading.Event()
        #: Answers by method and status.
        self.answers: Counter[tuple[str, int]] = Counter()
        self.slowest_s = 0.0
        #: Texts whose sending was given up unanswered, at the end of the test.
        self.unsure: set[str] = set()
        self._lock = threading.Lock()

    @property
    def accepted(self) -> int:
        return self.answers["POST", 202]

    def send(self) -> None:
        """Sends each message until it is accepted, under one Idempotency-Key."""
        with httpx2.Client(timeout=HUNG_S) as client:
            while not self.stop.is_set():
                text = self._shop.next_text()
                key = text.replace(" ", "-")
                while not self._accepted(client, text, key):
                    if self.stop.is_set():
                        self.unsure.add(text)
                        return
                    time.sleep(0.02)

    def look(self) -> None:
        """Asks for messages that were accepted: each of them must be there."""
        headers = {"Authorization": f"Bearer {self._shop.key}"}
        with httpx2.Client(timeout=HUNG_S, headers=headers) as client:
            while not self.stop.is_set():
                known = list(self._shop.accepted)[-50:]
                path = f"/v1/messages/{random.choice(known)}" if known else "/v1/project"
                started = time.monotonic()
                self._keep(client.get(f"{self._url}{path}"), started)
                time.sleep(0.005)

    def _accepted(self, client: httpx2.Client, text: str, key: str) -> bool:
        started = time.monotonic()
        answer = self._shop.post(client, self._url, text, key)
        self._keep(answer, started)
        return answer.status_code == 202

    def _keep(self, answer: httpx2.Response, started: float) -> None:
        with self._lock:
            self.answers[answer.request.method, answer.status_code] += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        if answer.status_code >= 500:
            fields = answer.json()
            assert answer.status_code == 503, answer.text
            assert fields["code"] == "unavailable"
            assert fields["retryable"] is True
            return
        assert answer.status_code in {200, 202}, answer.text


def back_after(shop: Shop, clients: Clients) -> float:
    """Seconds from now until the service has accepted a message, and delivered one."""
    started = time.monotonic()
    accepted, shown = clients.accepted, shop.outbox.total()
    until(lambda: clients.accepted > accepted and shop.outbox.total() > shown)
    return time.monotonic() - started


def test_nothing_accepted_is_lost_when_postgres_stops_at_once(
    shop: Shop, postgres: Cluster, rounds: Rounds, figure: Figure
) -> None:
    stops = rounds(short=2, long=10)
    slowest_back_s = 0.0
    with shop.deployment.serving() as server:
        clients = Clients(shop, server.url)
        with in_threads([clients.send] * SENDERS + [clients.look], clients.stop):
            for _ in range(stops):
                time.sleep(random.uniform(0.5, 1.5))
                postgres.stop_at_once()
                time.sleep(random.uniform(0.0, 1.0))
                postgres.start()
                slowest_back_s = max(slowest_back_s, back_after(shop, clients))
            assert server.process.poll() is None
        until(shop.all_final, timeout_s=120)

    ledger = shop.ledger()
    refused = sum(times for (_, status), times in clients.answers.items() if status == 503)
    figure(
        "PostgreSQL stopped in immediate mode",
        f"{stops} stops, {ledger.text}, {refused} answered 503, back after {slowest_back_s:.2f} s"
        f" at worst, slowest answer {clients.slowest_s:.2f} s",
        stops=stops,
        refused=refused,
        slowest_back_s=round(slowest_back_s, 2),
        slowest_answer_s=round(clients.slowest_s, 2),
        **ledger.numbers,
    )
    ledger.check()
    assert slowest_back_s <= rounds(short=SHORT_BACK_S, long=BACK_S)
    assert refused > 0
    # A send whose answer was lost has been repeated under its key, and is one message.
    texts = Counter(str(row[0]) for row in shop.query(TEXTS))
    assert [text for text, times in texts.items() if times > 1] == []
    assert set(texts) - set(shop.accepted.values()) <= clients.unsure


#: The text of every message in the database.
TEXTS = "SELECT content::json ->> 'text' FROM core_messages"
