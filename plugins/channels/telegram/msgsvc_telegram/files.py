"""Files that users send: in messages, and their download."""

from typing import IO
from urllib.parse import quote

from msgsvc_core.channels import DeliveryError, MediaType, Reason, ReceivedFile
from msgsvc_telegram.client import BotApi
from msgsvc_telegram.failures import BotApiError
from msgsvc_telegram.models import Attachment, Message

#: What Telegram gives bots no more than, in words (Bot API, getFile).
_MOST = "Telegram gives bots no file of more than 20 MB"


def files_of(message: Message) -> tuple[ReceivedFile, ...]:
    """The file of a message; at most one, because an album is several messages.

    Voice and music become documents; a round video is a video, and so is an animation, whose file is
    repeated as a document.
    """
    if message.photo:
        # Several sizes of one picture.
        return (_received("image", max(message.photo, key=lambda size: size.pixels)),)
    for video in (message.video, message.animation, message.video_note):
        if video is not None:
            return (_received("video", video),)
    if message.voice is not None:
        return (_received("document", message.voice, "voice.ogg"),)
    for document in (message.audio, message.document):
        if document is not None:
            return (_received("document", document),)
    return ()


async def fetch(api: BotApi, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
    """Writes the content of a file into `into`. Raises `DeliveryError`."""
    try:
        found = await api.call("getFile", {"file_id": file_ref})
    except BotApiError as error:
        if error.says("file is too big"):
            raise BotApiError(Reason.INVALID_MESSAGE, _MOST) from None
        raise
    path = found.get("file_path") if isinstance(found, dict) else None
    if not isinstance(path, str) or not path:
        raise DeliveryError(Reason.INVALID_MESSAGE, "Telegram does not say where the file is")
    if path.startswith("/"):
        # A Bot API server of one's own that was started with --local.
        raise DeliveryError(
            Reason.INVALID_MESSAGE, "the Bot API server keeps files on its own disk"
        )
    await api.download(quote(path), into, most_bytes)


def _received(kind: MediaType, found: Attachment, name: str | None = None) -> ReceivedFile:
    return ReceivedFile(
        kind, found.file_id, found.file_name or name, found.mime_type, found.file_size
    )
