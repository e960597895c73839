"""Models of tags: internal, and of the API."""

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import TagName


@value_object
class Tag:
    """A tag; `subscribers` is the number that have it, whatever their status."""

    project_id: str
    name: str
    created_at_ms: int
    subscribers: int


class CreateTagBody(RequestModel):
    """A tag's name."""

    name: TagName = Field(
        description="1-64 letters of any script, digits, `_` and `-`; upper and lower case differ."
    )


class UpdateTagBody(CreateTagBody):
    """A tag's new name."""


class TagAnswer(ResponseModel):
    """A tag."""

    # Generators make a class `Tag` of the entries of fields called `tags`.
    model_config = ConfigDict(title="ProjectTag")

    name: str = Field(description="The tag, as people carry it.", examples=[examples.TAG])
    subscribers: int = Field(
        description="Subscribers who carry it, whatever their status.", examples=[128]
    )
    created_at: CreatedAt

    @classmethod
    def of(cls, tag: Tag) -> "TagAnswer":
        return cls(
            name=tag.name,
            subscribers=tag.subscribers,
            created_at=to_rfc3339(tag.created_at_ms),
        )


class TagList(ResponseModel):
    """A page of tags, newest first."""

    data: list[TagAnswer] = Field(description="The page's tags.")
    next_cursor: NextCursor
