"""Models of members: internal, and of the API."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, Kept, Time
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import has_visible

#: Roles; `agent` and higher reply to customers.
Role = Literal["owner", "admin", "agent", "viewer"]
ANSWERING: tuple[Role, ...] = ("owner", "admin", "agent")

MemberStatus = Literal["active", "removed"]

#: Maximum characters of a name, as shown beside a ticket.
NAME_LENGTH = 100

#: Default lifetime of a member's link in seconds: a day.
LINK_EXPIRES_IN_S = 24 * 3600


@value_object
class Membership:
    """A project of an account, and its role in it."""

    project_id: str
    name: str
    role: Role


@value_object
class Member:
    """A member of a project. `subscriber_ids` are their messenger accounts, in the order of linking; empty
    after removal."""

    project_id: str
    member_id: str
    name: str
    email: str
    role: Role
    status: MemberStatus
    created_at_ms: int
    removed_at_ms: int | None = None
    subscriber_ids: tuple[str, ...] = ()

    @property
    def is_agent(self) -> bool:
        """Whether they reply to customers."""
        return self.status == "active" and self.role in ANSWERING


def _visible(name: str) -> str:
    name = " ".join(name.split())
    if not has_visible(name) or not name.isprintable():
        raise InvalidValue("must hold letters, and no control characters")
    return name


NAME = "Name shown to colleagues and customers."
EMAIL = "Identifies one member of the project; stored in lowercase."
ROLE = "Owners, admins and agents answer customers; viewers have read-only access."

Name = Annotated[
    str,
    Field(max_length=NAME_LENGTH, description=NAME, examples=["Kim"]),
    AfterValidator(_visible),
]
Email = Annotated[
    str,
    Field(max_length=320, description=EMAIL, examples=["kim@shop.example"]),
    AfterValidator(normalized),
]
AnyRole = Annotated[Role, Field(description=ROLE, examples=["agent"])]


MemberId = Annotated[
    str,
    Field(
        description="Id of the member.",
        examples=[examples.MEMBER_ID],
    ),
]


class AddMemberBody(RequestModel):
    """A new member."""

    name: Name
    email: Email
    role: AnyRole = "agent"


class UpdateMemberBody(RequestModel):
    """Changes of a member; omitted fields stay unchanged."""

    name: Kept[Name] = Field(None, description=NAME)
    email: Kept[Email] = Field(None, description=EMAIL)
    role: Kept[AnyRole] = Field(None, description=ROLE)


class LinkMemberBody(RequestModel):
    """How long a link works."""

    expires_in: int = Field(
        LINK_EXPIRES_IN_S,
        ge=60,
        le=7 * 24 * 3600,
        description="Seconds for which the link works; a day by default.",
        examples=[3600],
    )


class MemberQuery(PageQuery):
    """Filters, both of which a member must meet, and paging."""

    status: MemberStatus = Field(
        "active",
        description="Only members of this status; removed ones are listed separately.",
        examples=["active"],
    )
    role: Role | None = Field(None, description="Only members with this role.", examples=["agent"])


class MemberAnswer(ResponseModel):
    """A member as the API shows them."""

    member_id: MemberId
    name: str = Field(description=NAME, examples=["Kim"])
    email: str = Field(description=EMAIL, examples=["kim@shop.example"])
    role: Role = Field(description=ROLE, examples=["agent"])
    status: MemberStatus = Field(
        description="`removed` members can no longer do anything, and stay visible in past activity.",
        examples=["active"],
    )
    subscriber_ids: list[str] = Field(
        description="Their messenger accounts, in the order of linking; empty without one and after removal.",
        examples=[["sub_032PUv5GmQ8dA1xWc7ZtRb"]],
    )
    created_at: CreatedAt
    removed_at: Time | None = Field(
        description="When they were removed; null for active members.", examples=[None]
    )

    @classmethod
    def of(cls, member: Member) -> "MemberAnswer":
        return cls(
            member_id=member.member_id,
            name=member.name,
            email=member.email,
            role=member.role,
            status=member.status,
            subscriber_ids=list(member.subscriber_ids),
            created_at=to_rfc3339(member.created_at_ms),
            removed_at=optional_rfc3339(member.removed_at_ms),
        )


class MemberList(ResponseModel):
    """A page of members, newest first."""

    data: list[MemberAnswer] = Field(description="The page's members.")
    next_cursor: NextCursor
