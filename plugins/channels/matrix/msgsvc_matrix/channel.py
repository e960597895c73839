"""One bot on Matrix: the implementation of the channel contract."""

import uuid
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Pace,
    Polled,
    Reason,
    Receiving,
    Unreadable,
    Update,
)
from msgsvc_core.content.markup import Span
from msgsvc_core.kernel.json import read_json
from msgsvc_matrix import files
from msgsvc_matrix.client import MatrixClient
from msgsvc_matrix.failures import MatrixError
from msgsvc_matrix.formatting import appearance, problem_of, text_fields
from msgsvc_matrix.rooms import Rooms
from msgsvc_matrix.settings import MatrixSettings
from msgsvc_matrix.sync import SyncReader
from msgsvc_matrix.texts import OwnTexts
from msgsvc_matrix.upgrades import Upgrades
from msgsvc_matrix.uploads import MSGTYPES, Uploads

#: Fields of a message's content that are its file, and stay with an edited message.
FILE_FIELDS = ("msgtype", "url", "filename", "info")


class MatrixChannel(Channel):
    """Calls the homeserver; decisions are in docs/decisions/0141."""

    capabilities = Capabilities(
        max_text_length=4000,
        buttons="words",
        identity="homeserver",
        start_links=False,
        edit_media=True,
        receives_files=True,
        tells_replies=True,
        repeatable=True,
        reports=frozenset({"read"}),
    )
    receiving: Receiving = "poll"

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: MatrixSettings
    ) -> None:
        super().__init__(identity)
        self.pace = Pace(per_bot_s=settings.per_bot_s, per_chat_s=settings.per_chat_s)
        media = context.media()
        self._client = MatrixClient(settings, media.guard, f"msgsvc-{identity.key}")
        self._rooms = Rooms(self._client)
        self._upgrades = Upgrades(clock=context.clock, client=self._client, rooms=self._rooms)
        self._uploads = Uploads(clock=context.clock, media=media, client=self._client)
        self._sync = SyncReader(
            channel=identity.key,
            clock=context.clock,
            client=self._client,
            rooms=self._rooms,
            upgrades=self._upgrades,
            settings=settings,
            texts=lambda: context.provided(OwnTexts),
        )

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if not chat_id.startswith("!"):
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: a chat on Matrix is a room's id")
        # First: people may leave a room that was replaced.
        await self._upgrades.check_current(chat_id)
        await self._rooms.check_reachable(chat_id)
        content = await self._content(message)
        try:
            return await self._client.send(chat_id, message.key or uuid.uuid4().hex, content)
        except MatrixError as error:
            raise _of_chat(error) from None

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        # A homeserver takes an edit of a message that was deleted, and some clients show it.
        shown = await self._shown(chat_id, message_ref)
        content = await self._content(message)
        if message.media is None and shown.get("msgtype") in MSGTYPES.values():
            kept = {name: shown[name] for name in FILE_FIELDS if name in shown}
            content = {**content, **kept}
        await self._client.edit(chat_id, message_ref, content)

    async def delete(self, chat_id: str, message_ref: str) -> None:
        # Each edit is an event with the text of its own, which stays when the message is redacted.
        for event_id in [*await self._edits_of(chat_id, message_ref), message_ref]:
            try:
                await self._client.redact(chat_id, event_id)
            except MatrixError as error:
                if not error.not_found:
                    raise

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Never called: there are no buttons."""

    def deep_link(self, payload: str) -> str:
        # Opens the chat; the user types the payload, which the link can't hold.
        return f"https://matrix.to/#/@{quote(self.known_profile().username or '', safe=':')}"

    async def check(self) -> ChannelHealth:
        try:
            user_id = await self._client.whoami()
            name = await self._client.display_name(user_id)
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        username = user_id.removeprefix("@")
        return ChannelHealth(
            ok=True,
            detail=user_id,
            profile=BotProfile(name or username.partition(":")[0], username),
            account=user_id,
        )

    def problem(self, message: OutgoingMessage) -> str | None:
        return super().problem(message) or problem_of(message)

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return appearance(message)

    def is_group(self, chat_id: str) -> bool:
        return self._rooms.is_group(chat_id)

    # ---- in -------------------------------------------------------------------------------------

    async def poll_updates(self, cursor: str | None) -> Polled:
        return await self._sync.poll(cursor)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """As this version reads it: there is no check that could be left out."""
        event = read_json(item.raw)
        update = await self._sync.read_again(event, item.origin)
        return [] if update is None else [update]

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        await files.fetch(self._client, file_ref, into, max_bytes)

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._client.close()

    async def _content(self, message: OutgoingMessage) -> dict[str, Any]:
        """The content of an `m.room.message`."""
        # Clients notify of no notice.
        text = {"msgtype": "m.notice" if message.silent else "m.text", **text_fields(message)}
        if message.media is None:
            return text
        file = await self._uploads.fields(message.media)
        # Without a caption the body is the file's name.
        body = {"body": text["body"] or file["filename"]}
        return {**text, **file, **body}

    async def _shown(self, chat_id: str, message_ref: str) -> Mapping[str, Any]:
        """The content of a message as its last edit left it. Raises `DeliveryError` if it is gone."""
        try:
            event = await self._client.event(chat_id, message_ref)
        except MatrixError as error:
            if not error.not_found:
                raise
            event = {}
        content, unsigned = event.get("content"), event.get("unsigned")
        if not isinstance(content, dict) or "body" not in content:
            raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such message to edit")
        latest: Any = unsigned
        for name in ("m.relations", "m.replace", "content", "m.new_content"):
            latest = latest.get(name) if isinstance(latest, dict) else None
        return latest if isinstance(latest, dict) else content

    async def _edits_of(self, chat_id: str, message_ref: str) -> list[str]:
        try:
            return await self._client.edits_of(chat_id, message_ref)
        except MatrixError as error:
            if not error.not_found:
                raise
            return []


def _of_chat(error: MatrixError) -> MatrixError:
    """A room that the homeserver does not know is no problem of the message."""
    if error.not_found:
        error.reason = Reason.CHAT_NOT_FOUND
    return error
