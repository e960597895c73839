"""Files and CSV exports, read as they arrive."""

from __future__ import annotations

import codecs
import csv
from collections.abc import AsyncIterator
from types import TracebackType

from msgsvc_client._async.calls import AsyncCaller, Call
from msgsvc_client._async.transport import AsyncResponse
from msgsvc_client._failures import TransportError


class AsyncDownload:
    """A file of the service. It is asked for when it is opened:

        async with client.files.download(file_id) as file:
            async for chunk in file.chunks():
                ...

    or whole: `content = await client.files.download(file_id).read()`.
    """

    def __init__(self, caller: AsyncCaller, call: Call) -> None:
        self._caller = caller
        self._call = call
        self._response: AsyncResponse | None = None

    async def __aenter__(self) -> AsyncDownload:
        self._response = await self._caller.stream(self._call)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._opened.aclose()
        self._response = None

    @property
    def content_type(self) -> str:
        """The media type, as the service tells it. Only while it is open."""
        return self._opened.headers.get("content-type", "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes as they arrive. Only while it is open, and once."""
        try:
            async for chunk in self._opened.chunks:
                yield chunk
        except TransportError as error:
            error.method, error.path = self._call.method, self._call.path
            raise

    async def read(self) -> bytes:
        """The whole content; opens and closes it if it is not open."""
        if self._response is not None:
            return b"".join([chunk async for chunk in self.chunks()])
        async with self:
            return await self.read()

    @property
    def _opened(self) -> AsyncResponse:
        if self._response is None:
            raise RuntimeError("open it first: `async with ... as file:`")
        return self._response


class AsyncCsvExport(AsyncDownload):
    """A CSV export, whose rows can be read one after another:

    async with client.subscribers.export() as export:
        async for row in export.rows():
            print(row["subscriber_id"])
    """

    async def __aenter__(self) -> AsyncCsvExport:
        await super().__aenter__()
        return self

    async def rows(self) -> AsyncIterator[dict[str, str]]:
        """Each row by the names of the first line. Memory holds one record at a time."""
        names: list[str] | None = None
        async for record in self._records():
            (values,) = csv.reader([record], strict=True)
            if names is None:
                names = values
            else:
                yield dict(zip(names, values, strict=True))

    async def _records(self) -> AsyncIterator[str]:
        """Lines; those within quotes belong together."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        rest = ""
        async for chunk in self.chunks():
            *records, rest = _split(rest + decoder.decode(chunk))
            for record in records:
                yield record
        rest += decoder.decode(b"", final=True)
        if rest.strip("\r\n"):
            yield rest


def _split(text: str) -> list[str]:
    """The whole records, each with its end of line, and what is left."""
    parts: list[str] = []
    record = ""
    for line in text.splitlines(keepends=True) if text else []:
        record += line
        if record.endswith("\n") and record.count('"') % 2 == 0:
            parts.append(record)
            record = ""
    return [*parts, record]
