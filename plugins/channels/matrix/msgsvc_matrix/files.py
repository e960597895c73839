"""Files that users send: in messages, and their download."""

import re
from collections.abc import Mapping
from typing import IO, Any

from msgsvc_core.channels import DeliveryError, MediaType, Reason, ReceivedFile
from msgsvc_matrix.client import MatrixClient

#: Messages with a file, and their types to us. Sound is a document.
KINDS: Mapping[str, MediaType] = {
    "m.image": "image",
    "m.sticker": "image",
    "m.video": "video",
    "m.audio": "document",
    "m.file": "document",
}

#: `mxc://<server name>/<media id>` (module "Content repository").
_MXC = re.compile(r"mxc://([^/?#\s]{1,255})/([A-Za-z0-9_-]{1,255})")


def file_of(kind: str, content: Mapping[str, Any], name: str | None) -> ReceivedFile | None:
    """The file of a message; None if it can't be read, as in an encrypted one."""
    url = content.get("url")
    found = _MXC.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        return None
    about = content.get("info")
    info: Mapping[str, Any] = about if isinstance(about, dict) else {}
    mime_type, size = info.get("mimetype"), info.get("size")
    return ReceivedFile(
        KINDS[kind],
        f"{found[1]}/{found[2]}",
        name,
        mime_type
        if isinstance(mime_type, str) and re.fullmatch(r"[!-~]{1,100}", mime_type)
        else None,
        size if type(size) is int and 0 <= size < 2**63 else None,
    )


async def fetch(client: MatrixClient, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
    """Writes the content of a file into `into`. Raises `DeliveryError`."""
    found = _MXC.fullmatch(f"mxc://{file_ref}")
    if found is None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such file")
    await client.download(found[1], found[2], into, max_bytes)
