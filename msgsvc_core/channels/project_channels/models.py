"""Models of project channels: internal, and of the API."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Time, UpdatedAt, Url
from msgsvc_core.channels.contract import Receiving
from msgsvc_core.channels.reception.models import ReceptionAnswer
from msgsvc_core.kernel.errors import InvalidValue

#: A channel's name, as in the configuration: what the API shows, e.g. `messenger_a`.
ChannelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]

#: A channel in a path.
NamedChannel = Annotated[
    str, Field(description="The project's own channel, by its name.", examples=["support"])
]

#: A request for a bot in a path.
ChannelRequestId = Annotated[
    str,
    Field(description="The request for a bot.", examples=[examples.CHANNEL_REQUEST_ID]),
]

#: A token of the form that a messenger gives out.
BOT_TOKEN = "123456789:AAEXAMPLE-token-of-the-bot"  # noqa: S105 - an example

#: Bytes of a channel's settings as JSON.
SETTINGS_BYTES = 8192

#: `working`; `stopped` while its platform refuses the bot; `unavailable` during an outage of the platform;
#: `broken` if its settings can't be read.
OwnChannelStatus = Literal["working", "stopped", "unavailable", "broken"]

#: `pending` until the bot is made, `connecting` once it is; the others are final.
ChannelRequestStatus = Literal[
    "pending", "connecting", "connected", "failed", "expired", "cancelled"
]


#: Where encrypted settings are stored, as they name it.
PLACE = "core_channels.sealed"


def row_of(channel_id: str) -> tuple[str, str]:
    """The row that a channel's encrypted settings are bound to."""
    return PLACE, channel_id


def _check_size(settings: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(settings)) > SETTINGS_BYTES:
        raise InvalidValue("must be at most {limit} bytes as JSON", limit=SETTINGS_BYTES)
    return settings


SettingsObject = Annotated[dict[str, Any], AfterValidator(_check_size)]


@dataclass(frozen=True, slots=True)
class OwnChannel:
    """A row. `sealed` are the encrypted settings; `revision` increases with each change.

    The row of a removed channel is kept while it has subscribers: no other account's bot may replace it.
    """

    project_id: str
    name: str
    channel_id: str
    plugin: str
    sealed: str
    revision: int
    created_at_ms: int
    updated_at_ms: int
    removed_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """Restrictions imposed by the platform: see `core_channel_states`."""

    status: str
    detail: str | None
    outage_since_ms: int | None = None
    outage_detail: str | None = None
    paused_until_ms: int = 0
    interrupted_since_ms: int | None = None
    interrupted_reason: str | None = None
    interrupted_detail: str | None = None


class CreateChannelBody(RequestModel):
    """A new channel."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "support", "plugin": examples.CHANNEL, "settings": {"token": BOT_TOKEN}}
            ]
        }
    )

    name: ChannelName = Field(
        description="What `channel` of other requests and events names it by; with the name of a shared"
        " channel, it replaces that one for the project.",
        examples=["support"],
    )
    plugin: str = Field(
        min_length=1,
        max_length=64,
        description="Kind of messenger, of those that the service lets projects add.",
        examples=[examples.CHANNEL],
    )
    settings: SettingsObject = Field(
        default_factory=dict,
        description="Settings of that kind of messenger, above all the bot's token; at most 8,192 bytes as"
        " JSON.",
        examples=[{"token": BOT_TOKEN}],
    )


class CreateChannelRequestBody(RequestModel):
    """A channel whose bot is yet to be made on the messenger."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "support", "plugin": examples.CHANNEL}]}
    )

    name: ChannelName = Field(
        description="Name of the channel that the bot becomes; with the name of a shared channel, it replaces"
        " that one for the project.",
        examples=["support"],
    )
    plugin: str = Field(
        min_length=1,
        max_length=64,
        description="Kind of messenger, of which the service has a bot that makes others.",
        examples=[examples.CHANNEL],
    )


class UpdateChannelBody(RequestModel):
    """Changes of a channel's settings."""

    settings: SettingsObject = Field(
        description="New values; settings that are left out stay, and null goes back to a default.",
        examples=[{"token": BOT_TOKEN}],
    )


class BotAnswer(ResponseModel):
    """The bot as its messenger knows it."""

    name: str = Field(description="Name that people see.", examples=["Example Shop"])
    username: str | None = Field(
        description="Name in links, without `@`; null for bots without one.",
        examples=["example_bot"],
    )


class BudgetAnswer(ResponseModel):
    """What a channel may spend on its messenger a day."""

    unit: str = Field(description="What is spent.", examples=["Stars"])
    most: float = Field(
        description="What may be spent a day, which begins at midnight UTC.", examples=[100.0]
    )
    spent: float = Field(
        description="What of it is taken today. It may be a little more than was charged.",
        examples=[12.5],
    )


class ChannelAnswer(ResponseModel):
    """A channel of the project's own."""

    name: str = Field(
        description="What `channel` of other requests and events names it by.", examples=["support"]
    )
    channel_id: str = Field(
        description="Id of this channel, part of its webhook's address; another channel can reuse a name.",
        examples=["chn_032PUt3EK71lpZghhd5Udy"],
    )
    plugin: str = Field(description="Kind of messenger.", examples=[examples.CHANNEL])
    settings: dict[str, Any] = Field(
        description="The settings that were given, without the secret ones.",
        examples=[{"receiving": "webhook"}],
    )
    secrets: list[str] = Field(
        description="Names of the secret settings that were given; their values are never shown.",
        examples=[["token"]],
    )
    status: OwnChannelStatus = Field(
        description="`stopped`: the messenger refuses the bot, until its settings change. `unavailable`: the"
        " messenger is down. `broken`: the stored settings can't be read.",
        examples=["working"],
    )
    detail: str | None = Field(
        description="For people: why `status` is not `working`; null while it is.", examples=[None]
    )
    unavailable_since: Time | None = Field(
        description="Since when the messenger has answered no call; null while it answers.",
        examples=[None],
    )
    paused_until: Time | None = Field(
        description="Until when the messenger has asked the bot to send nothing; null if it has not.",
        examples=[None],
    )
    receiving: Receiving = Field(
        description="How the bot receives what people write: it asks the messenger, is called by it, or"
        " receives nothing.",
        examples=["webhook"],
    )
    reception: ReceptionAnswer | None = Field(
        description="Whether it receives updates, which `status` does not show; null if it is configured"
        " to receive none."
    )
    bot: BotAnswer | None = Field(
        description="The bot's profile; null until the messenger has reported it."
    )
    link: Url | None = Field(
        description="Link to the bot; null until the messenger has reported its name.",
        examples=[f"{examples.BOT_URL}?start=hello"],
    )
    budget: BudgetAnswer | None = Field(
        description="What the bot may spend on its messenger a day; null if it spends nothing."
    )
    created_at: CreatedAt
    updated_at: UpdatedAt


class ChannelList(ResponseModel):
    """A page of channels, newest first."""

    data: list[ChannelAnswer] = Field(description="The page's channels.")
    next_cursor: NextCursor


class ChannelRequestAnswer(ResponseModel):
    """A request for a bot that a person makes on the messenger."""

    channel_request_id: str = Field(
        description="Id of the request.", examples=[examples.CHANNEL_REQUEST_ID]
    )
    name: str = Field(description="Name of the channel that the bot becomes.", examples=["support"])
    plugin: str = Field(description="Kind of messenger.", examples=[examples.CHANNEL])
    username: str = Field(
        description="The bot's suggested username. The service recognises the bot by it, so its creator"
        " must keep it.",
        examples=["support_k3v9x0qa7d_bot"],
    )
    status: ChannelRequestStatus = Field(
        description="`pending` until the bot is made; `connecting` once it is; `connected`: the channel"
        " `name` works; `failed`: the bot could not be connected, and can be added with its token;"
        " `expired`: no bot was made in time; `cancelled`, or replaced by a later request of that name.",
        examples=["pending"],
    )
    detail: str | None = Field(
        description="For people: why it `failed`; null otherwise.", examples=[None]
    )
    link: Url | None = Field(
        description="Link on which a person makes the bot, in one tap; it belongs to that person. Give it to"
        " nobody else. Null unless `pending`, and while no bot here makes others.",
        examples=[
            "https://t.me/newbot/example_bot/support_k3v9x0qa7d_bot?name=Example+Shop",
        ],
    )
    created_at: CreatedAt
    expires_at: Time = Field(
        description="Until when the link can be used, an hour after `created_at`.",
        examples=["2026-03-01T10:30:00.000Z"],
    )


class ChannelRequestFinished(ResponseModel):
    """Fields of `channel_request.finished`."""

    channel_request_id: str = Field(
        description="Id of the request.", examples=[examples.CHANNEL_REQUEST_ID]
    )
    name: str = Field(
        description="Name of the channel that the bot was made for.", examples=["support"]
    )
    plugin: str = Field(description="Kind of messenger.", examples=[examples.CHANNEL])
    status: Literal["connected", "failed"] = Field(
        description="`connected`: the channel `name` works. `failed`: the bot was made, but could not be"
        " connected, see `detail`.",
        examples=["connected"],
    )
    detail: str | None = Field(
        description="For people: why it `failed`; null otherwise.", examples=[None]
    )


class ChannelRequestList(ResponseModel):
    """A page of requests for bots, newest first."""

    data: list[ChannelRequestAnswer] = Field(description="The page's requests.")
    next_cursor: NextCursor


class ChannelCheckAnswer(ResponseModel):
    """What the messenger said of the bot just now, and how the bot receives, as it was seen last."""

    ok: bool = Field(description="False if the messenger refuses the bot.", examples=[True])
    detail: str = Field(
        description="What the messenger said, for people.", examples=["@example_bot"]
    )
    bot: BotAnswer | None = Field(description="The bot's profile; null if it is refused.")
    reception: ReceptionAnswer | None = Field(
        description="Whether the bot receives messages; null if it is configured to receive none."
    )
