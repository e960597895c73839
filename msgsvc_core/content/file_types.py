"""Detects file types by their first bytes, because names and headers are the sender's.

The types that messengers display, after the WHATWG's MIME Sniffing Standard and the formats' specifications.
A file that starts as an image and contains HTML is accepted as neither.
"""

import re
from pathlib import PurePosixPath

from yarl import URL

from msgsvc_core.content.outgoing import Media

#: Number of leading bytes that are examined.
HEAD_BYTES = 4096

UNKNOWN = "application/octet-stream"

#: Leading bytes and their MIME types.
_BEGINNINGS = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
)

#: Major brands of ISO media files that are not videos (RFC 8081 and the registration authority, mp4ra).
_BRANDS = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}

#: Bytes of the first box of an ISO media file: its brands, four bytes each.
_BOX_BYTES = range(12, 1024)

#: Markup that no image and no video has near its start, in lower case.
_MARKUP = re.compile(rb"<(?:!doctype|html|script|iframe)\b|<\?php")

#: Start of an HTML page; comments and declarations may precede it.
_PAGE = re.compile(
    # Possessive: the file's author must not control how long matching takes.
    rb"(?>\s+|<!--.*?-->|<\?xml.*?\?>)*+(?:<!doctype\s+(\w+)|<(\w+))",
    re.DOTALL,
)
_PAGES = {b"html": "text/html", b"svg": "image/svg+xml"}

#: File name suffixes of HTML documents.
_PAGE_SUFFIXES = {
    "text/html": frozenset({".html", ".htm", ".xhtml"}),
    "image/svg+xml": frozenset({".svg"}),
}


def mime_type_of(head: bytes) -> str:
    """MIME type for these leading bytes, `application/octet-stream` if unknown."""
    for beginning, mime_type in _BEGINNINGS:
        if head.startswith(beginning):
            return mime_type
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"BM") and head[6:10] == bytes(4):
        return "image/bmp"
    if head[4:8] == b"ftyp" and int.from_bytes(head[:4], "big") in _BOX_BYTES:
        return _BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    return _page_type(head) or UNKNOWN


def problem_of(media: Media, head: bytes) -> str | None:
    """The reason why a file with these leading bytes can't be sent as the message declares it; None if it
    can.

    For a messenger, an SVG is not an image but a page with scripts. A document may be anything, but HTML must
    have an HTML file name: otherwise it is probably a host's error page.
    """
    mime_type = mime_type_of(head)
    if media.type == "document":
        suffixes = _PAGE_SUFFIXES.get(mime_type)
        if suffixes is None or PurePosixPath(name_of(media)).suffix.lower() in suffixes:
            return None
        return f"it is a page ({mime_type}), and not named so"
    if mime_type == "image/svg+xml" or not mime_type.startswith(f"{media.type}/"):
        is_what = "" if mime_type == UNKNOWN else f" but {mime_type}"
        return f"it is no {media.type}{is_what}"
    if _MARKUP.search(head.lower()):
        return f"it is a page besides being {mime_type}"
    return None


def name_of(media: Media) -> str:
    """The file's name: that of the message, or the end of its URL."""
    return media.filename or PurePosixPath(URL(media.url).path).name or "file"


def _page_type(head: bytes) -> str | None:
    """HTML or SVG, detected by the start."""
    found = _PAGE.match(head.removeprefix(b"\xef\xbb\xbf").lower())
    if found is None:
        return None
    declared = found[1] or found[2]
    if declared in {b"head", b"body", b"script", b"iframe"}:
        return "text/html"
    return _PAGES.get(declared)
