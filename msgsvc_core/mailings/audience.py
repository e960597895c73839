"""Audiences: who gets a mailing."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.types import OnlyTrue
from msgsvc_core.db.counting import MOST_COUNTED
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import PermissionKey, TagName


class Audience(RequestModel):
    """The recipients: `all`, or the active subscribers who match every given filter."""

    model_config = ConfigDict(
        title="AudienceBody",
        json_schema_extra={
            "examples": [{"tags_any": [examples.TAG], "langs": ["en"]}, {"all": True}]
        },
    )

    all: OnlyTrue | None = Field(None, description="All active subscribers.")
    tags_any: list[TagName] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Subscribers with any of these tags.",
        examples=[[examples.TAG]],
    )
    tags_all: list[TagName] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Subscribers with all of these tags.",
        examples=[[examples.TAG, "berlin"]],
    )
    tags_none: list[TagName] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Subscribers with none of these tags.",
        examples=[["staff"]],
    )
    permission: PermissionKey | None = Field(
        None,
        description="Subscribers who granted it; checked again when the message is sent.",
        examples=[examples.PERMISSION],
    )
    channels: list[str] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Subscribers on any of these messengers, by the names of the project's channels.",
        examples=[[examples.CHANNEL]],
    )
    langs: list[Language] | None = Field(
        None,
        min_length=1,
        max_length=10,
        description="Subscribers who read any of these languages.",
        examples=[["en"]],
    )
    subscriber_ids: list[str] | None = Field(
        None,
        min_length=1,
        description="These subscribers, at most 10,000. Unsubscribed, blocked and unknown ones are"
        " `skipped`.",
        examples=[[examples.SUBSCRIBER_ID]],
    )

    @model_validator(mode="after")
    def _all_or_some(self) -> "Audience":
        """Either `all` or at least one filter is given."""
        filters = [name for name in self.model_fields_set - {"all"} if getattr(self, name)]
        if (self.all is None) == (not filters):
            raise InvalidValue("give either all, or one filter at least")
        return self

    @property
    def names_alone(self) -> bool:
        """Whether the audience consists of ids only, without filters."""
        return self.to_column().keys() == {"subscriber_ids"}

    def to_column(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


#: Rows that are read to count an audience, or the reasons of one outcome.
MOST_LOOKED_AT = MOST_COUNTED

#: Subscribers that the composer reads to show why some of an audience get no message: it tests each for five
#: reasons whenever a filter changes. The review before sending counts all.
MOST_BROKEN_DOWN = 5_000

#: Why somebody who matches the filters of an audience by tag, language and id would not get a message, the
#: first that holds: blocked the bot, not subscribed, on another channel than those chosen, known to a bot
#: that the project has no more, without the permission.
LeftOut = Literal["blocked", "unsubscribed", "channel", "bot", "permission"]


@value_object
class AudienceBreakdown:
    """Who would get a message to an audience, and how many of those who match its filters would not.

    At least so many, unless it `is_exact`.
    """

    reached: int
    left_out: dict[LeftOut, int]
    is_exact: bool = True


class AudienceAnswer(TypedDict, total=False):
    """The audience as it was given, with the number of `subscriber_ids` in place of up to 10,000 ids.

    Filters that were not given are absent.
    """

    all: Annotated[OnlyTrue, Field(description="All active subscribers.")]
    tags_any: Annotated[
        list[str],
        Field(description="Subscribers with any of these tags.", examples=[[examples.TAG]]),
    ]
    tags_all: Annotated[
        list[str], Field(description="Subscribers with all of these tags.", examples=[["berlin"]])
    ]
    tags_none: Annotated[
        list[str], Field(description="Subscribers with none of these tags.", examples=[["staff"]])
    ]
    permission: Annotated[
        str, Field(description="Subscribers who granted it.", examples=[examples.PERMISSION])
    ]
    channels: Annotated[
        list[str],
        Field(description="Subscribers on any of these channels.", examples=[[examples.CHANNEL]]),
    ]
    langs: Annotated[
        list[str],
        Field(description="Subscribers who read any of these languages.", examples=[["en"]]),
    ]
    subscriber_ids_count: Annotated[
        int, Field(description="How many different subscribers were named by id.", examples=[250])
    ]
