"""Models of project channels: internal, and of the API."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.channels.contract import Receiving
from msgsvc_core.channels.reception_models import ReceptionAnswer
from msgsvc_core.kernel.errors import InvalidValue

#: A channel's name, as in the configuration: what the API shows, e.g. `messenger_a`.
ChannelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]

#: Bytes of a channel's settings as JSON.
SETTINGS_BYTES = 8192

#: `working`; `stopped` while its platform refuses the bot; `unavailable` during an outage of the platform;
#: `broken` if its settings can't be read.
OwnChannelStatus = Literal["working", "stopped", "unavailable", "broken"]


def row_of(channel_id: str) -> tuple[str, str]:
    """The row that a channel's encrypted settings are bound to."""
    return "core_channels.sealed", channel_id


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
    interrupted_since_ms: int | None = None
    interrupted_reason: str | None = None
    interrupted_detail: str | None = None


class CreateChannelBody(RequestModel):
    """A new channel. `plugin` is a kind of messenger; `settings` are what that kind takes."""

    name: ChannelName
    plugin: str = Field(min_length=1, max_length=64)
    settings: SettingsObject = Field(default_factory=dict)


class UpdateChannelBody(RequestModel):
    """New values of settings; what is left out stays, and null goes back to the default."""

    settings: SettingsObject


class BotAnswer(ResponseModel):
    """The bot as its platform knows it; `username` is without the `@`."""

    name: str
    username: str | None


class OwnChannelAnswer(ResponseModel):
    """A channel of the project's own. Of secret settings only the names are shown, in `secrets`.

    `unavailable_since` is since when the platform has answered nobody; null while it answers. `reception`
    is how the bot receives, which `status` says nothing of; null for one that is to receive nothing.
    """

    name: str
    channel_id: str
    plugin: str
    settings: dict[str, Any]
    secrets: list[str]
    status: OwnChannelStatus
    detail: str | None
    unavailable_since: str | None
    receiving: Receiving
    reception: ReceptionAnswer | None
    bot: BotAnswer | None
    link: str | None
    created_at: str
    updated_at: str


class OwnChannelList(ResponseModel):
    """A page of channels, newest first."""

    data: list[OwnChannelAnswer]
    next_cursor: str | None


class ChannelCheckAnswer(ResponseModel):
    """What the platform said of the bot just now, and how the bot receives, as it was seen last."""

    ok: bool
    detail: str
    bot: BotAnswer | None
    reception: ReceptionAnswer | None
