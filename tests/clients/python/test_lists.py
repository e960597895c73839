"""What goes beyond single calls: lists, waiting for a sign-in, files, and the event feed."""

import io
import json
import logging
import os
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from msgsvc_client import (
    AsyncFileCursorStore,
    ConnectFailed,
    ConnectionBroken,
    Request,
    cursors,
    errors,
)
from msgsvc_client.events import UnknownEvent
from tests.clients.python.fakes import Answer, Step, refusal, stage


def query_of(request: Request) -> dict[str, str]:
    found = parse_qs(urlsplit(request.url).query, keep_blank_values=True)
    return {name: value for name, (value,) in found.items()}


def page(names: list[str], following: str | None) -> Answer:
    data = [{"name": name, "subscribers": 0, "created_at": ""} for name in names]
    return Answer(200, {"data": data, "next_cursor": following})


async def test_a_list_is_gone_through_over_its_pages() -> None:
    made = stage(page(["a", "b"], "c1"), refusal(503, "unavailable"), page(["c"], None))

    names = [tag.name async for tag in made.client.tags.list(limit=2)]

    assert names == ["a", "b", "c"]
    assert [query_of(request) for request in made.transport.requests] == [
        {"limit": "2"},
        {"limit": "2", "cursor": "c1"},
        {"limit": "2", "cursor": "c1"},
    ]


async def test_pages_can_be_had_one_by_one_and_from_a_cursor() -> None:
    made = stage(page(["a"], "c1"), page(["b"], None))

    pages = [page async for page in made.client.tags.list(cursor="c0").pages()]

    assert [page.next_cursor for page in pages] == ["c1", None]
    assert query_of(made.transport.requests[0]) == {"cursor": "c0"}


async def test_an_empty_list_is_no_item() -> None:
    assert [tag async for tag in stage(page([], None)).client.tags.list()] == []


def status(name: str, **more: Any) -> Answer:
    body = {"session_id": "ses_1", "status": name, "state": "s", "expires_in": 60, **more}
    return Answer(200, body)


async def test_waiting_ends_once_the_person_has_decided() -> None:
    made = stage(status("pending"), status("confirmed", code="c0de"))

    session = await made.client.auth.sessions.wait("ses_1", timeout_s=60)

    assert session.code == "c0de"
    assert "c0de" not in repr(session)
    assert query_of(made.transport.requests[0]) == {"wait": "25"}
    assert made.transport.timeouts[0] == 55
    assert made.clock.slept == [2.0]


async def test_one_request_of_waiting_fits_into_a_calls_deadline() -> None:
    made = stage(status("denied"), deadline_s=20.0)

    await made.client.auth.sessions.wait("ses_1")

    assert query_of(made.transport.requests[0]) == {"wait": "10"}


async def test_waiting_ends_in_time() -> None:
    made = stage(status("pending"))

    session = await made.client.auth.sessions.wait("ses_1", timeout_s=5)

    assert session.status == "pending"
    assert sum(made.clock.slept) == 5


async def test_a_download_is_read_as_it_arrives_or_whole() -> None:
    file_answer = Answer(200, b"0123456789", {"content-type": "image/png"})
    made = stage(refusal(503, "unavailable"), file_answer)

    async with made.client.files.download("fil_1") as file:
        chunks = [chunk async for chunk in file.chunks()]
        assert file.content_type == "image/png"
    whole = await made.client.files.download("fil_1").read()

    assert chunks == [b"01234", b"56789"]
    assert whole == b"0123456789"
    assert made.transport.closed >= 2


async def test_a_download_that_is_refused_raises() -> None:
    with pytest.raises(errors.NotFound):
        await stage(refusal(404, "not_found")).client.files.download("fil_1").read()


async def test_a_download_that_breaks_says_which() -> None:
    made = stage(Answer(200, b"0123456789", broken=ConnectionBroken("reset")))

    with pytest.raises(ConnectionBroken, match=r"reset \(GET /v1/files/fil_1/content\)"):
        await made.client.files.download("fil_1").read()


async def test_rows_of_an_export_may_hold_line_ends_and_quotes() -> None:
    text = '\ufeffsubscriber_id,first_name\r\nsub_1,"Ann\r\n""A"", B"\r\nsub_2,Жан\r\n'
    made = stage(Answer(200, text.encode()))

    async with made.client.subscribers.export(tag="vip") as export:
        rows = [row async for row in export.rows()]

    assert rows == [
        {"subscriber_id": "sub_1", "first_name": 'Ann\r\n"A", B'},
        {"subscriber_id": "sub_2", "first_name": "Жан"},
    ]


async def test_a_file_object_is_read() -> None:
    made = stage(refusal(413, "payload_too_large"))

    with pytest.raises(errors.PayloadTooLarge):
        await made.client.files.upload(io.BytesIO(b"content"), filename="a.txt")

    assert b"content" in (made.transport.requests[0].content or b"")


#: When event 0 occurred.
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Feed:
    """`GET /v1/events` over events that are numbered by second, and whose ids tell the order."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.requests = 0

    def __call__(self, request: Request) -> Answer:
        query = query_of(request)
        self.requests += 1
        found = sorted(self.numbers, reverse="after_event_id" not in query)
        if query.get("after_event_id"):
            found = [each for each in found if self.id(each) > query["after_event_id"]]
        if query.get("cursor"):
            found = [each for each in found if self.id(each) < query["cursor"]]
        page = found[: int(query["limit"])]
        following = self.id(page[-1]) if len(found) > len(page) else None
        data = [self.event(each) for each in page]
        return Answer(200, {"data": data, "next_cursor": following})

    @staticmethod
    def id(number: int) -> str:
        return f"evt_{number:04}"

    def event(self, number: int) -> dict[str, Any]:
        occurred_at = (START + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        return {
            "event_id": self.id(number),
            "event": "something.new",
            "data": {"occurred_at": occurred_at, "number": number},
        }


async def handled(
    step: Step, path: Path, until: Callable[[int], bool] = lambda _number: False, **options: Any
) -> list[int]:
    """The numbers of the events that one run handles; it is interrupted at one for which `until` holds."""
    store = AsyncFileCursorStore(path)
    found = []
    following = stage(step).client.events.follow(store, until_idle=True, **options)
    async with aclosing(following):
        async for event in following:
            assert isinstance(event, UnknownEvent)
            found.append(event.data["number"])
            if until(found[-1]):
                break
    return found


async def test_a_feed_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    events, path = Feed(1, 2, 3), tmp_path / "cursor"

    runs = [await handled(events, path, from_beginning=True)]
    events.numbers += [4, 5]
    runs += [await handled(events, path), await handled(events, path)]

    assert runs == [[1, 2, 3], [4, 5], []]


async def test_a_feed_begins_with_what_is_to_come(tmp_path: Path) -> None:
    events, path = Feed(1, 2), tmp_path / "cursor"

    runs = [await handled(events, path)]
    events.numbers += [3]
    runs += [await handled(events, path)]

    assert runs == [[], [3]]


async def test_a_feed_of_a_project_without_events_loses_not_the_first(tmp_path: Path) -> None:
    events, path = Feed(), tmp_path / "cursor"

    runs = [await handled(events, path)]
    events.numbers += [1]
    runs += [await handled(events, path)]

    assert runs == [[], [1]]


async def test_an_event_whose_handling_was_interrupted_comes_again(tmp_path: Path) -> None:
    events, path = Feed(1, 2, 3), tmp_path / "cursor"

    await handled(events, path, from_beginning=True, until=lambda number: number == 2)

    assert await handled(events, path) == [2, 3]


async def test_an_event_that_is_committed_late_is_not_lost(tmp_path: Path) -> None:
    events, path = Feed(1, 100, 130), tmp_path / "cursor"

    runs = [await handled(events, path, from_beginning=True)]
    events.numbers += [110, 131]
    runs += [await handled(events, path)]

    assert runs == [[1, 100, 130], [110, 131]]


async def test_what_was_under_way_when_a_feed_began_is_not_lost(tmp_path: Path) -> None:
    events, path = Feed(*range(200), 230), tmp_path / "cursor"

    runs = [await handled(events, path)]
    events.numbers += [225, 231]
    runs += [await handled(events, path)]

    assert runs == [[], [225, 231]]


async def test_a_feed_that_begins_in_a_rush_looks_back_a_minute_over_several_pages(
    tmp_path: Path,
) -> None:
    events, path = Feed(*range(0, 1000, 2)), tmp_path / "cursor"

    def event(number: int) -> dict[str, Any]:
        return {**Feed().event(number // 10), "event_id": Feed.id(number)}

    events.event = event  # type: ignore[method-assign] # ten events a second, not one
    await handled(events, path)
    events.numbers += [401]

    assert await handled(events, path) == [40]
    assert len(json.loads(path.read_text())["seen"]) > 300


async def test_what_a_feed_remembers_stays_small(tmp_path: Path) -> None:
    events, path = Feed(*range(0, 3000, 20)), tmp_path / "cursor"

    await handled(events, path, from_beginning=True)

    assert json.loads(path.read_text()) == {
        "after": "evt_2900",
        "newest_ms": int((START + timedelta(seconds=2980)).timestamp() * 1000),
        "seen": ["evt_2920", "evt_2940", "evt_2960", "evt_2980"],
    }
    assert os.listdir(tmp_path) == ["cursor"]


def test_a_position_remembers_no_more_than_its_cap() -> None:
    position = cursors.Position()
    for number in range(1500):
        position.add(f"evt_{number:022}", "2026-03-01T09:00:00.000Z")

    position.settle()

    assert position.after == f"evt_{499:022}"
    assert len(position) == 1000
    assert len(str(position)) < 30_000
    assert str(cursors.Position.parse(str(position))) == str(position)


async def test_a_cursor_is_saved_once_a_second_and_when_the_loop_is_left() -> None:
    made = stage(Feed(1, 2, 3, 4, 5, 6, 7))
    saved: list[list[str]] = []

    class Store:
        async def load(self) -> str | None:
            return None

        async def save(self, cursor: str) -> None:
            saved.append(json.loads(cursor)["seen"])

    following = made.client.events.follow(Store(), from_beginning=True)
    async with aclosing(following):
        async for event in following:
            made.clock.now += 0.4
            if event.event_id == "evt_0006":
                break

    assert [each[-1:] for each in saved] == [[], ["evt_0003"], ["evt_0005"]]


async def test_a_feed_without_news_is_asked_for_what_follows_alone(tmp_path: Path) -> None:
    events = Feed(*range(1, 51))
    made = stage(events)
    store = AsyncFileCursorStore(tmp_path / "cursor")
    asked = []

    async for event in made.client.events.follow(store, from_beginning=True):
        if event.event_id == "evt_0051":
            break
        if event.event_id == "evt_0050":

            async def sleep(seconds: float) -> None:
                made.clock.now += seconds
                asked.append(query_of(made.transport.requests[-1])["after_event_id"])
                if made.clock.now > 1100:
                    events.numbers.append(51)

            made.clock.sleep = sleep  # type: ignore[method-assign] # notes what was asked before each pause

    assert asked[0] == ""
    assert asked[-1] == "evt_0050"


async def test_a_feed_goes_on_when_the_service_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limited = refusal(429, "rate_limit_project", retry_after="40")
    events = Feed(1)
    made = stage(*[ConnectFailed("refused")] * 6, limited, events, max_attempts=1)
    store = AsyncFileCursorStore(tmp_path / "cursor")
    caplog.set_level(logging.WARNING, "msgsvc_client")

    following = made.client.events.follow(store, from_beginning=True, until_idle=True)

    assert [event.event_id async for event in following] == ["evt_0001"]
    assert made.clock.slept == [1, 2, 4, 8, 16, 30, 40]
    assert caplog.messages[0].startswith("events can't be read, next try in 1 s: refused (GET /v1")


@pytest.mark.parametrize(
    ("status", "code"), [(401, "invalid_api_key"), (403, "forbidden"), (404, "not_found")]
)
async def test_what_does_not_heal_ends_a_feed(tmp_path: Path, status: int, code: str) -> None:
    with pytest.raises(errors.ApiError, match=code):
        await handled(refusal(status, code), tmp_path / "cursor")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"after":"","newest_ms":0,"seen":1}'])
async def test_a_broken_cursor_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "events.cursor"
    path.write_text(text)

    with pytest.raises(ValueError, match=r"events\.cursor> holds no cursor; mend it"):
        await handled(Feed(1), path)


def test_a_cursor_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (steps.append("name"), replace(*names)))

    cursors.FileCursor(tmp_path / "cursor").write("evt_1")

    assert steps == ["sync", "name", "sync"]
    assert (tmp_path / "cursor").read_text() == "evt_1"


async def test_a_feed_waits_between_its_looks(tmp_path: Path) -> None:
    events = Feed(1)
    made = stage(events)
    store = AsyncFileCursorStore(tmp_path / "cursor")

    async for event in made.client.events.follow(store, from_beginning=True, poll_interval_s=3):
        if event.event_id == "evt_0002":
            break
        events.numbers.append(2)

    assert made.clock.slept == [3]
