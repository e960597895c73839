"""/v1/oidc/clients."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.clock import optional_rfc3339
from msgsvc_core.kernel.errors import BadRequest, Conflict, InvalidUrl, NotFound
from msgsvc_oidc.clients.models import (
    ClientId,
    ClientQuery,
    CreateOidcClientBody,
    NewOidcClientAnswer,
    NewOidcClientSecretAnswer,
    OidcClientAnswer,
    OidcClientList,
    OidcClientSecretAnswer,
    OidcClientSecretList,
    SecretId,
    SecretQuery,
    UpdateOidcClientBody,
    client_fields,
)
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers

router = Router(
    area="oidc",
    description="OpenID Connect: sites and apps whose users sign in through a messenger.",
    group="sign_in",
)


@router.get("/v1/oidc/clients", errors=(BadRequest,))
async def list_oidc_clients(
    ctx: Context, query: ClientQuery, clients: Clients, issuers: Issuers
) -> OidcClientList:
    """Lists the project's OpenID clients, newest first."""
    found = await clients.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda client: client.client_id)
    issuer = issuers.url(ctx.project_id)
    return OidcClientList(
        data=[OidcClientAnswer.of(client, issuer) for client in page], next_cursor=following
    )


@router.post(
    "/v1/oidc/clients",
    status=201,
    errors=(Conflict, InvalidUrl),
    audited=lambda _: _("OpenID client created"),
)
async def create_oidc_client(
    ctx: Context, body: CreateOidcClientBody, clients: Clients, issuers: Issuers
) -> NewOidcClientAnswer:
    """Registers software that signs people in. Its secret is shown once."""
    new = await clients.create(ctx.tx, ctx.project_id, body)
    fields = client_fields(new.client, issuers.url(ctx.project_id))
    return NewOidcClientAnswer(**fields, client_secret=new.secret)


@router.get("/v1/oidc/clients/{client_id}", errors=(NotFound,))
async def get_oidc_client(
    ctx: Context, client_id: ClientId, clients: Clients, issuers: Issuers
) -> OidcClientAnswer:
    """Shows one OpenID client."""
    client = await clients.get(ctx.tx, ctx.project_id, client_id)
    return OidcClientAnswer.of(client, issuers.url(ctx.project_id))


@router.patch(
    "/v1/oidc/clients/{client_id}",
    errors=(NotFound, InvalidUrl),
    audited=lambda _: _("OpenID client changed"),
)
async def update_oidc_client(
    ctx: Context,
    client_id: ClientId,
    body: UpdateOidcClientBody,
    clients: Clients,
    issuers: Issuers,
) -> OidcClientAnswer:
    """Changes an OpenID client; omitted fields stay unchanged."""
    changed = await clients.change(ctx.tx, ctx.project_id, client_id, body)
    return OidcClientAnswer.of(changed, issuers.url(ctx.project_id))


@router.delete(
    "/v1/oidc/clients/{client_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("OpenID client deleted"),
)
async def delete_oidc_client(ctx: Context, client_id: ClientId, clients: Clients) -> None:
    """Deletes an OpenID client; its tokens are no longer valid."""
    await clients.delete(ctx.tx, ctx.project_id, client_id)


@router.get("/v1/oidc/clients/{client_id}/secrets", errors=(BadRequest, NotFound))
async def list_oidc_client_secrets(
    ctx: Context, client_id: ClientId, query: SecretQuery, clients: Clients
) -> OidcClientSecretList:
    """Lists the valid secrets of a client, newest first, without their texts."""
    client = await clients.get(ctx.tx, ctx.project_id, client_id)
    found = await clients.secrets_page(ctx.tx, client, query)
    page, following = query.cut(found, lambda secret: secret.secret_id)
    return OidcClientSecretList(
        data=[OidcClientSecretAnswer.of(each) for each in page], next_cursor=following
    )


@router.post(
    "/v1/oidc/clients/{client_id}/secrets",
    errors=(NotFound, Conflict),
    audited=lambda _: _("Secret of an OpenID client rotated"),
)
async def rotate_oidc_client_secret(
    ctx: Context, client_id: ClientId, clients: Clients
) -> NewOidcClientSecretAnswer:
    """Makes a new secret. The previous one stays valid for some days, so that it can be replaced."""
    client = await clients.get(ctx.tx, ctx.project_id, client_id)
    made, secret, previous_ends_at_ms = await clients.rotate_secret(ctx.tx, client)
    return NewOidcClientSecretAnswer(
        secret_id=made.secret_id,
        client_secret=secret,
        previous_valid_until=optional_rfc3339(previous_ends_at_ms),
    )


@router.delete(
    "/v1/oidc/clients/{client_id}/secrets/{secret_id}",
    status=204,
    errors=(NotFound, Conflict),
    audited=lambda _: _("Secret of an OpenID client deleted"),
)
async def delete_oidc_client_secret(
    ctx: Context, client_id: ClientId, secret_id: SecretId, clients: Clients
) -> None:
    """Deletes a secret at once."""
    client = await clients.get(ctx.tx, ctx.project_id, client_id)
    await clients.delete_secret(ctx.tx, client, secret_id)
