"""A part that is away and comes back, and clients that go on sending meanwhile."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import httpx2

from msgsvc_core.service import Service
from msgsvc_devkit.deadlines import patient
from tests.contracts.proxy import Proxy
from tests.faults.names import Names
from tests.faults.recorder import Recorder

#: How it is away: nobody listens, nobody answers, or its name is not known.
Mode = Literal["refused", "silent", "unresolved"]

MODES: tuple[Mode, ...] = ("refused", "silent", "unresolved")

#: Seconds after which an unanswered request counts as hung.
HUNG_S = patient(60.0)

#: Seconds between two messages to a chat, or two tries of one.
TURN_S = 0.03


@asynccontextmanager
async def away(proxy: Proxy, names: Names, mode: Mode) -> AsyncIterator[None]:
    """What is behind the proxy is away while the block lasts."""
    if mode == "silent":
        proxy.fall_silent()
    elif mode == "refused":
        proxy.refuse()
    else:
        names.are_resolved = False
        # Whoever looked the name up a moment ago must not come in after the others are cut.
        proxy.refuse()
    try:
        yield
    finally:
        names.are_resolved = True
        proxy.go_on()
        await proxy.listen()


def client_at(service: Service, key: str) -> httpx2.AsyncClient:
    """A client of the service, in this process, with an API key."""
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {key}"},
    )


@dataclass
class Senders:
    """One client for each chat, which sends a message after the other, each until it is accepted."""

    client: httpx2.AsyncClient
    subscribers: Sequence[str]
    #: Texts by message id.
    accepted: dict[str, str] = field(default_factory=dict)
    answers: Counter[int] = field(default_factory=Counter)
    slowest_s: float = 0.0

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        ends = asyncio.Event()
        tasks = [
            asyncio.create_task(self._send(number, ends)) for number in range(len(self.subscribers))
        ]
        try:
            yield
        finally:
            ends.set()
            await asyncio.gather(*tasks)

    async def _send(self, chat: int, ends: asyncio.Event) -> None:
        count, is_accepted = 0, True
        # What is not known to be accepted is sent until it is: then nothing is in doubt here.
        while not ends.is_set() or not is_accepted:
            is_accepted = await self._is_accepted(chat, f"{chat} {count}")
            count += is_accepted
            await asyncio.sleep(TURN_S)

    async def _is_accepted(self, chat: int, text: str) -> bool:
        began_s = time.monotonic()
        async with asyncio.timeout(HUNG_S):
            answer = await self.client.post(
                "/v1/send",
                json={"subscriber_id": self.subscribers[chat], "text": text},
                headers={"Idempotency-Key": f"message-{text.replace(' ', '-')}"},
            )
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
        self.answers[answer.status_code] += 1
        if answer.status_code != 202:
            # The key's first request may still be under way: 425.
            assert answer.status_code in {425, 503}, answer.text
            assert "Retry-After" in answer.headers
            return False
        self.accepted[answer.json()["message_id"]] = text
        return True


@dataclass(frozen=True)
class Ledger:
    """What became of what was accepted."""

    statuses: Counter[str]
    shown: Counter[str]
    #: Texts that are `sent` and that nobody was shown.
    not_shown: list[str]
    #: Chats whose messages came in another order than they were sent.
    out_of_order: list[str]

    @property
    def twice(self) -> list[str]:
        return [text for text, times in self.shown.items() if times > 1]

    def __str__(self) -> str:
        return (
            f"{sum(self.statuses.values())} accepted: {dict(self.statuses)}, {len(self.twice)} shown"
            f" twice, {len(self.out_of_order)} chats out of order"
        )

    def check(self, *, allows_doubt: bool) -> None:
        """Nothing is lost, nothing is shown twice, and each chat has its order."""
        assert set(self.statuses) <= ({"sent", "unknown"} if allows_doubt else {"sent"})
        assert self.statuses["sent"] > 0
        assert (self.twice, self.not_shown, self.out_of_order) == ([], [], [])


async def statuses(witness: Service, senders: Senders) -> dict[str, str]:
    """The status of each accepted message, as the database has it; `lost` for what it has not."""
    async with witness.db.read() as tx:
        rows = await tx.fetch_all("SELECT message_id, status FROM core_messages")
    found = {row["message_id"]: row["status"] for row in rows}
    return {message_id: found.get(message_id, "lost") for message_id in senders.accepted}


async def has_called(recorder: Recorder, count: int) -> bool:
    return len(recorder.calls) >= count


async def is_ready(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/readyz")).json()["status"] == "ok"


async def are_final(witness: Service, senders: Senders) -> bool:
    return not set((await statuses(witness, senders)).values()) & {"queued", "sending"}


async def ledger(witness: Service, senders: Senders, recorder: Recorder) -> Ledger:
    found = await statuses(witness, senders)
    shown = Counter(call.text for call in recorder.calls)
    by_chat: dict[str, list[int]] = defaultdict(list)
    for call in recorder.calls:
        by_chat[call.chat_id].append(int(call.text.rpartition(" ")[2]))
    return Ledger(
        Counter(found.values()),
        shown,
        [
            senders.accepted[message_id]
            for message_id, status in found.items()
            if status == "sent" and not shown[senders.accepted[message_id]]
        ],
        [chat for chat, numbers in by_chat.items() if numbers != sorted(numbers)],
    )
