"""The fake's HTTP API: the calls of the client-server API that bots make, strictly validated."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from msgsvc_devkit.platforms.matrix import checks
from msgsvc_devkit.platforms.matrix.calls import Call
from msgsvc_devkit.platforms.matrix.refusals import (
    Refused,
    malformed,
    not_found,
    not_in_room,
    token_refused,
    wrong_parameter,
)
from msgsvc_devkit.platforms.matrix.rooms import Event, MatrixRoom
from msgsvc_devkit.platforms.matrix.syncing import position_of, sync_answer, token_of

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.matrix.homeserver import FakeMatrix

#: Maximum bytes of a file that the fake accepts; Synapse accepts 50 MiB unless its configuration says else.
MAX_BYTES = 300 * 1024 * 1024

#: The password of the bot's account.
PASSWORD = "fake-password"

V1, V3 = "/_matrix/client/v1", "/_matrix/client/v3"
ROOM = V3 + "/rooms/{room}"

#: The JSON of a request.
BODY: web.RequestKey[Any] = web.RequestKey("body", object)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(homeserver: "FakeMatrix") -> web.Application:
    """The API of one bot."""
    api = _Api(homeserver)
    app = web.Application(middlewares=[api.around], client_max_size=MAX_BYTES)
    routes: dict[str, tuple[str, str, Handler]] = {
        "login": ("POST", f"{V3}/login", api.login),
        "whoami": ("GET", f"{V3}/account/whoami", api.whoami),
        "displayname": ("GET", V3 + "/profile/{user}/displayname", api.display_name),
        "sync": ("GET", f"{V3}/sync", api.sync),
        "messages": ("GET", f"{ROOM}/messages", api.messages),
        "joined_members": ("GET", f"{ROOM}/joined_members", api.joined_members),
        "membership": ("GET", ROOM + "/state/m.room.member/{user}", api.membership),
        "state": ("GET", ROOM + "/state/{kind}", api.state),
        "join": ("POST", V3 + "/join/{room}", api.join),
        "leave": ("POST", f"{ROOM}/leave", api.leave),
        "send": ("PUT", ROOM + "/send/m.room.message/{transaction}", api.send),
        "redact": ("PUT", ROOM + "/redact/{event}/{transaction}", api.redact),
        "event": ("GET", ROOM + "/event/{event}", api.event),
        "relations": (
            "GET",
            V1 + "/rooms/{room}/relations/{event}/m.replace/m.room.message",
            api.relations,
        ),
        "upload": ("POST", "/_matrix/media/v3/upload", api.upload),
        "download": ("GET", V1 + "/media/download/{server}/{media}", api.download),
        "cdn": ("GET", "/cdn/{server}/{media}", api.elsewhere),
    }
    for name, (method, path, handler) in routes.items():
        app.router.add_route(method, path, handler, name=name)
    return app


class _Api:
    def __init__(self, homeserver: "FakeMatrix") -> None:
        self._homeserver = homeserver

    @property
    def around(self) -> Any:
        """Logs each call, applies injected faults, and returns errors."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            call = Call(request.method, request.path, query=dict(request.query))
            call.name = request.match_info.route.name or ""
            self._homeserver.calls.append(call)
            try:
                answer = await self._done(request, call, handler)
            except Refused as refused:
                answer = _refusal(refused)
                call.code = refused.code
            except web.HTTPException as error:
                answer = _refusal(Refused(error.status, "M_UNRECOGNIZED", "Unrecognized request"))
            call.status = answer.status
            return answer

        return around

    async def _done(self, request: web.Request, call: Call, handler: Handler) -> web.StreamResponse:
        homeserver = self._homeserver
        if call.name == "cdn":
            if "Authorization" in request.headers:
                raise malformed("files: this host has no business with the token")
            return await handler(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if call.name != "login" and (homeserver.revoked or token not in homeserver.tokens):
            raise token_refused()
        how = homeserver.faults.of_call(call.name)
        if call.name != "upload":
            call.body = await _json(request)
            request[BODY] = call.body
        answer = await handler(request)
        if how == "hang":
            await asyncio.sleep(3600)
        if how == "gateway":
            return web.Response(status=504, text="<html>Gateway Time-out</html>")
        if how == "garbage":
            return web.Response(text="<html>Welcome</html>", content_type="text/html")
        if how == "lost" and request.transport is not None:
            request.transport.abort()
        return answer

    # ---- the account ----------------------------------------------------------------------------

    async def login(self, request: web.Request) -> web.Response:
        known = {"type", "identifier", "password", "device_id", "initial_device_display_name"}
        body = checks.object_of(request[BODY], known)
        who = checks.object_of(body.get("identifier"), {"type", "user"}, "identifier")
        bot_id = self._homeserver.bot_id
        names = {bot_id, bot_id.removeprefix("@").partition(":")[0]}
        if body.get("type") != "m.login.password" or who.get("type") != "m.id.user":
            raise Refused(400, "M_UNKNOWN", "Unknown login type")
        if who.get("user") not in names or body.get("password") != PASSWORD:
            raise Refused(403, "M_FORBIDDEN", "Invalid username or password")
        token = f"syt_{secrets.token_urlsafe(16)}"
        self._homeserver.tokens.add(token)
        device = body.get("device_id") or secrets.token_hex(5)
        return web.json_response({"user_id": bot_id, "access_token": token, "device_id": device})

    async def whoami(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        return web.json_response({"user_id": self._homeserver.bot_id, "device_id": "FAKE"})

    async def display_name(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        name = self._homeserver.name_of(request.match_info["user"])
        if name is None:
            raise not_found("Profile")
        return web.json_response({"displayname": name})

    # ---- rooms ----------------------------------------------------------------------------------

    async def sync(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"since", "filter", "timeout", "set_presence"})
        wanted = checks.sync_filter(query.get("filter", "{}"))
        timeout_ms = checks.number_in(query, "timeout", 0, 600_000)
        if query.get("set_presence") not in {None, "offline", "online", "unavailable"}:
            raise wrong_parameter("set_presence: unknown")
        since = position_of(query["since"]) if "since" in query else None
        homeserver = self._homeserver
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            answer = sync_answer(homeserver.rooms.values(), homeserver.bot_id, since, wanted)
            if since is None or any(answer.values()):
                break
            try:
                async with asyncio.timeout_at(deadline):
                    await homeserver.changed()
            except TimeoutError:
                break
        return web.json_response({"next_batch": token_of(homeserver.position), "rooms": answer})

    async def messages(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"from", "to", "dir", "limit", "filter"})
        room = self._room(request)
        if query.get("dir") != "b" or "from" not in query:
            raise wrong_parameter("dir, from: the fake goes back, from a token")
        limit = checks.number_in(query, "limit", 10, 1000)
        wanted = checks.room_filter(json.loads(query.get("filter", "{}")))
        start = position_of(query["from"])
        end = position_of(query["to"]) if "to" in query else 0
        found = [
            event
            for event in reversed(room.events)
            if end < event.position <= start and checks.passes(event.kind, wanted)
        ]
        answer: dict[str, Any] = {
            "start": query["from"],
            "chunk": [event.to_wire(with_room=True) for event in found[:limit]],
        }
        if len(found) > limit:
            answer["end"] = token_of(found[limit - 1].position - 1)
        return web.json_response(answer)

    async def joined_members(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        room = self._room(request)
        names = {user: {"display_name": self._homeserver.name_of(user)} for user in room.joined}
        return web.json_response({"joined": names})

    async def membership(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, {"format"})
        return self._state_event(request, "m.room.member", request.match_info["user"])

    async def state(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, {"format"})
        return self._state_event(request, request.match_info["kind"], "")

    def _state_event(self, request: web.Request, kind: str, state_key: str) -> web.Response:
        bot_id = self._homeserver.bot_id
        room = self._homeserver.rooms.get(request.match_info["room"])
        # Who has left still sees the state as it was then.
        if room is None or room.membership(bot_id) not in {"join", "leave", "ban"}:
            raise not_in_room()
        event = room.state_event(kind, state_key)
        if event is None:
            raise not_found("Event")
        full = request.query.get("format") == "event"
        return web.json_response(event.to_wire(with_room=True) if full else event.content)

    async def join(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, {"via"})
        checks.object_of(request[BODY], {"reason"})
        homeserver = self._homeserver
        room = homeserver.rooms.get(request.match_info["room"])
        if room is None:
            raise not_found("MatrixRoom")
        membership = room.membership(homeserver.bot_id)
        if membership not in {"invite", "join"}:
            raise Refused(403, "M_FORBIDDEN", "You are not invited to this room.")
        if membership == "invite":
            homeserver.member(room, homeserver.bot_id, "join", homeserver.bot_id)
        return web.json_response({"room_id": room.room_id})

    async def leave(self, request: web.Request) -> web.Response:
        checks.object_of(request[BODY], {"reason"})
        homeserver = self._homeserver
        room = homeserver.rooms.get(request.match_info["room"])
        if room is None or room.membership(homeserver.bot_id) not in {"join", "invite"}:
            raise not_in_room()
        event = homeserver.member(room, homeserver.bot_id, "leave", homeserver.bot_id)
        event.content["reason"] = request[BODY].get("reason")
        return web.json_response({})

    # ---- messages -------------------------------------------------------------------------------

    async def send(self, request: web.Request) -> web.Response:
        homeserver, room = self._homeserver, self._room(request)
        if done := homeserver.transactions.get(request.path):
            return web.json_response({"event_id": done})
        if not room.lets_write(homeserver.bot_id):
            raise Refused(403, "M_FORBIDDEN", "You don't have permission to post that to the room")
        content = checks.message_content(request[BODY], homeserver.files)
        homeserver.faults.of_message(asyncio.get_running_loop().time())
        event = homeserver.add(room, "m.room.message", homeserver.bot_id, content)
        homeserver.transactions[request.path] = event.event_id
        return web.json_response({"event_id": event.event_id})

    async def redact(self, request: web.Request) -> web.Response:
        checks.object_of(request[BODY], {"reason"})
        homeserver, room = self._homeserver, self._room(request)
        if done := homeserver.transactions.get(request.path):
            return web.json_response({"event_id": done})
        event = self._event(room, request)
        if event.sender != homeserver.bot_id:
            raise Refused(403, "M_FORBIDDEN", "You don't have permission to redact events")
        made = homeserver.redact(room, event.event_id, homeserver.bot_id)
        homeserver.transactions[request.path] = made.event_id
        return web.json_response({"event_id": made.event_id})

    async def event(self, request: web.Request) -> web.Response:
        checks.query_of(request.query, ())
        room = self._room(request)
        event = self._event(room, request)
        wire = event.to_wire(with_room=True)
        edits = [one for one in room.edits_of(event) if not one.redacted_by]
        if edits and not event.redacted_by:
            latest = edits[-1].to_wire(with_room=True)
            wire["unsigned"]["m.relations"] = {"m.replace": latest}
        return web.json_response(wire)

    async def relations(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"limit", "from", "dir", "to"})
        limit = checks.number_in(query, "limit", 5, 100)
        room = self._room(request)
        event = self._event(room, request)
        start = position_of(query["from"]) if "from" in query else self._homeserver.position
        edits = [
            one
            for one in reversed(room.edits_of(event))
            if not one.redacted_by and one.position <= start
        ]
        answer: dict[str, Any] = {"chunk": [one.to_wire(with_room=True) for one in edits[:limit]]}
        if len(edits) > limit:
            answer["next_batch"] = token_of(edits[limit].position)
        return web.json_response(answer)

    # ---- files ----------------------------------------------------------------------------------

    async def upload(self, request: web.Request) -> web.Response:
        query = checks.query_of(request.query, {"filename"})
        content = await request.read()
        if not content or "Content-Type" not in request.headers:
            raise malformed("upload: a file is wanted, with its type")
        uri = self._homeserver.keep_file(content, request.content_type, query.get("filename", ""))
        return web.json_response({"content_uri": uri})

    async def download(self, request: web.Request) -> web.Response:
        if self._homeserver.redirects_to:
            place = f"{request.match_info['server']}/{request.match_info['media']}"
            location = {"Location": f"{self._homeserver.redirects_to}/{place}"}
            return web.Response(status=307, headers=location)
        return await self.elsewhere(request)

    async def elsewhere(self, request: web.Request) -> web.Response:
        """A host of files to which downloads may be redirected."""
        uri = f"mxc://{request.match_info['server']}/{request.match_info['media']}"
        kept = self._homeserver.files.get(uri)
        if kept is None:
            raise not_found("File")
        return web.Response(body=kept[0], content_type=kept[1])

    def _room(self, request: web.Request) -> MatrixRoom:
        """The room, if the bot is in it."""
        room = self._homeserver.rooms.get(request.match_info["room"])
        if room is None or room.membership(self._homeserver.bot_id) != "join":
            raise not_in_room()
        return room

    def _event(self, room: MatrixRoom, request: web.Request) -> Event:
        event = room.event(request.match_info["event"])
        if event is None:
            raise not_found("Event")
        return event


async def _json(request: web.Request) -> Any:
    body = await request.read()
    if request.method == "GET":
        return None
    if request.content_type != "application/json":
        raise Refused(400, "M_NOT_JSON", "the body must be JSON")
    try:
        return json.loads(body)
    except ValueError:
        raise Refused(400, "M_NOT_JSON", "the body is not JSON") from None


def _refusal(refused: Refused) -> web.Response:
    headers: Mapping[str, str] = {}
    body: dict[str, Any] = {"errcode": refused.code, "error": refused.message}
    if refused.retry_after_s is not None:
        headers = {"Retry-After": f"{refused.retry_after_s:g}"}
        body["retry_after_ms"] = round(refused.retry_after_s * 1000)
    return web.json_response(body, status=refused.status, headers=headers)
