"""Models of initial access tokens: internal, and of the API."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, Time, Url
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_oidc.clients.models import ISSUER, ClientName

#: Seconds for which a token is valid at most: a year.
MAX_LIFETIME_S = 365 * 86_400

#: Clients that one token can register at most.
MAX_USES = 1000

RegistrationTokenId = Annotated[
    str, Field(description="The token's id.", examples=["ort_032aJfw1JapdeYtl4LVSQG"])
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationToken:
    """An initial access token (RFC 7591, section 1.2), of which only the digest is stored."""

    project_id: str
    token_id: str
    name: str
    digest: str = field(repr=False)
    #: Clients that it can still register; None for any number.
    uses_left: int | None
    #: None for one that does not expire.
    expires_at_ms: int | None
    created_at_ms: int


class CreateRegistrationTokenBody(RequestModel):
    """A new initial access token."""

    name: ClientName = Field(
        description="What it is for; clients do not see it.", examples=["Build server"]
    )
    max_uses: int | None = Field(
        1,
        ge=1,
        le=MAX_USES,
        description="Clients that it can register; null for any number.",
        examples=[1],
    )
    expires_in: int | None = Field(
        86_400,
        ge=60,
        le=MAX_LIFETIME_S,
        description="Seconds for which it is valid; null if it does not expire.",
        examples=[86_400],
    )


class RegistrationTokenAnswer(ResponseModel):
    """An initial access token, which can't be shown again."""

    token_id: RegistrationTokenId
    name: str = Field(
        description="What it is for; clients do not see it.", examples=["Build server"]
    )
    uses_left: int | None = Field(
        description="Clients that it can still register; null for any number.", examples=[1]
    )
    expires_at: Time | None = Field(
        description="Until when it is valid; null if it does not expire.", examples=[examples.LATER]
    )
    created_at: CreatedAt

    @classmethod
    def of(cls, token: RegistrationToken) -> "RegistrationTokenAnswer":
        return cls(
            token_id=token.token_id,
            name=token.name,
            uses_left=token.uses_left,
            expires_at=optional_rfc3339(token.expires_at_ms),
            created_at=to_rfc3339(token.created_at_ms),
        )


class NewRegistrationTokenAnswer(RegistrationTokenAnswer):
    """A new initial access token."""

    token: str = Field(
        description="The token itself, for the header `Authorization: Bearer ...` of a registration. It"
        " can't be read again.",
        examples=["moi_r3cr6UZrlnbPcSZo582CKX5yVAq0Z2bFRAldLQ1PJz8"],
    )
    registration_endpoint: Url = Field(
        description="Where software registers itself (RFC 7591).", examples=[f"{ISSUER}/register"]
    )


class RegistrationTokenList(ResponseModel):
    """A page of initial access tokens, newest first."""

    data: list[RegistrationTokenAnswer] = Field(description="The tokens of this page.")
    next_cursor: NextCursor


class RegistrationTokenQuery(PageQuery):
    """Paging."""
