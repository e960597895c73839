"""A small local server: receives a fake platform's webhook calls, and serves files to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from msgsvc_core.channels import WebhookCall

_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360f8cfc0f01f000502027fcf1a5c730000000049454e44ae426082"
)
#: One file of each type, with only the beginning that determines its type.
FILES = {
    "image": ("picture.png", "image/png", _PNG),
    "video": ("film.mp4", "video/mp4", b"\x00\x00\x00\x18ftypmp42" + b"\x00" * 64),
    "document": ("paper.pdf", "application/pdf", b"%PDF-1.4\n%%EOF\n"),
}


class Door:
    """Records the platform's webhook calls, and serves `FILES`."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[WebhookCall] = asyncio.Queue()
        self._base_url = ""

    @property
    def webhook_url(self) -> str:
        """The URL for `set_webhook`."""
        return f"{self._base_url}/hooks/messenger_a"

    def file_url(self, media_type: str) -> str:
        """The URL of a file of that type."""
        return f"{self._base_url}/files/{FILES[media_type][0]}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Door"]:
        """Listens while the block runs."""
        app = web.Application()
        app.add_routes(
            [web.post("/hooks/messenger_a", self._keep), web.get("/files/{name}", self._hand_out)]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site.port
        self._base_url = f"http://127.0.0.1:{site.port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _keep(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.calls.put_nowait(WebhookCall(await request.read(), headers))
        return web.json_response({"ok": True})

    async def _hand_out(self, request: web.Request) -> web.Response:
        for name, mime_type, content in FILES.values():
            if name == request.match_info["name"]:
                return web.Response(body=content, content_type=mime_type)
        raise web.HTTPNotFound
