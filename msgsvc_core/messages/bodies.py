"""Bodies of requests about messages, and the query of their list."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept, MomentMs, NamedByExternalId, NamedById, NamedOnChannel
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.channels.failures import Reason
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.messages.content import (
    TEXT_EXAMPLE,
    ButtonBody,
    ContentChanges,
    ContentOrTemplate,
    KeptFormat,
    MediaBody,
    MessageText,
    to_message,
    to_rows,
)
from msgsvc_core.messages.fields import MessageStatus
from msgsvc_core.routing.models import ROUTE_ID, SkippedReason
from msgsvc_core.subscribers.models import PermissionKey


class _Addressed(RequestModel):
    """Whom a message is for."""

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    route_id: str | None = Field(
        None,
        description="Id of a route of `POST /v1/routes`: the person, named by `external_id`, is tried on its"
        " channels in their order, until one of them is reached. It remains one message, with one outcome.",
        examples=[ROUTE_ID],
    )


class SendBody(
    ContentOrTemplate[
        Annotated[
            MessageText | None,
            Field(
                description="Text that the recipient sees, at most `limits.text_length` characters of"
                " `GET /v1/project`, without the markup. Required unless `template` is given.",
                examples=[TEXT_EXAMPLE],
            ),
        ],
        MediaBody,
        list[list[ButtonBody]],
    ],
    _Addressed,
):
    """A message to one subscriber, named by `subscriber_id` or by `external_id`: a `text`, or a
    `template` with its `variables`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": TEXT_EXAMPLE,
                    "buttons": [
                        [{"text": "Track the parcel", "url": f"{examples.SITE_URL}/orders/1207"}],
                        [{"text": "Call me back", "data": "call:1207"}],
                    ],
                    "metadata": {"order_id": "1207"},
                },
                {
                    "external_id": examples.EXTERNAL_ID,
                    "template": "order_shipped",
                    "variables": {"order": 1207},
                    "permission": examples.PERMISSION,
                    "expires_in": 86400,
                },
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Your **invoice** for order 1207.",
                    "format": "markdown",
                    "media": {
                        "type": "document",
                        "url": f"{examples.SITE_URL}/invoices/1207.pdf",
                        "filename": "invoice-1207.pdf",
                    },
                    "silent": True,
                },
            ]
        }
    )

    permission: PermissionKey | None = Field(
        None,
        description="Key of a permission. The message is skipped unless the subscriber has granted it when"
        " it is delivered.",
        examples=[examples.PERMISSION],
    )
    silent: bool = Field(
        False, description="Deliver without a notification sound.", examples=[False]
    )
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after which the message is skipped if it could not be sent yet; without it, it"
        " never is for that reason.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Your own data, at most 4,096 bytes as JSON; delivery events carry it, the recipient"
        " never sees it.",
        examples=[{"order_id": "1207"}],
    )

    @model_validator(mode="after")
    def _text_or_template(self) -> "SendBody":
        """Either `text` or `template` is given. With `template`: no `format`, `media` or `buttons`; without
        it: no `variables`. With `route_id`: `external_id`, and neither `channel` nor `subscriber_id`."""
        if self.route_id is not None:
            for field in ("channel", "subscriber_id"):
                if getattr(self, field) is not None:
                    raise wrong_field(
                        field,
                        "can't be combined with route_id, which has channels; give external_id",
                    )
        self.check_source()
        if self.template is None and self.variables is not None:
            raise wrong_field("variables", "are for a template, and none is given")
        return self

    def to_message(self) -> OutgoingMessage:
        """The message of a body without template."""
        assert self.text is not None, "a template is rendered instead"
        return to_message(self, self.text, silent=self.silent)


class EditMessageBody(
    ContentChanges[
        Annotated[
            Kept[MessageText],
            Field(description="New text.", examples=["Hi Ann, your order 1207 was delivered."]),
        ],
        KeptFormat,
        Annotated[
            Kept[MediaBody],
            Field(
                description="New file; that of a sent message changes where the channel supports it."
            ),
        ],
        Kept[list[list[ButtonBody]]],
    ]
):
    """New contents of a message; omitted fields stay unchanged."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "Hi Ann, your order 1207 was delivered.",
                    "buttons": [[{"text": "Rate us", "url": f"{examples.SITE_URL}/rate/1207"}]],
                },
                {"buttons": []},
            ]
        }
    )

    @model_validator(mode="after")
    def _one_at_least(self) -> "EditMessageBody":
        """At least one field is given."""
        if not self.model_fields_set:
            raise InvalidValue("give at least one of text, format, media and buttons")
        return self

    def changed(self, message: OutgoingMessage) -> OutgoingMessage:
        """The content of `message` after the edit."""
        changes: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if self.media is not None:
            changes["media"] = self.media.to_media()
        if self.buttons is not None:
            changes["buttons"] = to_rows(self.buttons)
        return replace(message, **changes)


class MessageQuery(PageQuery):
    """Filters and paging."""

    status: MessageStatus | None = Field(
        None, description="Only messages of this status.", examples=["failed"]
    )
    reason: Reason | SkippedReason | None = Field(
        None,
        description="Only messages that failed or were skipped for this reason.",
        examples=["bot_banned"],
    )
    subscriber_id: str | None = Field(
        None, description="Only messages to this recipient.", examples=[examples.SUBSCRIBER_ID]
    )
    channel: str | None = Field(
        None, description="Only messages on this channel.", examples=[examples.CHANNEL]
    )
    created_after: MomentMs | None = Field(
        None, description="Only messages made after this time.", examples=[examples.EARLIER]
    )
    batch_id: str | None = Field(
        None, description="Only messages of this batch.", examples=[examples.BATCH_ID]
    )
