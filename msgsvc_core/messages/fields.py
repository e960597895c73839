"""Fields that bodies, answers and events of messages have in common."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.channels.failures import Reason
from msgsvc_core.routing.models import SkippedReason

MessageStatus = Literal["queued", "sending", "sent", "failed", "skipped", "unknown"]


def reason_of(stored: str | None) -> Reason | SkippedReason | None:
    """The reason of a message's outcome; None while it has none, if it was sent, or was skipped by an earlier
    release."""
    if stored is None:
        return None
    return SkippedReason(stored) if stored in set(SkippedReason) else Reason(stored)


class ErrorReason(StrEnum):
    """Why a message has an `error` although it did not fail: an attempt will be repeated, or the messenger
    refused an edit or a deletion."""

    ATTEMPT_FAILED = "attempt_failed"
    CHANGE_REFUSED = "change_refused"


#: Maximum bytes of `metadata` as JSON.
METADATA_BYTES = 4096

MessageId = Annotated[
    str,
    Field(
        description="Id of the message, from `POST /v1/send` or a delivery event.",
        examples=[examples.MESSAGE_ID],
    ),
]
BatchId = Annotated[
    str,
    Field(
        description="Id of the batch, from `POST /v1/send/batch`.",
        examples=[examples.BATCH_ID],
    ),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description="That of `POST /v1/send`.", examples=[{"order_id": "1207"}]),
]


#: What ends a step of a route after the messenger has accepted the message.
Awaited = Literal["delivered", "read", "answered"]

#: What became of a step of a route.
CopyStatus = Literal["sent", "failed", "unknown", "skipped"]

#: The reason of a step whose message could not be sent in its time.
NOT_IN_TIME = "not_in_time"


#: How the messages of a batch ended.
Sent = Annotated[int, Field(description="Messages that the messenger accepted.", examples=[2])]
Failed = Annotated[
    int, Field(description="Messages that failed, those of `unknown` included.", examples=[1])
]
Unknown = Annotated[
    int, Field(description="Messages of which nobody can tell whether they arrived.", examples=[0])
]
Skipped = Annotated[
    int,
    Field(
        description="Messages that were not sent: cancelled, expired, without the permission, or to people"
        " who had unsubscribed.",
        examples=[0],
    ),
]
