"""A small local server: receives a fake platform's webhook calls, and serves files to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from msgsvc_core.channels import Channel, InvalidWebhook, WebhookCall
from msgsvc_devkit.web_servers import stop

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
        #: The channel that answers a platform's verification of the URL, and the secrets that it may name.
        self.answers: Channel | None = None
        self.secrets: tuple[str, ...] = ()
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
            [
                web.post("/hooks/messenger_a", self._keep),
                web.get("/hooks/messenger_a", self._answer),
                web.get("/files/{name}", self._hand_out),
            ]
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
            await stop(runner)

    async def _keep(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.calls.put_nowait(WebhookCall(await request.read(), headers))
        return web.json_response({"ok": True})

    async def _answer(self, request: web.Request) -> web.Response:
        """A GET by which the platform verifies the URL, as the core lets the channel answer it."""
        if self.answers is None or "GET" not in self.answers.capabilities.hook_methods:
            raise web.HTTPMethodNotAllowed("GET", ["POST"])
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = WebhookCall(
            b"",
            headers,
            self.secrets,
            method="GET",
            query=dict(request.query),
            url=str(request.url),
        )
        try:
            self.answers.parse_update(call)
        except InvalidWebhook as error:
            raise web.HTTPUnauthorized from error
        answer = self.answers.answer_webhook(call)
        if answer is None:
            return web.json_response({"ok": True})
        headers = {"Content-Type": answer.content_type}
        return web.Response(body=answer.body, status=answer.status, headers=headers)

    async def _hand_out(self, request: web.Request) -> web.Response:
        for name, mime_type, content in FILES.values():
            if name == request.match_info["name"]:
                return web.Response(body=content, content_type=mime_type)
        raise web.HTTPNotFound
