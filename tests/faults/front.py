"""What stands between the service and a fake platform, and is away as it is told to."""

import asyncio
import ssl
from types import TracebackType
from typing import Literal, Self

from aiohttp import ClientSession, web

from msgsvc_devkit.web_servers import stop

#: How it is away: nobody listens, nobody answers, a gateway answers that it has nobody behind it, or it
#: shows a certificate that nobody trusts.
Mode = Literal["open", "refused", "hang", "502", "tls"]


class Front:
    """`async with Front(url) as front`, and `front.url` in place of `url`.

    Each call has a connection of its own, so that no call finds one from before. With `trusted`, and
    `untrusted` for the mode `tls`, it speaks HTTPS.
    """

    def __init__(
        self,
        upstream: str,
        *,
        trusted: ssl.SSLContext | None = None,
        untrusted: ssl.SSLContext | None = None,
    ) -> None:
        self._upstream = upstream
        self._tls = trusted
        self._untrusted = untrusted
        if trusted is not None:
            trusted.sni_callback = self._show_certificate
        self._mode: Mode = "open"
        self._opened = asyncio.Event()
        #: Texts of the messages that were taken and never answered.
        self.swallowed: list[str] = []
        #: How often the certificate was shown that nobody trusts.
        self.distrusted = 0

    @property
    def url(self) -> str:
        return self.url_by("127.0.0.1")

    def url_by(self, name: str) -> str:
        """The same by another name of this machine."""
        return f"{'http' if self._tls is None else 'https'}://{name}:{self._port}"

    async def be(self, mode: Mode) -> None:
        """Is `mode` from now on; calls that hang have their connections cut off when it changes."""
        if self._mode == "refused" and mode != "refused":
            await self._listen()
        if mode == "refused" and self._mode != "refused":
            await self._site.stop()
        self._mode = mode
        self._opened.set()
        self._opened = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._session = ClientSession()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        self._port = 0
        await self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.set()
        await stop(self._runner)
        await self._session.close()

    async def _listen(self) -> None:
        self._site = web.TCPSite(
            self._runner, "127.0.0.1", self._port, reuse_address=True, ssl_context=self._tls
        )
        await self._site.start()
        self._port = self._port or self._runner.addresses[0][1]

    def _show_certificate(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _of: ssl.SSLContext
    ) -> None:
        if self._mode == "tls":
            assert self._untrusted is not None, "given for this mode"
            connection.context = self._untrusted
            self.distrusted += 1

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self._mode == "hang":
            if request.path.endswith("/sendMessage"):
                self.swallowed.append((await request.json())["text"])
            await self._opened.wait()
            assert request.transport is not None, "a call has a connection"
            request.transport.abort()
            return web.Response()
        if self._mode == "502":
            answer = web.Response(status=502, text="<html>Bad Gateway</html>")
        else:
            headers = {"Content-Type": request.headers.get("Content-Type", "")}
            async with self._session.request(
                request.method, self._upstream + request.path_qs, data=body, headers=headers
            ) as told:
                answer = web.Response(
                    status=told.status, body=await told.read(), content_type=told.content_type
                )
        answer.force_close()
        return answer
