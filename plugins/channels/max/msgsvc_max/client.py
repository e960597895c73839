"""Client of the platform's Bot API: one method per call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote, urlsplit

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformHttp
from msgsvc_core.http_client import Upload
from msgsvc_core.security import OutboundGuard
from msgsvc_max.failures import read_answer, to_refusal
from msgsvc_max.settings import MaxSettings

#: Seconds that the platform waits for an update before it answers that there is none.
POLL_S = 25

#: Updates that one answer may hold; a hundred is the platform's default.
POLL_LIMIT = 100

#: Seconds beyond the platform's wait after which the connection is taken for dead.
POLL_GRACE_S = 15.0

#: Seconds for sending a file of the largest size.
UPLOAD_S = 120.0

#: Characters of a file's name.
LONGEST_NAME = 200


class MaxClient:
    """Calls of one bot. Each raises `DeliveryError`, and no other error, on failure."""

    def __init__(self, settings: MaxSettings, guard: OutboundGuard) -> None:
        proxy = settings.proxy.get_secret_value() if settings.proxy else None
        ca_file = str(settings.ca_file) if settings.ca_file else None
        self._http = PlatformHttp(
            settings.base_url,
            headers={"Authorization": settings.token.get_secret_value()},
            proxy=proxy,
            timeout_s=settings.timeout_s,
            ca_file=ca_file,
        )
        # Files go to other hosts, which have no business with the token. Updates name them, so they are
        # looked at as what tenants name is; only where the Bot API is, the operator has said.
        self._own_origin = origin_of(settings.base_url)
        self._own_files = PlatformHttp("", proxy=proxy, timeout_s=UPLOAD_S, ca_file=ca_file)
        self._other_files = PlatformHttp(
            "", proxy=proxy, timeout_s=UPLOAD_S, ca_file=ca_file, guard=guard
        )

    async def me(self) -> dict[str, Any]:
        """The bot (schema: BotInfo)."""
        return await self._call("GET", "/me")

    async def set_commands(self, commands: Sequence[Mapping[str, str]]) -> None:
        """Replaces all of them (dev.max.ru, PATCH /me/commands; PATCH /me ended in September 2026)."""
        await self._call("PATCH", "/me/commands", None, {"commands": list(commands)})

    async def send(self, chat_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The message as it was made (schema: SendMessageResult)."""
        return await self._request("POST", "/messages", {"chat_id": chat_id}, body)

    async def message(self, message_id: str) -> dict[str, Any]:
        """A message of the bot (schema: Message)."""
        found = await self._call("GET", "/messages", {"message_ids": message_id})
        messages = found.get("messages")
        return messages[0] if isinstance(messages, list) and messages else {}

    async def edit(self, message_id: str, body: Mapping[str, Any]) -> None:
        await self._call("PUT", "/messages", {"message_id": message_id}, body)

    async def delete(self, message_id: str) -> None:
        await self._call("DELETE", "/messages", {"message_id": message_id})

    async def answer(self, callback_id: str, body: Mapping[str, Any]) -> None:
        await self._call("POST", "/answers", {"callback_id": callback_id}, body)

    async def updates(self, marker: str | None, types: Sequence[str]) -> dict[str, Any]:
        """What came after `marker` (schema: UpdateList), as soon as there is something."""
        params = {"timeout": str(POLL_S), "limit": str(POLL_LIMIT), "types": ",".join(types)}
        if marker is not None:
            params["marker"] = marker
        return await self._call("GET", "/updates", params, timeout_s=POLL_S + POLL_GRACE_S)

    async def subscriptions(self) -> list[str]:
        """The addresses that the platform calls."""
        found = (await self._call("GET", "/subscriptions")).get("subscriptions")
        urls = [one.get("url") for one in found if isinstance(one, dict)] if found else []
        return [url for url in urls if isinstance(url, str)]

    async def subscribe(self, url: str, secret: str, types: Sequence[str]) -> None:
        body = {"url": url, "secret": secret, "update_types": list(types)}
        await self._call("POST", "/subscriptions", None, body)

    async def unsubscribe(self, url: str) -> None:
        await self._call("DELETE", "/subscriptions", {"url": url})

    async def upload(self, kind: str, file: IO[bytes], filename: str) -> str:
        """The token by which a message names the file; `kind` is a UploadType of the schema."""
        place = await self._call("POST", "/uploads", {"type": kind})
        form = Upload()
        form.add_file("data", file, filename=_printable(filename))
        with _harmless_again():
            url = str(place.get("url"))
            answer = await self._files(url).call("POST", url, form=form)
            # Videos have their token from the beginning, and answer a line of XML.
            token = place.get("token") if kind == "video" and 200 <= answer.status < 300 else None
            token = token or _token_in(read_answer(answer))
        if not isinstance(token, str):
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "the platform gave no token for the file"
            )
        return token

    async def video_urls(self, token: str) -> dict[str, Any]:
        """Where a video can be read, by its size (schema: VideoUrls)."""
        found = (await self._call("GET", f"/videos/{quote(token, safe='')}")).get("urls")
        return found if isinstance(found, dict) else {}

    async def download(self, url: str, into: IO[bytes], most_bytes: int) -> None:
        """Writes a file into `into` that a person sent. Its host is not given the token."""
        with _harmless_again():
            answer = await self._files(url).download(url, into, most_bytes)
            if answer.status == 200:
                return
            if answer.status == 429 or answer.status >= 500:
                raise to_refusal(answer.status, answer.headers, {})
            raise DeliveryError(Reason.INVALID_MESSAGE, f"the file's host answered {answer.status}")

    async def close(self) -> None:
        await self._http.close()
        await self._own_files.close()
        await self._other_files.close()

    def _files(self, url: str) -> PlatformHttp:
        return self._own_files if origin_of(url) == self._own_origin else self._other_files

    async def _call(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Any call but `send`."""
        with _harmless_again():
            return await self._request(method, path, params, body, timeout_s)

    async def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        template = "/videos/{token}" if path.startswith("/videos/") else path
        try:
            answer = await self._http.call(
                method, path, params=params, json=body, timeout_s=timeout_s, template=template
            )
        except ValueError:
            # The encoder's: JSON has no way to say half of a surrogate pair.
            raise DeliveryError(Reason.INVALID_MESSAGE, "text: holds half of a character") from None
        return read_answer(answer)


@contextmanager
def _harmless_again() -> Iterator[None]:
    """Around what may be done twice: nobody sees a file that no message names, or an edit to the same.

    Only a message may not; it alone is in doubt where a connection broke.
    """
    try:
        yield
    except DeliveryError as error:
        error.in_doubt = False
        raise


def origin_of(url: str) -> tuple[str, str]:
    """Scheme and host with port, as they are written."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _printable(filename: str) -> str:
    """A name that can stand in a header."""
    return "".join(filter(str.isprintable, filename))[:LONGEST_NAME] or "file"


def _token_in(uploaded: Mapping[str, Any]) -> Any:
    """Of a file: its `token`. Of an image: that of the first of its `photos`, there is one."""
    photos = uploaded.get("photos")
    if isinstance(photos, dict) and photos:
        first = next(iter(photos.values()))
        return first.get("token") if isinstance(first, dict) else None
    return uploaded.get("token")
