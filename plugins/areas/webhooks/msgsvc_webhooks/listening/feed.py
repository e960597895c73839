"""The event feed of a service over HTTP, followed from outside."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgsvc_core.events import Event
from msgsvc_core.http_client import CallError, Connector, HttpClient, Response
from msgsvc_core.kernel.ids import creation_ms, earliest_id, is_id
from msgsvc_core.kernel.json import read_json

#: Seconds for one request.
CALL_TIMEOUT_S = 15.0

#: Events of a page, the most that the API gives.
PAGE = 100

#: Milliseconds before the newest event that are read again: a transaction may commit after another one, with
#: earlier ids.
OVERLAP_MS = 10_000

#: Seconds to wait after a 429 that does not say how long.
THROTTLED_S = 5.0


class FeedRefused(Exception):
    """The service refuses the caller, and would again: a wrong key, URL or id. The text says why."""


class FeedUnavailable(Exception):
    """There is no answer, or none that can be used; the next may be. `retry_after_s` is how long the service
    asks to wait, None if it doesn't."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class EventFeed:
    """Reads `GET /v1/events` of the service at `url`, with an API key."""

    def __init__(self, url: str, api_key: str) -> None:
        self._url = f"{url.rstrip('/')}/v1/events"
        self._client = HttpClient(
            Connector(), headers={"Authorization": f"Bearer {api_key}"}, connections=1
        )
        #: Events up to this id are not read again.
        self._after = ""
        #: The later ones that were returned.
        self._returned: set[str] = set()
        #: Where the next page begins: at `_after`, or behind a full page.
        self._position = ""

    async def close(self) -> None:
        await self._client.close()

    async def start_at_end(self) -> None:
        """Has `read` return what happens from now on. Raises `FeedRefused`, `FeedUnavailable`."""
        page = await self._page(limit=str(PAGE))
        ids = [str(event["event_id"]) for event in page["data"]]
        self._after = min(ids) if page["next_cursor"] else ""
        self._record(ids)
        self._position = self._after

    def start_after(self, event_id: str) -> None:
        """Has `read` return what came after an id."""
        self._after = self._position = event_id

    async def read(self) -> tuple[list[Event], bool]:
        """Events that have not been returned yet, oldest first, and whether there are more right now. Raises
        like `start_at_end`; the next call then reads the same."""
        page = await self._page(after_event_id=self._position, limit=str(PAGE))
        events = [_event(each) for each in page["data"]]
        found = [event for event in events if event.event_id not in self._returned]
        self._record([event.event_id for event in found])
        more = page["next_cursor"] is not None
        self._position = events[-1].event_id if more else self._after
        return found, more

    async def find(self, event_id: str) -> Event:
        """One event. Raises `FeedRefused` if there is none."""
        if not is_id(event_id, "evt"):
            raise FeedRefused(
                f"{event_id} is not the id of an event, as evt_0354Q06BNiSMPOemgj7eMz"
            )
        # All ids with the same beginning follow it, and there are hardly two.
        page = await self._page(after_event_id=event_id[:-1], limit=str(PAGE))
        for each in page["data"]:
            if each["event_id"] == event_id:
                return _event(each)
        raise FeedRefused(f"the project has no event {event_id}; events are kept for some weeks")

    def _record(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        window = earliest_id("evt", creation_ms(max(ids)) - OVERLAP_MS)
        self._after = max(self._after, window)
        self._returned = {each for each in (*self._returned, *ids) if each > self._after}

    async def _page(self, **query: str) -> dict[str, Any]:
        try:
            response = await self._client.request(
                "GET", self._url, params=query, timeout_s=CALL_TIMEOUT_S
            )
        except CallError as error:
            raise FeedUnavailable(str(error)) from error
        except ValueError as error:
            raise FeedRefused(
                f"the URL of the service or the API key is malformed: {error}"
            ) from None
        content = _content(response)
        if response.status == 200 and isinstance(content.get("data"), list):
            return content
        raise _failure(response, content)


def _event(each: dict[str, Any]) -> Event:
    return Event(
        event_id=each["event_id"],
        project_id="",
        name=each["event"],
        data=each["data"],
        occurred_at_ms=0,
    )


def _content(response: Response) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        content = read_json(response.body)
        if isinstance(content, dict):
            return content
    return {}


def _failure(response: Response, content: dict[str, Any]) -> FeedRefused | FeedUnavailable:
    status, why = response.status, content.get("error")
    if status == 429:
        asked = response.headers.get("Retry-After") or ""
        wait_s = float(asked[:6]) if asked.isascii() and asked.isdigit() else THROTTLED_S
        return FeedUnavailable("the service limits requests (429)", wait_s)
    if status >= 500 or status == 408:
        return FeedUnavailable(f"the service answers {status}")
    if status == 401:
        return FeedRefused(
            f"the service does not take this API key (401): {why or 'no reason given'}"
        )
    if why is None:
        return FeedRefused(f"there is no msgsvc at this URL: it answers {status} to GET /v1/events")
    return FeedRefused(f"the service refuses to show events ({status}): {why}")
