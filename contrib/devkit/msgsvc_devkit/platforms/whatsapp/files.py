"""Files uploaded to the fake, or sent by users, by their ids."""

import base64
import hashlib
from dataclasses import dataclass
from itertools import count

from msgsvc_devkit.platforms.whatsapp.checks import MEDIA_TYPES
from msgsvc_devkit.platforms.whatsapp.refusals import Refused, malformed


@dataclass(frozen=True, slots=True)
class StoredFile:
    """`sha256` is in Base64, as in webhook calls."""

    content: bytes
    filename: str
    mime_type: str

    @property
    def sha256(self) -> str:
        return base64.b64encode(hashlib.sha256(self.content).digest()).decode()


class Files:
    """The files of a phone number."""

    def __init__(self) -> None:
        self.by_id: dict[str, StoredFile] = {}
        self._ids = count(4_490_709_327_384_033)

    def upload(self, content: bytes, filename: str, mime_type: str) -> str:
        """Stores a file of the business; returns its id. Raises `Refused`."""
        sizes = [limit for types, limit in MEDIA_TYPES.values() if mime_type in types]
        if not sizes:
            raise malformed(f"file: has the unsupported type {mime_type}")
        if len(content) > max(sizes):
            raise Refused(400, 131053, "Media upload error", "the file is too large")
        return self.store(content, filename, mime_type)

    def store(self, content: bytes, filename: str, mime_type: str) -> str:
        media_id = str(next(self._ids))
        self.by_id[media_id] = StoredFile(content, filename, mime_type)
        return media_id

    def use(self, kind: str, media_id: str) -> None:
        """A message names a file. Raises `Refused` if it is none of that kind."""
        file = self.by_id.get(media_id)
        if file is None or file.mime_type not in MEDIA_TYPES[kind][0]:
            raise malformed(f"{kind}.id: is not a valid file of that type")
