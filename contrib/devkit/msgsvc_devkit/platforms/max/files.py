"""Files uploaded to the fake, or fetched by it, identified by tokens."""

import secrets
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from msgsvc_devkit.platforms.max.refusals import malformed, not_ready


@dataclass(slots=True)
class StoredFile:
    """`not_ready` is the number of messages still rejected as not ready. Before the upload, `content` is
    None."""

    kind: str
    token: str
    content: bytes | None = None
    filename: str = ""
    not_ready: int = 0


class Files:
    """The bot's files, by token."""

    def __init__(self) -> None:
        self.by_token: dict[str, StoredFile] = {}
        #: Number of messages for which each file uploaded from now on is not ready.
        self.not_ready = 0
        #: Whether connections are closed during an upload.
        self.breaks = False

    def place(self, kind: str) -> StoredFile:
        """An upload URL's file, before the upload."""
        file = StoredFile(kind, secrets.token_urlsafe(24))
        self.by_token[file.token] = file
        return file

    def fill(self, token: str, content: bytes, filename: str) -> StoredFile:
        """Stores an upload. Raises `Refused`; an upload URL accepts one file."""
        file = self.by_token.get(token)
        if file is None or file.content is not None or not content:
            raise malformed("upload: no such place, or no file")
        file.content, file.filename, file.not_ready = content, filename, self.not_ready
        return file

    def sent(self, kind: str, content: bytes, filename: str, host: str) -> dict[str, Any]:
        """The attachment of a user's message with a file (schema: Attachment)."""
        file = self.place(kind)
        file.content, file.filename = content, filename
        url = f"{host}/download/{file.token}"
        # A video's URL is that of a page that plays it.
        url = f"{host}/player/{file.token}" if kind == "video" else url
        attachment: dict[str, Any] = {"type": kind, "payload": {"token": file.token, "url": url}}
        if kind == "image":
            attachment["payload"]["photo_id"] = len(self.by_token)
        if kind == "file":
            attachment |= {"filename": filename, "size": len(content)}
        return attachment

    async def use(self, attachment: dict[str, Any]) -> dict[str, Any]:
        """An attachment of a message, with its token. Raises `Refused`."""
        kind, payload = attachment["type"], attachment["payload"]
        if payload.get("url"):
            return self._named(await self._fetch(payload["url"]))
        token = payload.get("token")
        for photo in (payload.get("photos") or {}).values():
            token = photo["token"]
        file = self.by_token.get(str(token))
        if file is None or file.content is None or file.kind != kind:
            raise malformed(f"Invalid token of {kind}")
        if file.not_ready:
            file.not_ready -= 1
            raise not_ready()
        return self._named(file)

    @staticmethod
    def _named(file: StoredFile) -> dict[str, Any]:
        payload = {"token": file.token, "url": f"https://files.invalid/{file.token}"}
        if file.kind == "file":
            return {"type": "file", "payload": payload, "filename": file.filename}
        return {"type": file.kind, "payload": payload}

    async def _fetch(self, url: str) -> StoredFile:
        """Fetches a picture by URL. Without the outbound guard: the platform fetches it, not the service."""
        try:
            async with (
                ClientSession(timeout=ClientTimeout(total=5)) as session,
                session.get(url) as answer,
            ):
                content = await answer.read() if answer.status == 200 else b""
                is_image = answer.content_type.startswith("image/")
        except (ClientError, TimeoutError):
            content, is_image = b"", False
        if not content or not is_image:
            raise malformed("Failed to upload image by url")
        file = self.place("image")
        file.content = content
        return file
