"""Fields that bodies, answers and events of messages have in common."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from msgsvc_core.api import examples
from msgsvc_core.kernel.visible_text import check_visible

MessageStatus = Literal["queued", "sending", "sent", "failed", "skipped", "unknown"]

#: Maximum bytes of a button's data, which every platform supports (decision 0075).
BUTTON_DATA_BYTES = 64

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


#: Of a button's style, in bodies and answers.
BUTTON_STYLE = (
    "Its colour on messengers that have such: blue, green or red. Others show the button like any. Null for"
    " the messenger's own colour."
)


MessageText = Annotated[str, Field(min_length=1), AfterValidator(check_visible)]

#: What bodies of messages have in common.
FORMAT = (
    "Markup of `text`: none, a subset of Markdown, or a subset of HTML. `rich` is that of `html`, and"
    " headings, lists, tables, quotes, code blocks and dividers, which messengers without them show as lines."
)
BUTTON_ROWS = "Rows of buttons under the message, from top to bottom."
MEDIA = "File that is shown with the text."
TEXT_EXAMPLE = "Hi Ann, your order 1207 is on its way."


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
