"""The fake Bot API as an HTTP server on this machine."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from msgsvc_devkit.platforms.telegram.bots import FakeBot
from msgsvc_devkit.platforms.telegram.calls import STRICT, Break, Call, Refusal, Upload, bad_request
from msgsvc_devkit.platforms.telegram.chats import Group
from msgsvc_devkit.platforms.telegram.faults import Faults, Script, Scripts
from msgsvc_devkit.platforms.telegram.limits import Limits
from msgsvc_devkit.platforms.telegram.methods import MAX_FILE_BYTES, Methods
from msgsvc_devkit.platforms.telegram.parameters import METHODS, check_parameters
from msgsvc_devkit.platforms.telegram.people import Person
from msgsvc_devkit.web_servers import stop

#: Maximum bytes that Telegram fetches by URL (Bot API, "Sending files").
MAX_FETCHED = {"photo": 5 * 1024 * 1024, "video": 20 * 1024 * 1024, "document": 20 * 1024 * 1024}

#: Content types that it accepts by kind; for documents only three.
FETCHED_TYPES = {
    "photo": ("image/jpeg", "image/png", "image/gif", "image/webp"),
    "video": ("video/mp4",),
    "document": ("application/pdf", "application/zip", "image/gif"),
}


class FakeTelegram:
    """A Bot API with users: `async with FakeTelegram() as telegram`.

    `limits` are off by default. `retry_s` is the wait before a webhook call is retried. Webhooks may use
    plain HTTP, as with a self-hosted Bot API server, unless `https_only`.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        retry_s: float = 0.05,
        https_only: bool = False,
        port: int = 0,
        token: str | None = None,
    ) -> None:
        self.limits = limits or Limits.off()
        self.faults = Faults()
        self.calls: list[Call] = []
        #: All POSTs to a webhook: the update's id, and the response's status (0: no response).
        self.webhook_calls: list[tuple[Any, int]] = []
        #: Whether Telegram can reach file hosts.
        self.reaches_files = True
        self._retry_s = retry_s
        self._port = port
        self._methods = Methods(self._fetch, https_only=https_only)
        self._scripts = Scripts()
        self._bots: dict[str, FakeBot] = {}
        self._files: dict[str, tuple[bytes, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.bot = FakeBot.make("corner_coffee_bot", "Corner Coffee")
        self.bot.token = token or self.bot.token

    # ---- for tests ------------------------------------------------------------------------------

    @property
    def complaints(self) -> list[str]:
        """Requests that a client should not send."""
        return [call.description for call in self.calls if call.description.startswith(STRICT)]

    def add_bot(self, username: str, name: str = "Second Bot") -> FakeBot:
        return self._serve(FakeBot.make(username, name))

    def make_bot(self, person: Person, link: str, *, username: str | None = None) -> FakeBot:
        """A person opens a link that makes a bot, and agrees, maybe to another `username`.

        Raises `ValueError` if Telegram would show no such dialog.
        """
        parts = urlsplit(link)
        place = parts.path.strip("/").split("/")
        if parts.scheme != "https" or parts.hostname != "t.me" or place[0] != "newbot":
            raise ValueError(f"{link} makes no bot")
        manager, suggested = place[1:]
        [managing] = [bot for bot in self._bots.values() if bot.username == manager]
        if not managing.can_manage_bots:
            raise ValueError(f"@{manager} may not manage bots")
        chosen, name = username or suggested, parse_qs(parts.query).get("name", [suggested])[0]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{1,28}[Bb][Oo][Tt]", chosen) or "__" in chosen:
            raise ValueError(f"{chosen!r} is no username of a bot")
        if any(bot.username.lower() == chosen.lower() for bot in self._bots.values()):
            raise ValueError(f"{chosen!r} is taken")
        if not 1 <= len(name) <= 64:
            raise ValueError(f"{name!r} is no name of a bot")
        made = self.add_bot(chosen, name)
        managing.managed[made.bot_id] = made
        managing.updates.add("managed_bot", {"user": person.user, "bot": made.user})
        return made

    def person(
        self, name: str = "Anna", *, username: str | None = None, lang: str | None = "en"
    ) -> Person:
        """A new user, who has not started `bot` yet."""
        return self.bot.person(name, username=username, lang=lang)

    def group(self, title: str = "Family") -> Group:
        return self.bot.group(title)

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def fail_next(
        self,
        method: str,
        status: int,
        description: str,
        *,
        times: int = 1,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Rejects the next calls of `method`, or of any (`*`)."""
        body = _refused(Refusal(status, description, parameters))
        self._scripts.add(method, Script(times, status, json.dumps(body).encode()))

    def answer_next(
        self,
        method: str,
        status: int,
        body: bytes,
        *,
        times: int = 1,
        content_type: str = "text/html",
        done: bool = False,
    ) -> None:
        """Responds to the next calls of `method`, or of any (`*`), with these bytes; with `done` they have
        their effect."""
        self._scripts.add(method, Script(times, status, body, content_type, done=done))

    def break_next(
        self, method: str, fault: Literal["reset", "hang"], *, times: int = 1, done: bool = False
    ) -> None:
        """Closes the connection of the next calls of `method`, or of any (`*`), or never responds to them.

        With `done` they have their effect first.
        """
        self._scripts.add(method, Script(times, fault=fault, done=done))

    def host_file(self, name: str, content: bytes, content_type: str) -> str:
        """Hosts a file on this server; returns its URL."""
        self._files[name] = (content, content_type)
        return f"{self.url}/files/{name}"

    # ---- start and stop -------------------------------------------------------------------------

    async def __aenter__(self) -> "FakeTelegram":
        await self.restart()
        self._session = ClientSession(timeout=ClientTimeout(total=30))
        self._serve(self.bot)
        return self

    async def kill(self) -> None:
        """Crashes the server, with calls in flight; its state is kept for `restart`."""
        await stop(self._runner)

    async def restart(self) -> None:
        """Listens on the same port again."""
        app = web.Application(client_max_size=MAX_FILE_BYTES + 1024 * 1024)
        app.router.add_get("/files/{name}", self._serve_file)
        app.router.add_get("/file/bot{token}/{path:.+}", self._hand_out)
        app.router.add_route("*", "/bot{token}/{method}", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()
        await stop(self._runner)

    def _serve(self, bot: FakeBot) -> FakeBot:
        self._bots[bot.token] = bot
        self._tasks.add(asyncio.create_task(self._call_webhook(bot)))
        return bot

    # ---- calls ----------------------------------------------------------------------------------

    async def _take(self, request: web.Request) -> web.StreamResponse:
        bot = self._bots.get(request.match_info["token"])
        method = request.match_info["method"]
        call = Call(time.monotonic(), bot.bot_id if bot else 0, method, {})
        self.calls.append(call)
        try:
            status, body, content_type = await self._answer(request, bot, call)
        except Break:
            call.ended_at = time.monotonic()
            assert request.transport is not None, "the connection is still there"
            request.transport.abort()
            return web.Response()
        call.ended_at, call.status = time.monotonic(), status
        return web.Response(status=status, body=body, content_type=content_type)

    async def _answer(
        self, request: web.Request, bot: FakeBot | None, call: Call
    ) -> tuple[int, bytes, str]:
        try:
            given, as_text = await _given(request)
            call.params = dict(given)
            script = self._scripts.next(call.method)
            if script:
                if script.done:
                    with contextlib.suppress(Refusal):
                        await self._run(bot, call, as_text=as_text)
                return await script.play()
            self.faults.before(call.method)
            result = await self._run(bot, call, as_text=as_text)
            self.faults.after(call.method)
        except Refusal as refusal:
            call.description = refusal.description
            call.retry_after = refusal.parameters.get("retry_after")
            return refusal.status, json.dumps(_refused(refusal)).encode(), "application/json"
        return 200, json.dumps({"ok": True, "result": result}).encode(), "application/json"

    async def _run(self, bot: FakeBot | None, call: Call, *, as_text: bool) -> Any:
        if bot is None or bot.revoked:
            raise Refusal(401, "Unauthorized")
        if call.method not in METHODS:
            raise Refusal(404, "Not Found")
        params = check_parameters(call.method, call.params, as_text=as_text)
        call.params = params
        if call.method.startswith("send"):
            bot.writable(params["chat_id"])
            # What Telegram answers without Stars isn't published: the free limit holds then.
            paid = params.get("allow_paid_broadcast", False) and bot.star_tenths > 0
            self.limits.take(bot.bot_id, params["chat_id"], call.at, paid=paid)
            sent = await self._methods.run(bot, call.method, params)
            bot.star_tenths -= paid
            return sent
        return await self._methods.run(bot, call.method, params)

    # ---- files ----------------------------------------------------------------------------------

    async def _serve_file(self, request: web.Request) -> web.Response:
        found = self._files.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return web.Response(body=found[0], content_type=found[1])

    async def _hand_out(self, request: web.Request) -> web.Response:
        """Serves a file that a user sent to the bot."""
        bot = self._bots.get(request.match_info["token"])
        if bot is None or bot.revoked:
            body = _refused(Refusal(401, "Unauthorized"))
            return web.json_response(body, status=401)
        for file in bot.files.values():
            if file.path == request.match_info["path"]:
                return web.Response(body=file.content)
        return web.json_response(_refused(Refusal(404, "Not Found")), status=404)

    async def _fetch(self, url: str, kind: str) -> bytes:
        """Fetches a file for a bot, as Telegram does."""
        failed = bad_request("failed to get HTTP URL content")
        if not self.reaches_files or not urlsplit(url).hostname:
            raise failed
        try:
            async with self._session.get(url) as answer:
                content = await answer.read()
        except (ClientError, TimeoutError):
            raise failed from None
        if answer.status != 200 or not 0 < len(content) <= MAX_FETCHED[kind]:
            raise failed
        if answer.content_type not in FETCHED_TYPES[kind]:
            raise bad_request("wrong type of the web page content")
        return content

    # ---- webhooks -------------------------------------------------------------------------------

    async def _call_webhook(self, bot: FakeBot) -> None:
        """POSTs updates to the bot's webhook in order, each until it is accepted."""
        while True:
            update = await bot.updates.next()
            status = await self._post(bot, update)
            self.webhook_calls.append((update.get("update_id"), status))
            if 200 <= status < 300:
                bot.updates.taken(update)
            else:
                said = (
                    f"Wrong response from the webhook: {status}" if status else "Connection refused"
                )
                bot.updates.webhook.last_error = said
                bot.updates.webhook.last_error_at = int(time.time())
                await asyncio.sleep(self._retry_s)

    async def _post(self, bot: FakeBot, update: dict[str, Any]) -> int:
        webhook = bot.updates.webhook
        headers = {"X-Telegram-Bot-Api-Secret-Token": webhook.secret} if webhook.secret else {}
        with contextlib.suppress(ClientError, TimeoutError):
            async with self._session.post(webhook.url, json=update, headers=headers) as answer:
                await answer.read()
                return answer.status
        return 0


async def _given(request: web.Request) -> tuple[dict[str, Any], bool]:
    """The parameters, and whether they are strings."""
    given: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.read() or b"{}")
        except ValueError:
            raise bad_request("can't parse JSON") from None
        if not isinstance(body, dict):
            raise bad_request("can't parse JSON")
        return given | body, bool(given)
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            given[name] = Upload(value.filename, value.content_type, value.file.read())
        else:
            given[name] = value
    return given, True


def _refused(refusal: Refusal) -> dict[str, Any]:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": refusal.status,
        "description": refusal.description,
    }
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    return body
