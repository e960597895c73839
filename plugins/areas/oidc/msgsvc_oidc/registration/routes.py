"""/v1/oidc/registration-tokens."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.discovery import REGISTRATION
from msgsvc_oidc.registration.models import (
    CreateRegistrationTokenBody,
    NewRegistrationTokenAnswer,
    RegistrationTokenAnswer,
    RegistrationTokenId,
    RegistrationTokenList,
    RegistrationTokenQuery,
)
from msgsvc_oidc.registration.tokens import RegistrationTokens

router = Router(area="oidc")


@router.get("/v1/oidc/registration-tokens", errors=(BadRequest,))
async def list_oidc_registration_tokens(
    ctx: Context, query: RegistrationTokenQuery, tokens: RegistrationTokens
) -> RegistrationTokenList:
    """Lists the tokens by which software registers itself as an OpenID client, newest first."""
    found = await tokens.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda token: token.token_id)
    return RegistrationTokenList(
        data=[RegistrationTokenAnswer.of(token) for token in page], next_cursor=following
    )


@router.post(
    "/v1/oidc/registration-tokens",
    status=201,
    errors=(Conflict,),
    audited=lambda _: _("Registration token created"),
)
async def create_oidc_registration_token(
    ctx: Context, body: CreateRegistrationTokenBody, tokens: RegistrationTokens, issuers: Issuers
) -> NewRegistrationTokenAnswer:
    """Makes a token by which software registers itself as an OpenID client. It is shown once."""
    token, text = await tokens.create(ctx.tx, ctx.project_id, body)
    shown = RegistrationTokenAnswer.of(token).to_data()
    return NewRegistrationTokenAnswer(
        **shown,
        token=text,
        registration_endpoint=issuers.url(ctx.project_id) + REGISTRATION,
    )


@router.delete(
    "/v1/oidc/registration-tokens/{token_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Registration token revoked"),
)
async def revoke_oidc_registration_token(
    ctx: Context, token_id: RegistrationTokenId, tokens: RegistrationTokens
) -> None:
    """Revokes a token for registration. The clients that it has registered stay."""
    await tokens.revoke(ctx.tx, ctx.project_id, token_id)
