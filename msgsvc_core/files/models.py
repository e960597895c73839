"""Models of stored files: internal, and of the API."""

from typing import Annotated, Literal, Self

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, ResponseModel
from msgsvc_core.api.types import CreatedAt, Time, Url
from msgsvc_core.content.outgoing import MediaType
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.values import value_object

#: As stored. A `removed` file is no longer found.
FileStatus = Literal["pending", "ready", "failed"]

#: In the API, a file that waits for its download is `queued`.
ShownFileStatus = Literal["queued", "ready", "failed"]


class FileParts(Query):
    """What the file is sent as."""

    type: Literal["document"] | None = Field(
        None,
        description="`document`: it is sent as a file, whatever its content is. Without it the content"
        " decides.",
        examples=["document"],
    )


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


FileId = Annotated[
    str,
    Field(
        description="Id of the file, from its upload or from an event.", examples=[examples.FILE_ID]
    ),
]


class FileAnswer(ResponseModel):
    """A file. Of a `queued` one, type, name and size are what the messenger says."""

    file_id: FileId
    subscriber_id: str | None = Field(
        description="Person who sent it to the bot; null for an upload of yours.", examples=[None]
    )
    type: MediaType = Field(
        description="How messengers show it: detected from its content.", examples=["document"]
    )
    filename: str = Field(
        description="Name for saving it, safe as a file's name; escape it on a page, as any text.",
        examples=["invoice-1207.pdf"],
    )
    mime_type: str = Field(
        description="Media type, detected from its content.", examples=["application/pdf"]
    )
    size: int = Field(
        description="Bytes; 0 while a received file is `queued` and the messenger does not say.",
        examples=[48213],
    )
    status: ShownFileStatus = Field(
        description="`queued` until a received file is downloaded. `failed` files have no content.",
        examples=["ready"],
    )
    reason: str | None = Field(
        description="For people: why it failed; null unless `status` is `failed`.", examples=[None]
    )
    url: Url | None = Field(
        description="Address at which anybody can read it until `url_expires_at`, e.g. for `media.url` of a"
        " message; null unless `status` is `ready`.",
        examples=[examples.FILE_URL],
    )
    url_expires_at: Time | None = Field(
        description="When `url` stops working; a later request gives another. Null without a `url`.",
        examples=[examples.FILE_URL_EXPIRES_AT],
    )
    created_at: CreatedAt = Field(
        description="When it was uploaded or received.", examples=[examples.TIME]
    )

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
            status="queued" if file.status == "pending" else file.status,
            reason=file.reason or None,
            url=url,
            url_expires_at=None if expires_s is None else to_rfc3339(expires_s * 1000),
            created_at=to_rfc3339(file.created_at_ms),
        )
