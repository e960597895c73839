"""The fake's HTTP API: the schema's calls that bots make, strictly validated."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import BodyPartReader, web

from msgsvc_devkit.platforms.max import checks
from msgsvc_devkit.platforms.max.calls import Call
from msgsvc_devkit.platforms.max.dialogs import Dialog
from msgsvc_devkit.platforms.max.refusals import Refused, malformed, token_refused
from msgsvc_devkit.platforms.max.updates import Subscription

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.max.platform import FakeMax

#: Maximum bytes of a file that the fake accepts; the platform accepts up to 4 GB.
MOST_BYTES = 300 * 1024 * 1024

#: The JSON of a request.
BODY: web.RequestKey[Any] = web.RequestKey("body", object)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(platform: "FakeMax") -> web.Application:
    """The API of one bot."""
    api = _Api(platform)
    app = web.Application(middlewares=[api.around], client_max_size=MOST_BYTES)
    app.add_routes(
        [
            web.get("/me", api.me, allow_head=False),
            web.patch("/me/commands", api.set_commands),
            web.get("/messages", api.messages, allow_head=False),
            web.post("/messages", api.send),
            web.put("/messages", api.edit),
            web.delete("/messages", api.delete),
            web.post("/answers", api.answer),
            web.get("/updates", api.updates, allow_head=False),
            web.get("/subscriptions", api.subscriptions, allow_head=False),
            web.post("/subscriptions", api.subscribe),
            web.delete("/subscriptions", api.unsubscribe),
            web.post("/uploads", api.place),
            web.post("/upload.do", api.upload),
            web.get("/videos/{token}", api.video, allow_head=False),
            web.get("/download/{token}", api.download, allow_head=False),
        ]
    )
    return app


class _Api:
    def __init__(self, platform: "FakeMax") -> None:
        self._platform = platform

    @property
    def around(self) -> Any:
        """Logs each call, applies injected faults, and returns errors."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            now = asyncio.get_running_loop().time()
            call = Call(now, request.method, request.path, dict(request.query))
            call.headers = dict(request.headers)
            self._platform.calls.append(call)
            try:
                answer = await self._done(request, call, handler)
            except Refused as refused:
                answer = _refusal(refused)
                call.code = refused.code
            except web.HTTPException as error:
                answer = _refusal(
                    Refused(error.status, "not.found", f"{request.path}: no such call")
                )
            call.status = answer.status
            return answer

        return around

    async def _done(self, request: web.Request, call: Call, handler: Handler) -> web.StreamResponse:
        platform = self._platform
        on_files = request.path == "/upload.do" or request.path.startswith("/download/")
        if on_files and "Authorization" in request.headers:
            raise malformed("files: this host has no business with the token")
        if request.path == "/upload.do":
            return _broken(request) if platform.files.breaks else await handler(request)
        if not on_files and (
            platform.revoked or request.headers.get("Authorization") != platform.token
        ):
            raise token_refused()
        how = platform.faults.of_call(call.at)
        if how == "reset":
            await request.read()
            return _broken(request)
        call.body = await _json(request)
        request[BODY] = call.body
        answer = await handler(request)
        if how == "hang":
            await asyncio.sleep(3600)
        if how == "gateway":
            raise Refused(504, "gateway.timeout", "Gateway Time-out")
        if how == "garbage":
            return web.Response(text="<html>Bad gateway</html>", content_type="text/html")
        return _broken(request) if how == "lost" else answer

    async def me(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        commands = [{"name": name, "description": it} for name, it in self._platform.menu.items()]
        about = {"description": "A bot for tests", "commands": commands}
        return web.json_response({**self._platform.bot.to_wire(), **about})

    async def set_commands(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        self._platform.menu = checks.commands_body(request[BODY])
        return web.json_response({"success": True})

    async def messages(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"message_ids"})
        mids = query.get("message_ids", "").split(",")
        found = [self._platform.message(mid) for mid in mids]
        return web.json_response({"messages": [one.to_wire() for one in found if one]})

    async def send(self, request: web.Request) -> web.Response:
        dialog = self._receiver(request)
        made = await self._platform.send(dialog, checks.message_body(request[BODY]))
        return web.json_response({"message": made.to_wire()})

    async def edit(self, request: web.Request) -> web.Response:
        mid = _required(request, "message_id")
        await self._platform.edit(mid, checks.message_body(request[BODY]))
        return web.json_response({"success": True})

    async def delete(self, request: web.Request) -> web.Response:
        self._platform.delete(_required(request, "message_id"))
        return web.json_response({"success": True})

    async def answer(self, request: web.Request) -> web.Response:
        callback_id = _required(request, "callback_id")
        body = checks.answer_body(request[BODY])
        self._platform.answer(callback_id, body.get("notification"))
        return web.json_response({"success": True})

    async def updates(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"limit", "timeout", "marker", "types"})
        limit = checks.number_in(query, "limit", 100, 1, 1000)
        timeout_s = checks.number_in(query, "timeout", 30, 0, 90)
        marker = None
        if "marker" in query:
            marker = checks.number_in(query, "marker", 0, -(2**63), 2**63 - 1)
        types = query["types"].split(",") if query.get("types") else []
        checks.check_types(types)
        return web.json_response(await self._platform.updates.poll(marker, timeout_s, limit, types))

    async def subscriptions(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        wires = [
            {"url": one.url, "time": 0, "update_types": sorted(one.types) if one.types else None}
            for one in self._platform.updates.subscriptions.values()
        ]
        return web.json_response({"subscriptions": wires})

    async def subscribe(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        body = checks.subscription_body(request[BODY])
        types = body.get("update_types")
        wanted = None if types is None else frozenset(types)
        made = Subscription(body["url"], body.get("secret"), wanted)
        self._platform.updates.subscriptions[made.url] = made
        return web.json_response({"success": True})

    async def unsubscribe(self, request: web.Request) -> web.Response:
        url = _required(request, "url")
        if self._platform.updates.subscriptions.pop(url, None) is None:
            return web.json_response({"success": False, "message": "No such subscription"})
        return web.json_response({"success": True})

    async def place(self, request: web.Request) -> web.Response:
        kind = _required(request, "type")
        if kind not in checks.FILE_TYPES:
            raise malformed("type: must be image, video, audio or file")
        file = self._platform.files.place(kind)
        answer = {"url": f"{self._platform.url}/upload.do?id={file.token}"}
        if kind in {"video", "audio"}:
            answer["token"] = file.token
        return web.json_response(answer)

    async def upload(self, request: web.Request) -> web.Response:
        token = _required(request, "id")
        part = await (await request.multipart()).next()
        if not isinstance(part, BodyPartReader) or part.name != "data" or not part.filename:
            raise malformed("upload: one part is wanted, `data`, with a filename")
        file = self._platform.files.fill(token, await part.read(), part.filename)
        if file.kind in {"video", "audio"}:
            return web.Response(text="<retval>1</retval>", content_type="text/xml")
        if file.kind == "image":
            return web.json_response({"photos": {"1": {"token": file.token}}})
        return web.json_response({"token": file.token})

    async def video(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        file = self._platform.files.by_token.get(request.match_info["token"])
        if file is None or file.kind != "video":
            raise Refused(404, "not.found", "Video not found")
        urls = {
            f"mp4_{lines}": f"{self._platform.url}/download/{file.token}?lines={lines}"
            for lines in (1080, 360)
        }
        details = {"token": file.token, "width": 1920, "height": 1080, "duration": 7}
        return web.json_response({**details, "urls": {**urls, "mp4_720": None}})

    async def download(self, request: web.Request) -> web.Response:
        file = self._platform.files.by_token.get(request.match_info["token"])
        if file is None or file.content is None:
            return web.Response(status=404)
        # The smaller version of a video has a quarter of its bytes.
        share = 4 if request.query.get("lines") == "360" else 1
        return web.Response(body=file.content[: len(file.content) // share])

    def _receiver(self, request: web.Request) -> Dialog:
        query = checks.query_of(request.query, {"user_id", "chat_id", "disable_link_preview"})
        if ("user_id" in query) == ("chat_id" in query):
            raise malformed("one of user_id and chat_id must be given")
        limit = 2**63
        if "chat_id" in query:
            chat_id = checks.number_in(query, "chat_id", 0, -limit, limit)
            return self._platform.dialog_of_chat(chat_id)
        return self._platform.dialog_of_user(checks.number_in(query, "user_id", 0, 1, limit))


def _required(request: web.Request, name: str) -> str:
    value = checks.query_of(request.query, {name}).get(name, "")
    if not value.strip():
        raise malformed(f"{name}: must be given")
    return value


async def _json(request: web.Request) -> Any:
    body = await request.read()
    if request.method not in {"POST", "PUT", "PATCH"} or not body:
        return None
    if request.content_type != "application/json":
        raise malformed("the body must be JSON")
    try:
        return json.loads(body)
    except ValueError:
        raise malformed("the body is not JSON") from None


def _refusal(refused: Refused) -> web.Response:
    headers = {}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = f"{refused.retry_after_s:g}"
    return web.json_response(
        {"code": refused.code, "message": refused.message},
        status=refused.status,
        headers=headers,
    )


def _broken(request: web.Request) -> web.Response:
    """Closes the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=200, headers={"Connection": "close"})
