"""The homeserver's client-server API: one method per call."""

import asyncio
import hashlib
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeVar
from urllib.parse import quote

from msgsvc_core.channels import DeliveryError, MediaFile, Reason
from msgsvc_core.channels.http import PlatformAnswer, PlatformHttp
from msgsvc_core.http_client import FileUpload
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import OutboundGuard
from msgsvc_matrix.failures import MatrixError, read_answer, to_error
from msgsvc_matrix.settings import MatrixSettings

CLIENT = "/_matrix/client/v3"

#: Seconds beyond the homeserver's wait after which the connection is taken for dead.
POLL_GRACE_S = 15.0

#: Seconds for sending or reading a file of the largest size.
FILE_S = 120.0

#: Seconds for accepting an invitation: a server of others may be slow, and all updates wait.
JOIN_S = 10.0

#: Characters of a file's name.
MAX_NAME = 200

#: Edits of one message that are read at a time, and pages of them that are read.
EDITS_PER_PAGE, EDIT_PAGES = 100, 20

T = TypeVar("T")


class MatrixClient:
    """Calls of one bot. Each raises `DeliveryError`, and no other error, on failure.

    `device` names the bot's device if it signs in with a password: the homeserver recognises repeated
    messages of one device.
    """

    def __init__(self, settings: MatrixSettings, guard: OutboundGuard, device: str) -> None:
        self._settings = settings
        self._device = device
        self._login_turn = asyncio.Lock()
        self._user_id: str | None = None
        self._signed_in = settings.user is None
        self._http = self._new_http(settings.token.get_secret_value() if self._signed_in else None)
        self._ended: list[PlatformHttp] = []
        # Homeservers may redirect to hosts of files, which have no business with the token.
        self._elsewhere = PlatformHttp(
            "", proxy=_proxy(settings), timeout_s=FILE_S, ca_file=_ca_file(settings), guard=guard
        )

    # ---- the account ----------------------------------------------------------------------------

    async def user_id(self) -> str:
        """The bot's id, asked for once."""
        return self._user_id or await self.whoami()

    async def whoami(self) -> str:
        found = await self._call("GET", f"{CLIENT}/account/whoami")
        user_id = found.get("user_id")
        if not isinstance(user_id, str) or not user_id.startswith("@"):
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "no answer of a homeserver; is homeserver_url right?"
            )
        self._user_id = user_id
        return user_id

    async def display_name(self, user_id: str) -> str | None:
        try:
            found = await self._call("GET", f"{CLIENT}/profile/{_part(user_id)}/displayname")
        except MatrixError as error:
            if not error.not_found:
                raise
            return None
        name = found.get("displayname")
        return name if isinstance(name, str) and name else None

    # ---- rooms ----------------------------------------------------------------------------------

    async def sync(self, since: str | None, sync_filter: Any, timeout_s: float) -> dict[str, Any]:
        """What happened after `since`, as soon as there is something."""
        params = {
            "filter": to_json(sync_filter),
            "timeout": str(round(timeout_s * 1000)),
            "set_presence": "offline",
        }
        if since is not None:
            params["since"] = since
        return await self._call(
            "GET", f"{CLIENT}/sync", params=params, timeout_s=timeout_s + POLL_GRACE_S
        )

    async def messages(
        self, room_id: str, start: str, end: str | None, room_filter: Any, limit: int
    ) -> dict[str, Any]:
        """A page of events from `start` back to `end`, the latest first; None is the room's beginning."""
        params = {"from": start, "dir": "b", "limit": str(limit)}
        params["filter"] = to_json(room_filter)
        if end is not None:
            params["to"] = end
        return await self._call("GET", f"{_room(room_id)}/messages", params=params)

    async def members(self, room_id: str) -> dict[str, str | None]:
        """Who is in a room: display names by user id."""
        found = (await self._call("GET", f"{_room(room_id)}/joined_members")).get("joined")
        if not isinstance(found, dict):
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the answer names no members")
        return {
            user_id: about.get("display_name") if isinstance(about, dict) else None
            for user_id, about in found.items()
        }

    async def membership(self, room_id: str, user_id: str) -> dict[str, Any]:
        """The latest event that the bot may see about a member."""
        path = f"{_room(room_id)}/state/m.room.member/{_part(user_id)}"
        return await self._call("GET", path, params={"format": "event"})

    async def state(self, room_id: str, kind: str, *, full: bool = False) -> dict[str, Any]:
        """The content of a room's state event; with `full` the event. The bot is in the room, or was."""
        params = {"format": "event"} if full else None
        return await self._call("GET", f"{_room(room_id)}/state/{kind}", params=params)

    async def join(self, room_id: str, *, via: str = "") -> None:
        """Accepts an invitation, or joins an open room. `via` is a server that knows the room."""
        params = {"via": via} if via else None
        await self._call("POST", f"{CLIENT}/join/{_part(room_id)}", {}, params, timeout_s=JOIN_S)

    async def leave(self, room_id: str, reason: str) -> None:
        """Leaves a room, or declines an invitation."""
        await self._call("POST", f"{_room(room_id)}/leave", {"reason": reason})

    # ---- messages -------------------------------------------------------------------------------

    async def send(self, room_id: str, transaction: str, content: Mapping[str, Any]) -> str:
        """The id of the event. A repeated transaction is the same event."""
        path = f"{_room(room_id)}/send/m.room.message/{_part(transaction)}"
        sent = await self._request("PUT", path, content)
        event_id = sent.get("event_id")
        if not isinstance(event_id, str) or not event_id:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "sent, but without an event_id", in_doubt=True
            )
        return event_id

    async def edit(self, room_id: str, event_id: str, content: Mapping[str, Any]) -> None:
        """Replaces the content of a message."""
        # A transaction of its own: a message that is edited to and fro is not a repetition.
        path = f"{_room(room_id)}/send/m.room.message/{uuid.uuid4().hex}"
        edit = {
            # For clients that know no edits.
            "msgtype": "m.text",
            "body": f"* {content['body']}",
            "m.new_content": content,
            "m.relates_to": {"rel_type": "m.replace", "event_id": event_id},
        }
        await self._call("PUT", path, edit)

    async def event(self, room_id: str, event_id: str) -> dict[str, Any]:
        return await self._call("GET", f"{_room(room_id)}/event/{_part(event_id)}")

    async def edits_of(self, room_id: str, event_id: str) -> list[str]:
        """The ids of the events that edit a message."""
        path = (
            f"/_matrix/client/v1/rooms/{_part(room_id)}/relations/{_part(event_id)}"
            "/m.replace/m.room.message"
        )
        edits: list[str] = []
        params = {"limit": str(EDITS_PER_PAGE)}
        for _ in range(EDIT_PAGES):
            found = await self._call("GET", path, params=params)
            chunk = found.get("chunk")
            edits += [
                one["event_id"]
                for one in (chunk if isinstance(chunk, list) else [])
                if isinstance(one, dict) and isinstance(one.get("event_id"), str)
            ]
            after = found.get("next_batch")
            if not isinstance(after, str):
                break
            params = {**params, "from": after}
        return edits

    async def redact(self, room_id: str, event_id: str) -> None:
        # The same transaction each time: to redact twice is to redact.
        digest = hashlib.blake2b(event_id.encode(), digest_size=16).hexdigest()
        path = f"{_room(room_id)}/redact/{_part(event_id)}/redact-{digest}"
        await self._call("PUT", path, {})

    # ---- files ----------------------------------------------------------------------------------

    async def upload(self, file: MediaFile) -> str:
        """The `mxc://` URI of a file that is given to the homeserver."""
        name = "".join(filter(str.isprintable, file.filename))[:MAX_NAME] or "file"
        body = FileUpload(file.file, file.mime_type)
        with _repeatable():
            made = await self._signed(
                lambda http: http.call(
                    "POST",
                    "/_matrix/media/v3/upload",
                    form=body,
                    params={"filename": name},
                    timeout_s=FILE_S,
                )
            )
            uri = read_answer(made).get("content_uri")
        if not isinstance(uri, str) or not uri.startswith("mxc://"):
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the homeserver did not keep the file")
        return uri

    async def download(self, server: str, media_id: str, into: IO[bytes], max_bytes: int) -> None:
        """Writes a file that a user sent into `into`."""
        path = f"/_matrix/client/v1/media/download/{_part(server)}/{_part(media_id)}"
        with _repeatable():
            answer = await self._signed(
                lambda http: http.download(path, into, max_bytes, timeout_s=FILE_S)
            )
            if answer.status in {307, 308} and "Location" in answer.headers:
                url = answer.headers["Location"]
                if not url.startswith(("http://", "https://")):
                    raise DeliveryError(Reason.INVALID_MESSAGE, "the file is at no http address")
                answer = await self._elsewhere.download(url, into, max_bytes)
                if 300 <= answer.status < 500 and answer.status != 429:
                    raise DeliveryError(
                        Reason.INVALID_MESSAGE, f"the file's host answered {answer.status}"
                    )
            if answer.status != 200:
                read_answer(answer)
                raise to_error(answer.status, answer.headers, {})

    async def close(self) -> None:
        for http in (self._http, self._elsewhere, *self._ended):
            await http.close()
        self._ended.clear()

    # ---- calls ----------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Any call but `send`."""
        with _repeatable():
            return await self._request(method, path, body, params, timeout_s)

    async def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        template = "/".join("{}" if "%" in part else part for part in path.split("/"))
        try:
            answer = await self._signed(
                lambda http: http.call(
                    method, path, json=body, params=params, timeout_s=timeout_s, template=template
                )
            )
        except ValueError:
            # The encoder's: JSON has no way to say half of a surrogate pair.
            raise DeliveryError(Reason.INVALID_MESSAGE, "text: holds half of a character") from None
        return read_answer(answer)

    async def _signed(
        self, call: Callable[[PlatformHttp], Awaitable[PlatformAnswer]]
    ) -> PlatformAnswer:
        """The call with the bot's token; with a new one if a token from a password is no longer valid."""
        await self._sign_in()
        http = self._http
        answer = await call(http)
        if answer.status != 401 or self._settings.user is None:
            return answer
        await self._sign_in(instead_of=http)
        return await call(self._http)

    async def _sign_in(self, instead_of: PlatformHttp | None = None) -> None:
        """Gets a token by the password, if there is none or `instead_of` has an ended one."""
        if self._signed_in and instead_of is None:
            return
        async with self._login_turn:
            if self._signed_in and self._http is not instead_of:
                return
            body = {
                "type": "m.login.password",
                "identifier": {"type": "m.id.user", "user": self._settings.user},
                "password": self._settings.token.get_secret_value(),
                "device_id": self._device,
                "initial_device_display_name": "msgsvc",
            }
            anonymous = self._new_http(None)
            try:
                with _repeatable():
                    made = read_answer(await anonymous.call("POST", f"{CLIENT}/login", json=body))
            except MatrixError as error:
                if error.forbidden:
                    raise DeliveryError(
                        Reason.BOT_BANNED, "the homeserver refuses user and password"
                    ) from None
                raise
            finally:
                await anonymous.close()
            token = made.get("access_token")
            if not isinstance(token, str):
                raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "login gave no access_token")
            # Other calls may still use the earlier one.
            self._ended.append(self._http)
            self._http = self._new_http(token)
            self._signed_in = True

    def _new_http(self, token: str | None) -> PlatformHttp:
        return PlatformHttp(
            self._settings.homeserver_url,
            headers={"Authorization": f"Bearer {token}"} if token else None,
            proxy=_proxy(self._settings),
            timeout_s=self._settings.timeout_s,
            ca_file=_ca_file(self._settings),
        )


@contextmanager
def _repeatable() -> Iterator[None]:
    """Around calls that may be made twice: lookups, edits, files that no message names yet.

    Only a message may not; it alone is in doubt where a connection broke.
    """
    try:
        yield
    except DeliveryError as error:
        error.in_doubt = False
        raise


def _proxy(settings: MatrixSettings) -> str | None:
    return settings.proxy.get_secret_value() if settings.proxy else None


def _ca_file(settings: MatrixSettings) -> str | None:
    return str(settings.ca_file) if settings.ca_file else None


def _room(room_id: str) -> str:
    return f"{CLIENT}/rooms/{_part(room_id)}"


def _part(text: str) -> str:
    """As one part of a path."""
    return quote(text, safe="")
