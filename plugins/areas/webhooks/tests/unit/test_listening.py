"""The feed that `msgsvc listen` follows: nothing is left out, and nothing comes twice."""

from typing import Any

import pytest

from msgsvc_core.events import Event
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_webhooks.listening.feed import PAGE, EventFeed, FeedUnavailable

NOW_MS = 1_800_000_000_000


def at(seconds: float) -> str:
    """The id of an event of that time."""
    return earliest_id("evt", NOW_MS + round(seconds * 1000))


class Service(EventFeed):
    """Answers as `GET /v1/events` of a service with these events."""

    def __init__(self, *ids: str) -> None:
        super().__init__("http://service.example", "msk_1")
        self.ids = set(ids)
        self.is_away = False
        self.asked = 0

    async def _page(self, **query: str) -> dict[str, Any]:
        self.asked += 1
        if self.is_away:
            raise FeedUnavailable("away")
        limit, after = int(query["limit"]), query.get("after_event_id")
        found = sorted(self.ids, reverse=True)
        if after is not None:
            found = [each for each in reversed(found) if each > after]
        data = [{"event_id": each, "event": "event.tracked", "data": {}} for each in found[:limit]]
        return {"data": data, "next_cursor": "more" if len(found) > limit else None}


async def read(service: Service) -> list[str]:
    """All that there is right now."""
    found: list[Event] = []
    more = True
    while more:
        events, more = await service.read()
        found += events
    return [event.event_id for event in found]


@pytest.mark.parametrize("count", [0, 1, PAGE, 3 * PAGE])
async def test_what_was_there_at_the_start_does_not_come(count: int) -> None:
    service = Service(*(at(-number) for number in range(count)))
    await service.start_at_end()
    before = await read(service)
    service.ids.add(at(1))

    assert before == []
    assert await read(service) == [at(1)]


async def test_an_event_that_commits_behind_a_later_one_comes() -> None:
    service = Service(at(0))
    await service.start_at_end()
    service.ids.add(at(5))
    first = await read(service)
    service.ids |= {at(2), at(-3)}

    assert first == [at(5)]
    assert await read(service) == [at(-3), at(2)]
    assert await read(service) == []


async def test_many_come_in_their_order_and_once() -> None:
    service = Service(*(at(number / 10) for number in range(1000)))
    service.start_after(at(-1))

    assert await read(service) == sorted(service.ids)
    assert await read(service) == []


async def test_a_page_without_an_answer_is_read_again() -> None:
    service = Service(*(at(number) for number in range(2 * PAGE)))
    service.start_after(at(-1))
    first, more = await service.read()
    service.is_away = True
    with pytest.raises(FeedUnavailable):
        await service.read()
    service.is_away = False

    assert more
    assert len(first) == PAGE
    assert await read(service) == sorted(service.ids)[PAGE:]


async def test_an_idle_feed_is_asked_for_seconds_and_not_for_its_history() -> None:
    service = Service(*(at(number) for number in range(1000)))
    service.start_after(at(-1))
    await read(service)
    before = service.asked
    await read(service)

    assert service.asked == before + 1
