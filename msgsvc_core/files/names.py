"""Names of files: made safe when they come in, and written into headers when they go out."""

import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

#: Maximum bytes of a name, as in most file systems.
MAX_NAME_BYTES = 200

#: The ending of a file whose name has none, by what its content is. No page is among them.
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

#: Categories of characters that nobody sees, or that turn the order of what stands beside them:
#: `photo<U+202E>gpj.exe` reads as `photoexe.jpg`.
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def safe_name(name: str | None, otherwise: str) -> str:
    """The last part of a path without what can't be seen, cut to a length that file systems take."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    seen = "".join(char for char in last if unicodedata.category(char) not in _UNSEEN)
    # A leading dot hides a file, and Windows drops dots and spaces at the end.
    seen = " ".join(seen.split()).strip(". ")
    return _cut(seen) or otherwise


def with_suffix(name: str, mime_type: str) -> str:
    """The name with an ending that fits the content, where it has none."""
    return name if PurePosixPath(name).suffix else name + _SUFFIXES.get(mime_type, "")


def attachment(name: str) -> str:
    """The `Content-Disposition` of a file that is saved under this name, never shown (RFC 6266)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "replace").decode()
    plain = "".join("_" if char in '"\\%?/' else char for char in plain)
    header = f'attachment; filename="{plain}"'
    # RFC 8187: what its ABNF calls attr-char stays as it is.
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
