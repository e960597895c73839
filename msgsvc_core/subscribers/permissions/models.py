"""Models of permissions: internal, and of the API."""

from typing import Annotated

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import PermissionKey

#: Maximum characters of a title, which is the label of a button: messengers truncate longer ones.
TITLE_LENGTH = 64

#: Maximum characters of a description; several with their titles fit into one message.
DESCRIPTION_LENGTH = 256

TITLE_EXAMPLE = {"en": "News", "ru": "Новости"}
DESCRIPTION_EXAMPLE = {"en": "Once a month, at most.", "ru": "Не чаще раза в месяц."}
DEFAULT = "Whether people who subscribe from now on have granted it at once."

Title = Annotated[
    Localized,
    visible(TITLE_LENGTH),
    Field(
        description="Label of the button that grants and revokes it, or one per language; at most 64"
        " characters.",
        examples=[TITLE_EXAMPLE],
    ),
]
Description = Annotated[
    Localized,
    visible(DESCRIPTION_LENGTH),
    Field(
        description="What people read next to the button, or one text per language; at most 256 characters.",
        examples=[DESCRIPTION_EXAMPLE],
    ),
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

    key: PermissionKey = Field(
        description="What `permission` of `POST /v1/send` names it by; it can't be changed later."
    )
    title: Title
    description: Description | None = Field(
        None,
        description="What people read next to the button, or one text per language; at most 256 characters.",
    )
    default: bool = Field(False, description=DEFAULT, examples=[False])


class UpdatePermissionBody(RequestModel):
    """Changes of a permission; omitted fields stay unchanged, and null removes the description."""

    title: Kept[Title] = Field(
        None, description="New label, or one per language; replaces all languages."
    )
    description: Description | None = Field(
        None, description="New text next to the button, or one per language; null removes it."
    )
    default: Kept[bool] = Field(None, description=DEFAULT, examples=[True])


class PermissionAnswer(ResponseModel):
    """A permission."""

    key: str = Field(
        description="What `permission` of `POST /v1/send` names it by.",
        examples=[examples.PERMISSION],
    )
    title: Localized = Field(
        description="Label of the button that grants and revokes it, or one per language.",
        examples=[TITLE_EXAMPLE],
    )
    description: Localized | None = Field(
        description="What people read next to the button, or one text per language; null without one.",
        examples=[DESCRIPTION_EXAMPLE],
    )
    default: bool = Field(description=DEFAULT, examples=[False])
    active_subscribers: int = Field(
        description="Active subscribers who have granted it.", examples=[96]
    )
    created_at: CreatedAt

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

    data: list[PermissionAnswer] = Field(description="The page's permissions.")
    next_cursor: NextCursor
