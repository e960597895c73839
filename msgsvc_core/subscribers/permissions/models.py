"""Models of permissions: internal, and of the API."""

from typing import Annotated

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import PermissionKey

#: Maximum characters of a title, which is the label of a button: messengers truncate longer ones.
TITLE_LENGTH = 64

#: Maximum characters of a description; several with their titles fit into one message.
DESCRIPTION_LENGTH = 256

Title = Annotated[
    Localized,
    visible(TITLE_LENGTH),
    Field(description="Button title, or one per language."),
]
Description = Annotated[
    Localized,
    visible(DESCRIPTION_LENGTH),
    Field(description="Description shown beside it, or one per language."),
]


@value_object
class Permission:
    """A permission that subscribers grant a project, with `title` and `description` for them.

    `default`: granted on subscribing.
    """

    project_id: str
    key: str
    title: Localized
    description: Localized | None
    default: bool
    created_at_ms: int


class CreatePermissionBody(RequestModel):
    """A new permission."""

    key: PermissionKey
    title: Title
    description: Description | None = None
    default: bool = Field(False, description="Whether new subscribers have granted it by default.")


class UpdatePermissionBody(RequestModel):
    """Changes of a permission; what is left out stays. A description of null is removed."""

    title: Kept[Title] = None
    description: Description | None = None
    default: Kept[bool] = None


class PermissionAnswer(ResponseModel):
    """A permission, and how many active subscribers granted it."""

    key: str
    title: Localized
    description: Localized | None
    default: bool
    active_subscribers: int
    created_at: str

    @classmethod
    def of(cls, permission: Permission, active_subscribers: int) -> "PermissionAnswer":
        return cls(
            key=permission.key,
            title=permission.title,
            description=permission.description,
            default=permission.default,
            active_subscribers=active_subscribers,
            created_at=to_rfc3339(permission.created_at_ms),
        )


class PermissionList(ResponseModel):
    """A page of permissions, newest first."""

    data: list[PermissionAnswer]
    next_cursor: str | None
