"""File types of messengers, detected by content: image, video, or document (anything)."""

from typing import Literal

from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import mime_type_of, problem_of
from msgsvc_core.content.outgoing import Media, MediaType

#: What becomes of an image that is too large for one: a document, or nothing.
LargeImages = Literal["documents", "refused"]


class Unfit(Exception):
    """The file can't be stored; the text says why, without naming it."""


class TooLarge(Unfit):
    """It exceeds the maximum size of its type."""


def max_bytes(settings: MediaSettings, kind: MediaType) -> int:
    """The maximum size of a file of that type."""
    limit: int = getattr(settings, f"max_{kind}_bytes")
    return limit


def check_size(settings: MediaSettings, kind: MediaType, size: int) -> None:
    """Raises `TooLarge`."""
    limit = max_bytes(settings, kind)
    if size > limit:
        raise TooLarge(f"it is larger than {limit} bytes")


def recognise(
    settings: MediaSettings,
    filename: str,
    head: bytes,
    size: int,
    *,
    declared_type: MediaType | None = None,
    large_images: LargeImages = "documents",
) -> tuple[MediaType, str]:
    """File type and MIME type, detected by the first bytes. Raises `Unfit`.

    `declared_type` is the sender's. What is sent as a document stays a document; a declared image that is not
    one becomes a document. `large_images` is what becomes of an image of no declared type that is too large
    for one.
    """
    if not head:
        raise Unfit("it is empty")
    mime_type = mime_type_of(head)
    kind: MediaType = "document" if declared_type == "document" else _type_of(mime_type)
    if kind == "image" and size > settings.max_image_bytes and declared_type is None:
        if large_images == "refused":
            raise TooLarge(
                f"an image may have {settings.max_image_bytes} bytes; with type=document it is sent as a file"
            )
        kind = "document"
    check_size(settings, kind, size)
    if problem := problem_of(Media(kind, "", filename), head):
        raise Unfit(problem)
    return kind, mime_type


def _type_of(mime_type: str) -> MediaType:
    # For a messenger an SVG is not an image but a page with scripts.
    if mime_type.startswith("image/") and mime_type != "image/svg+xml":
        return "image"
    return "video" if mime_type.startswith("video/") else "document"
