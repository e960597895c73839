"""Models of tags: internal, and of the API."""

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
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


class TagBody(RequestModel):
    """A tag's name: 1-64 letters of any script, digits, `_` and `-`."""

    name: TagName


class TagAnswer(ResponseModel):
    """A tag, and how many subscribers carry it, whatever their status."""

    name: str
    subscribers: int
    created_at: str

    @classmethod
    def of(cls, tag: Tag) -> "TagAnswer":
        return cls(
            name=tag.name,
            subscribers=tag.subscribers,
            created_at=to_rfc3339(tag.created_at_ms),
        )


class TagList(ResponseModel):
    """A page of tags, newest first."""

    data: list[TagAnswer]
    next_cursor: str | None
