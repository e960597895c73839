"""Models of gateways and of their messages: internal, and of the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept, SubscriberId, Time, UpdatedAt, Url
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339

#: The software that sends through a gateway, by which its requests are read and answered; `generic` is any
#: that can post what it is told to.
Sender = Literal["zitadel", "logto", "novu", "supabase", "generic"]

#: Senders that sign their requests.
SIGNING: tuple[Sender, ...] = ("zitadel", "supabase")

MessageStatus = Literal["queued", "sent", "failed"]

#: What codes are for, by which a project's template and our own words are chosen: Logto's types of templates,
#: written as keys are.
Purpose = Literal[
    "sign_in",
    "register",
    "forgot_password",
    "organization_invitation",
    "generic",
    "user_permission_validation",
    "bind_new_identifier",
    "mfa_verification",
    "bind_mfa",
]

#: Characters of a path into a body.
MAX_PATH = 200

#: Channels of one gateway.
MAX_CHANNELS = 10

_ID = "gtw_032aJfa0arMIzQyDYEpEI5"

GatewayId = Annotated[str, Field(description="The gateway's id.", examples=[_ID])]
GatewayMessageId = Annotated[
    str, Field(description="The message's id.", examples=["gwm_032aJamqrS1XqQvY0gJt5u"])
]

_NAME = "Your own name for it."
_CHANNELS = (
    "Names of the channels on which a recipient is looked for, in this order: the next one is tried if one"
    " does not take the message, and if the recipient asks for another within minutes."
)
_SIGNING_KEY = (
    "The key with which ZITADEL signs its requests, from its answer when the provider was added, or the"
    " secret of Supabase's hook (`v1,whsec_...`); requests without a valid signature are refused then. Null"
    " for none."
)
_PATHS = (
    "Where a `generic` gateway finds its fields in the body, if they are not at the top under their own"
    " names: names separated by dots, and numbers for positions in a list. Null for none."
)

Path = Annotated[
    str, Field(max_length=MAX_PATH, pattern=r"^[^.\s]+(\.[^.\s]+)*$", examples=["user.phone"])
]

Channels = Annotated[
    list[str],
    Field(min_length=1, max_length=MAX_CHANNELS, examples=[["telegram", "email"]]),
]


class GatewayPaths(RequestModel):
    """Paths into the body of a generic sender, e.g. `user.phone` or `recipients.0.number`."""

    to: Path | None = Field(None, description="Of the phone number or email address.")
    code: Path | None = Field(None, description="Of the code.", examples=["sms.otp"])
    text: Path | None = Field(None, description="Of the whole text.", examples=["message.body"])
    link: Path | None = Field(None, description="Of the button's address.", examples=["data.url"])
    purpose: Path | None = Field(None, description="Of what the code is for.", examples=["kind"])
    lang: Path | None = Field(None, description="Of the language.", examples=["user.locale"])
    id: Path | None = Field(None, description="Of the message's id.", examples=["message.id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway of a project. `paths` are those of a generic sender, by field. `signing_key` is encrypted.
    `old_secret_until_ms` is when the URL that
    the present one replaced ends or has ended; None if none was."""

    project_id: str
    gateway_id: str
    name: str
    sender: Sender
    channels: tuple[str, ...]
    signing_key: str | None = field(repr=False)
    paths: Mapping[str, str] = field(default_factory=dict)
    created_at_ms: int
    updated_at_ms: int
    old_secret_until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What a sender asks for, whoever it is. `to` is a phone number or an email address.

    `text` is ready to be shown; without one, `code` is put into words of our own for `purpose`, in the
    language `lang`. A template of the project comes before either, where there is a code. `link` is an
    address, and `label` the words of its button, if the sender has any. `once` identifies the request, as
    far as its sender does.
    """

    to: str = field(repr=False)
    once: str | None
    text: str = field(default="", repr=False)
    link: str = field(default="", repr=False)
    label: str = ""
    code: str = field(default="", repr=False)
    purpose: Purpose = "generic"
    lang: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayMessage:
    """A message by a gateway. `people` are the subscribers who are tried, in order, and `step` is the
    position of the one who is tried now. `to_hint` shows a part of the address."""

    project_id: str
    message_id: str
    gateway_id: str
    to_hint: str
    people: tuple[str, ...]
    step: int
    sealed: str | None = field(repr=False)
    status: MessageStatus
    subscriber_id: str | None
    channel: str
    reason: str | None
    created_at_ms: int
    expires_at_ms: int
    sent_at_ms: int | None = None


class CreateGatewayBody(RequestModel):
    """A new gateway."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "Logto", "sender": "logto", "channels": ["telegram", "email"]},
                {
                    "name": "Sign-in",
                    "sender": "generic",
                    "channels": ["telegram"],
                    "paths": {"to": "user.phone", "code": "sms.otp"},
                },
            ]
        }
    )

    name: str = Field(min_length=1, max_length=100, description=_NAME, examples=["Logto"])
    sender: Sender = Field(
        description="The software that sends through it: ZITADEL's HTTP provider, Logto's HTTP SMS or"
        " HTTP email connector, Novu's SMS webhook, or Supabase's send SMS hook.",
        examples=["logto"],
    )
    channels: Channels = Field(description=_CHANNELS)
    signing_key: str | None = Field(
        None, min_length=8, max_length=500, description=_SIGNING_KEY, examples=["r8w2hKq7ZpVx"]
    )
    paths: GatewayPaths | None = Field(
        None, description=_PATHS, examples=[{"to": "user.phone", "code": "sms.otp"}]
    )


class UpdateGatewayBody(RequestModel):
    """The fields to change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"channels": ["telegram"]}]})

    name: Kept[str] = Field(
        None, min_length=1, max_length=100, description=_NAME, examples=["Logto"]
    )
    channels: Kept[Channels] = Field(None, description=_CHANNELS)
    signing_key: str | None = Field(
        None, min_length=8, max_length=500, description=_SIGNING_KEY, examples=["r8w2hKq7ZpVx"]
    )
    paths: GatewayPaths | None = Field(
        None, description=_PATHS, examples=[{"to": "user.phone", "code": "sms.otp"}]
    )


class GatewayAnswer(ResponseModel):
    """A gateway, without the secret in its URL."""

    gateway_id: GatewayId
    name: str = Field(description=_NAME, examples=["Logto"])
    sender: Sender = Field(description="The software that sends through it.", examples=["logto"])
    channels: list[str] = Field(description=_CHANNELS, examples=[["telegram", "email"]])
    has_signing_key: bool = Field(
        description="Whether requests have to be signed.", examples=[False]
    )
    paths: dict[str, str] | None = Field(description=_PATHS, examples=[None])
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, gateway: Gateway) -> "GatewayAnswer":
        return cls(
            gateway_id=gateway.gateway_id,
            name=gateway.name,
            sender=gateway.sender,
            channels=list(gateway.channels),
            has_signing_key=gateway.signing_key is not None,
            paths=dict(gateway.paths) or None,
            created_at=to_rfc3339(gateway.created_at_ms),
            updated_at=to_rfc3339(gateway.updated_at_ms),
        )


_URL = Field(
    description="Where the sender posts its messages. It holds the gateway's secret and can't be read again.",
    examples=["https://msg.example.com/compat/logto/3kTMd0hPm8Xo7yZq2cVbN1"],
)


class NewGatewayAnswer(GatewayAnswer):
    """A new gateway and its URL."""

    url: Url = _URL

    @classmethod
    def with_url(cls, gateway: Gateway, url: str) -> "NewGatewayAnswer":
        return cls(**GatewayAnswer.of(gateway).model_dump(), url=url)


class GatewayUrlAnswer(ResponseModel):
    """The new URL of a gateway."""

    gateway_id: GatewayId
    url: Url = _URL
    previous_valid_until: Time = Field(
        description="Until when the previous URL is accepted.",
        examples=[examples.LATER],
    )


class GatewayList(ResponseModel):
    """A page of gateways."""

    data: list[GatewayAnswer] = Field(description="The page's gateways.")
    next_cursor: NextCursor


class GatewayMessageAnswer(ResponseModel):
    """A message that was sent through a gateway; its text is kept until it is sent, and encrypted."""

    message_id: GatewayMessageId
    gateway_id: GatewayId
    to: str = Field(
        description="The recipient's phone number or email address, but for its middle.",
        examples=["+12•••••0123"],
    )
    status: MessageStatus = Field(
        description="`queued` until a messenger has taken it; `failed` if none has.",
        examples=["sent"],
    )
    channel: str = Field(description="The channel that was tried last.", examples=["telegram"])
    subscriber_id: SubscriberId | None = Field(
        description="The last recipient; null after an erasure."
    )
    reason: str | None = Field(
        description="Why the last channel did not take it, as in delivery events; null for a sent one.",
        examples=[None],
    )
    created_at: CreatedAt
    sent_at: Time | None = Field(
        description="When a messenger took it.", examples=[examples.EARLIER]
    )

    @classmethod
    def of(cls, message: GatewayMessage) -> "GatewayMessageAnswer":
        return cls(
            message_id=message.message_id,
            gateway_id=message.gateway_id,
            to=message.to_hint,
            status=message.status,
            channel=message.channel,
            subscriber_id=message.subscriber_id,
            reason=message.reason,
            created_at=to_rfc3339(message.created_at_ms),
            sent_at=optional_rfc3339(message.sent_at_ms),
        )


class GatewayMessageList(ResponseModel):
    """A page of messages."""

    data: list[GatewayMessageAnswer] = Field(description="The page's messages.")
    next_cursor: NextCursor
