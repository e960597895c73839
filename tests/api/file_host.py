"""A project's web server on this machine, that serves files as well or badly as a test says."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aiohttp import web

from msgsvc_devkit.web_servers import stop

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
MP4 = b"\0\0\0\x18ftypisom" + bytes(64)
PDF = b"%PDF-1.7\n" + bytes(64)


@dataclass
class File:
    """What the host answers for one path."""

    content: bytes = PNG
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    #: Whether the length is told before.
    tells_length: bool = True
    #: Whether it goes on for ever after `content`.
    endless: bool = False
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()


class FileHost:
    """`files` by path; `asked` are the paths that were asked for."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.asked: list[str] = []
        self.url = ""
        #: Bytes of bodies that were written, as far as somebody took them.
        self.written = 0

    def put(self, path: str, file: File | None = None) -> str:
        """The address of a new file."""
        self.files[path] = file or File()
        return f"{self.url}/{path}"

    async def give(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.asked.append(path)
        file = self.files.get(path)
        if file is None:
            return web.Response(status=404)
        await file.may_answer.wait()
        answer = web.StreamResponse(status=file.status, headers=file.headers)
        if file.tells_length:
            answer.content_length = len(file.content)
        else:
            answer.enable_chunked_encoding()
        await answer.prepare(request)
        await self._write(answer, file.content)
        while file.endless:
            await self._write(answer, bytes(64 * 1024))
        return answer

    async def _write(self, answer: web.StreamResponse, data: bytes) -> None:
        await answer.write(data)
        self.written += len(data)


async def serving() -> AsyncIterator[FileHost]:
    """For a fixture: a host that listens on loopback."""
    host = FileHost()
    app = web.Application()
    app.add_routes([web.get("/{path:.*}", host.give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host.url = f"http://127.0.0.1:{site.port}"
    yield host
    for file in host.files.values():
        file.may_answer.set()
    await stop(runner)
