"""Files that users send: in messages, and their download."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from msgsvc_core.channels import DeliveryError, MediaType, Reason, ReceivedFile
from msgsvc_core.channels.inbound import placeholders
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.storable_text import storable
from msgsvc_max.client import MaxClient

#: Attachments that are files (schema: Attachment), in our words. Sound is a document to us.
KINDS: Mapping[str, MediaType] = {
    "image": "image",
    "video": "video",
    "audio": "document",
    "file": "document",
}

#: What a video can be read at, the best first (schema: VideoUrls; `hls` is no file).
_QUALITIES = ("mp4_1080", "mp4_720", "mp4_480", "mp4_360", "mp4_240", "mp4_144")


#: Names and numbers of a card, one in a line.
_CARD = re.compile(r"^(FN|TEL)(?:;[^:\r\n]*)?:([^\r\n]*)", re.MULTILINE)

#: Attachments of a message that are told in a line each.
MOST_LINES = 10


def files_of(attachments: Any) -> tuple[ReceivedFile, ...]:
    """The files among a message's attachments; unreadable ones are ignored."""
    return tuple(_files(attachments if isinstance(attachments, list) else []))


def shown_of(attachments: Any) -> str:
    """Lines for what somebody shared that is neither text nor file; keyboards are the bot's own."""
    lines = []
    for one in attachments if isinstance(attachments, list) else []:
        kind = one.get("type") if isinstance(one, dict) else None
        if not isinstance(kind, str) or kind in {"inline_keyboard", "reply_keyboard"}:
            continue
        payload = one.get("payload") if isinstance(one.get("payload"), dict) else {}
        if kind == "location":
            lines.append(placeholders.place(one.get("latitude"), one.get("longitude")))
        elif kind == "contact":
            info = payload.get("max_info")
            named = info if isinstance(info, dict) else {}
            lines.append(_contact(named, payload.get("vcf_info")))
        elif kind == "share" and isinstance(payload.get("url"), str):
            lines.append(payload["url"])
        else:
            lines.append(placeholders.unknown(kind))
    return storable("\n".join(lines[:MOST_LINES]))


def _contact(named: Mapping[str, Any], card: Any) -> str:
    """A person of the platform, or of an address book, of whom a card tells (RFC 6350)."""
    fields = _CARD.findall(card) if isinstance(card, str) else []
    name = next((value for field, value in fields if field == "FN"), None)
    numbers = [value for field, value in fields if field == "TEL"][:MOST_LINES]
    return placeholders.contact(named.get("name") or named.get("first_name") or name, numbers)


async def fetch(client: MaxClient, file_ref: str, into: IO[bytes], most_bytes: int) -> None:
    """Writes the content of a file into `into`. Raises `DeliveryError`."""
    try:
        place = json.loads(file_ref)
    except ValueError:
        place = None
    if not isinstance(place, dict):
        raise _gone()
    if "url" in place:
        await client.download(str(place["url"]), into, most_bytes)
        return
    # A video's own address is that of a page; where it lies, and in which sizes, has to be asked for.
    urls = await client.video_urls(str(place.get("video")))
    found = [urls[name] for name in _QUALITIES if isinstance(urls.get(name), str)]
    if not found:
        raise _gone()
    for url in found[:-1]:
        try:
            await client.download(url, into, most_bytes)
        except DeliveryError as error:
            if error.reason is not Reason.INVALID_MESSAGE:
                raise
            # Too large, perhaps: the next is smaller.
            into.seek(0)
            into.truncate()
        else:
            return
    await client.download(found[-1], into, most_bytes)


def _files(attachments: list[Any]) -> Iterator[ReceivedFile]:
    for one in attachments:
        payload = one.get("payload") if isinstance(one, dict) else None
        kind = KINDS.get(str(one.get("type"))) if isinstance(payload, dict) else None
        if kind is None or not isinstance(payload, dict):
            continue
        token, url = payload.get("token"), payload.get("url")
        if kind == "video" and isinstance(token, str) and token:
            yield ReceivedFile(kind, to_json({"video": token}))
        elif isinstance(url, str) and url.startswith(("https://", "http://")):
            yield ReceivedFile(kind, to_json({"url": url}), _name(one), size=_size(one))


def _name(one: Mapping[str, Any]) -> str | None:
    name = one.get("filename")
    return storable(name) if isinstance(name, str) else None


def _size(one: Mapping[str, Any]) -> int | None:
    size = one.get("size")
    return size if type(size) is int and 0 <= size < 2**63 else None


def _gone() -> DeliveryError:
    return DeliveryError(Reason.INVALID_MESSAGE, "the platform has the file no more")
