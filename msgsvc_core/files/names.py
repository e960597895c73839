"""File names: sanitized on input, and encoded in headers on output."""

from pathlib import PurePosixPath
from unicodedata import category
from urllib.parse import quote

from msgsvc_core.kernel.unicode_text import normalized

#: Maximum bytes of a name, as in most file systems.
MAX_NAME_BYTES = 200

#: The extension for a name without one, by MIME type. HTML is not among them.
_SUFFIXES = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "video/quicktime": ".mov",
    "audio/mp4": ".m4a",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
}

#: Categories of characters that are invisible or reverse the text direction: `photo<U+202E>gpj.exe` is
#: displayed as `photoexe.jpg`.
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def safe_name(name: str | None, otherwise: str) -> str:
    """The last part of a path, without invisible characters, cut to a length that file systems allow."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    seen = "".join(char for char in last if category(char) not in _UNSEEN)
    # A leading dot hides a file, and Windows removes trailing dots and spaces.
    seen = " ".join(seen.split()).strip(". ")
    return _cut(seen) or otherwise


def with_suffix(name: str, mime_type: str) -> str:
    """The name; if it has no extension, with one for the content."""
    return name if PurePosixPath(name).suffix else name + _SUFFIXES.get(mime_type, "")


def attachment(name: str) -> str:
    """The `Content-Disposition` of a download with this name, never displayed inline (RFC 6266)."""
    # A name is bounded by `safe_name`; one of an older release may be longer.
    plain = (normalized("NFKD", name) or name).encode("ascii", "replace").decode()
    plain = "".join("_" if char in '"\\%?/' else char for char in plain)
    header = f'attachment; filename="{plain}"'
    # RFC 8187: characters of attr-char in its ABNF are not encoded.
    return (
        header if plain == name else f"{header}; filename*=UTF-8''{quote(name, safe='!#$&+^`|~')}"
    )


def _cut(name: str) -> str:
    """Shortened to `MAX_NAME_BYTES`, keeping the extension."""
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    suffix = PurePosixPath(name).suffix
    if len(suffix.encode()) > MAX_NAME_BYTES // 4:
        suffix = ""
    kept = name.encode()[: MAX_NAME_BYTES - len(suffix.encode())].decode(errors="ignore")
    return kept.rstrip(". ") + suffix
