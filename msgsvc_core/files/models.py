"""Models of stored files: internal, and of the API."""

from typing import Literal, Self

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.content.outgoing import MediaType
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.values import value_object

#: A `removed` file is no longer found.
FileStatus = Literal["pending", "ready", "failed"]


@value_object
class StoredFile:
    """A file of a project: `pending` until it is downloaded, then `ready`, or `failed` with a reason.

    For a pending file, type, name and size are the messenger's claims, with size 0 if unknown. `filename` is
    safe as a file name; escape it for display like any text.
    """

    file_id: str
    project_id: str
    subscriber_id: str | None
    type: MediaType
    filename: str
    mime_type: str
    size: int
    status: FileStatus
    #: Why it failed; otherwise empty.
    reason: str
    created_at_ms: int

    @property
    def is_ready(self) -> bool:
        return self.status == "ready"


class FileAnswer(ResponseModel):
    """A file. `url` is an address that anybody can read it at until `url_expires_at`; null until the
    file is ready. `reason` is why it failed, else null."""

    file_id: str
    subscriber_id: str | None
    type: MediaType
    filename: str
    mime_type: str
    size: int
    status: FileStatus
    reason: str | None
    url: str | None
    url_expires_at: str | None
    created_at: str

    @classmethod
    def of(cls, file: StoredFile, address: tuple[str, int] | None) -> Self:
        """`address` is the signed URL and its expiry, in Unix seconds."""
        url, expires_s = address or (None, None)
        return cls(
            file_id=file.file_id,
            subscriber_id=file.subscriber_id,
            type=file.type,
            filename=file.filename,
            mime_type=file.mime_type,
            size=file.size,
            status=file.status,
            reason=file.reason or None,
            url=url,
            url_expires_at=None if expires_s is None else to_rfc3339(expires_s * 1000),
            created_at=to_rfc3339(file.created_at_ms),
        )
