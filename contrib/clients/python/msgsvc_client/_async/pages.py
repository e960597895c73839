"""Lists: their items one after another, or page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from msgsvc_client._async.calls import AsyncCaller, Call
from msgsvc_client.pages import Page

T = TypeVar("T")


@dataclass(frozen=True)
class AsyncPaginator(Generic[T]):
    """A list of the API. Nothing is asked for before it is gone through.

        async for subscriber in client.subscribers.list(tag="vip"):
            ...

    Going through it again asks again.
    """

    _caller: AsyncCaller
    _call: Call
    _decode: Callable[[Mapping[str, Any]], T]

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.data:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """The pages, each with the cursor of the next."""
        page = await self.first_page()
        yield page
        while page.next_cursor is not None:
            page = await self.page(page.next_cursor)
            yield page

    async def first_page(self) -> Page[T]:
        """One page alone: `limit` items at most."""
        return await self.page(None)

    async def page(self, cursor: str | None) -> Page[T]:
        """The page that begins at a cursor; None: the first."""
        call = self._call
        if cursor is not None:
            call = replace(call, query={**call.query, "cursor": cursor})
        return await self._caller.json(call, lambda data: Page.from_data(data, self._decode))
