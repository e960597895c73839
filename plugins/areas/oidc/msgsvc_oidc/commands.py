"""`msgsvc oidc`: clients of the OpenID provider, and its signing keys."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.api.validation import validate
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json, ProjectId
from msgsvc_core.cli.tables import show_table
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.plugins.audit import AuditLog
from msgsvc_core.projects.service import Projects
from msgsvc_oidc.clients.models import ClientQuery, CreateOidcClientBody, client_fields
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.keys import SigningKey

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Clients and signing keys of the OpenID provider.",
)
client_app = typer.Typer(
    no_args_is_help=True, help="Create, list, show and delete clients, and rotate their secrets."
)
keys_app = typer.Typer(no_args_is_help=True, help="List, rotate and replace the signing keys.")
app.add_typer(client_app, name="client")
app.add_typer(keys_app, name="keys")

ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="For example app_02Yz...")]

#: Clients read per query.
PAGE = 100

#: What is left to do with a new client.
HINT = (
    "Paste these into the application's OpenID Connect settings. Where it asks for a discovery URL:\n"
    "{issuer}/.well-known/openid-configuration"
)


@client_app.command()
def create(
    project_id: ProjectId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Shown to people when they sign in.")],
    redirect_uri: Annotated[
        list[str] | None,
        typer.Option("--redirect-uri", help="The application's callback URL. Can be repeated."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="A scope that it may request. Default: openid, profile."),
    ] = None,
    grant_type: Annotated[
        list[str] | None,
        typer.Option("--grant-type", help="Default: authorization_code, refresh_token."),
    ] = None,
    auth_method: Annotated[
        str, typer.Option("--auth-method", help="How it authenticates; `none` without a secret.")
    ] = "client_secret_basic",
    logout_uri: Annotated[
        str | None, typer.Option("--backchannel-logout-uri", help="Receives logout tokens.")
    ] = None,
    after_logout: Annotated[
        list[str] | None,
        typer.Option("--post-logout-redirect-uri", help="Where browsers return after sign-out."),
    ] = None,
    first_party: Annotated[
        bool, typer.Option("--first-party", help="Sign people in without asking for consent.")
    ] = False,
    pairwise: Annotated[
        bool, typer.Option("--pairwise", help="Tell it another `sub` than other hosts.")
    ] = False,
    claims_in_id_token: Annotated[
        bool,
        typer.Option(
            "--claims-in-id-token/--claims-in-userinfo-only",
            help="Whether ID tokens have a person's name and other claims of the granted scopes.",
        ),
    ] = True,
    introspects: Annotated[
        list[str] | None,
        typer.Option(
            help="A client whose access tokens it may introspect. Can be repeated. Without a --grant-type"
            " and a --redirect-uri it is an API that signs nobody in."
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Register an application that signs people in. Its secret is printed once."""
    asked = {
        "name": name,
        "redirect_uris": redirect_uri,
        "scopes": scope,
        "grant_types": grant_type,
        "token_endpoint_auth_method": auth_method,
        "backchannel_logout_uri": logout_uri,
        "post_logout_redirect_uris": after_logout,
        "first_party": first_party,
        "subject_type": "pairwise" if pairwise else "public",
        "introspects": introspects,
    }
    given = {name: value for name, value in asked.items() if value}
    if introspects and not grant_type and not redirect_uri:
        given["grant_types"] = []
    body = validate(CreateOidcClientBody, {**given, "claims_in_id_token": claims_in_id_token})
    shown = asyncio.run(_create(config, project_id, body))
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    typer.echo(f"created {shown['client_id']}, {shown['name']!r}")
    typer.echo(f"issuer:        {shown['issuer']}")
    typer.echo(f"client id:     {shown['client_id']}")
    if "client_secret" in shown:
        typer.echo(f"client secret: {shown['client_secret']}  (shown only now)")
    typer.echo(HINT.format(issuer=shown["issuer"]))


@client_app.command("list")
def list_clients(project_id: ProjectId, config: ConfigOption = None, as_json: Json = False) -> None:
    """List a project's clients, newest first."""
    found = asyncio.run(_list(config, project_id))
    if as_json:
        typer.echo(json.dumps({"data": found}, ensure_ascii=False))
        return
    if not found:
        typer.echo("there are no clients; `msgsvc oidc client create` registers one")
        return
    rows = [
        [each["client_id"], each["name"], " ".join(each["scopes"]), each["created_at"]]
        for each in found
    ]
    show_table(["id", "name", "scopes", "created"], rows)


@client_app.command()
def show(
    project_id: ProjectId, client_id: ClientId, config: ConfigOption = None, as_json: Json = False
) -> None:
    """Show a client, and when its secrets were made, without their texts."""
    shown = asyncio.run(_show(config, project_id, client_id))
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    for name, value in shown.items():
        if name != "secrets":
            typer.echo(f"{name}: {_as_text(value)}")
    for secret in shown["secrets"]:
        until = f", valid until {secret['expires_at']}" if secret["expires_at"] else ""
        typer.echo(f"secret {secret['secret_id']}: made {secret['created_at']}{until}")


@client_app.command("rotate-secret")
def rotate_secret(
    project_id: ProjectId, client_id: ClientId, config: ConfigOption = None, as_json: Json = False
) -> None:
    """Print a new secret, once. The previous one stays valid for some days."""
    secret, ends_at_ms = asyncio.run(_rotate_secret(config, project_id, client_id))
    if as_json:
        until = optional_rfc3339(ends_at_ms)
        typer.echo(json.dumps({"client_secret": secret, "previous_valid_until": until}))
        return
    typer.echo(f"client secret: {secret}  (shown only now)")
    if ends_at_ms is not None:
        typer.echo(f"the previous one is valid until {to_rfc3339(ends_at_ms)}")


@client_app.command()
def delete(project_id: ProjectId, client_id: ClientId, config: ConfigOption = None) -> None:
    """Delete a client. Its tokens are no longer valid, and what people agreed to is forgotten."""
    asyncio.run(_delete(config, project_id, client_id))
    typer.echo(f"{client_id} is deleted")


@keys_app.command("list")
def list_keys(config: ConfigOption = None, as_json: Json = False) -> None:
    """List the signing keys: of each algorithm, one signs, one is next, and old ones are retired."""
    keys = asyncio.run(_keys(config))
    if as_json:
        typer.echo(json.dumps({"data": [_plain_key(key) for key in keys]}))
        return
    if not keys:
        typer.echo("there are no keys; the first ones are made when a client needs them")
        return
    rows = [list(_plain_key(key).values()) for key in keys]
    show_table(["id", "algorithm", "status", "since"], rows)


@keys_app.command("rotate")
def rotate_keys(config: ConfigOption = None, as_json: Json = False) -> None:
    """Have the next key sign from now on, if it was published for as long as clients may cache keys.

    Exits with 1 if none was rotated.
    """
    keys = asyncio.run(_rotate_keys(config))
    if as_json:
        typer.echo(json.dumps({"data": [_plain_key(key) for key in keys]}))
    else:
        for key in keys:
            typer.echo(f"{key.key_id} signs from now on ({key.alg})")
    if not keys:
        typer.echo(
            "no key was rotated: clients may not know the next one yet; `msgsvc oidc keys list` says "
            "since when it is published",
            err=True,
        )
        raise typer.Exit(1)


@keys_app.command("replace")
def replace_keys(config: ConfigOption = None, as_json: Json = False) -> None:
    """Replace all keys at once: they leaked, or the secret keys that decrypt them are lost.

    Sign-ins fail at clients that cache the old keys, until they fetch the new ones.
    """
    keys = asyncio.run(_replace_keys(config))
    if as_json:
        typer.echo(json.dumps({"data": [_plain_key(key) for key in keys]}))
        return
    for key in keys:
        typer.echo(f"{key.key_id} signs from now on ({key.alg})")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The objects of an opened service that the commands use."""

    db: Database
    projects: Projects
    audit: AuditLog
    clients: Clients
    issuers: Issuers
    keys: SigningKeys

    async def record(self, tx: Tx, action: str, client: Client) -> None:
        """Writes an audit record, with the name of the dashboard's page that does the same."""
        await self.audit.write_command(tx, action, client.project_id, client_id=client.client_id)

    def plain(self, client: Client) -> dict[str, Any]:
        return client_fields(client, self.issuers.url(client.project_id))


@asynccontextmanager
async def _opened(config: Path | None) -> AsyncIterator[_Parts]:
    async with opened(config) as service:
        if "oidc" not in service.settings.loaded_plugins:
            raise typer.BadParameter("the configuration's `plugins` do not name oidc")
        yield _Parts(
            service.db,
            service.projects,
            service.audit,
            service.get(Clients),
            service.get(Issuers),
            service.get(SigningKeys),
        )


async def _create(
    config: Path | None, project_id: str, body: CreateOidcClientBody
) -> dict[str, Any]:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        await parts.projects.get(tx, project_id)
        new = await parts.clients.create(tx, project_id, body)
        await parts.record(tx, "oidc.create_client", new.client)
        secret = {} if new.secret is None else {"client_secret": new.secret}
        return {**parts.plain(new.client), **secret}


async def _list(config: Path | None, project_id: str) -> list[dict[str, Any]]:
    found: list[Client] = []
    async with _opened(config) as parts, parts.db.read() as tx:
        await parts.projects.get(tx, project_id)
        cursor: str | None = None
        while True:
            query = ClientQuery(limit=PAGE, cursor=cursor)
            page, cursor = query.cut(
                await parts.clients.page(tx, project_id, query), lambda each: each.client_id
            )
            found += page
            if cursor is None:
                return [parts.plain(client) for client in found]


async def _show(config: Path | None, project_id: str, client_id: str) -> dict[str, Any]:
    async with _opened(config) as parts, parts.db.read() as tx:
        client = await parts.clients.get(tx, project_id, client_id)
        secrets = [
            {
                "secret_id": each.secret_id,
                "created_at": to_rfc3339(each.created_at_ms),
                "expires_at": optional_rfc3339(each.expires_at_ms),
            }
            for each in await parts.clients.secrets(tx, client)
        ]
        return {**parts.plain(client), "secrets": secrets}


async def _rotate_secret(
    config: Path | None, project_id: str, client_id: str
) -> tuple[str, int | None]:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        client = await parts.clients.get(tx, project_id, client_id)
        _, secret, ends_at_ms = await parts.clients.rotate_secret(tx, client)
        await parts.record(tx, "oidc.rotate_client_secret", client)
        return secret, ends_at_ms


async def _delete(config: Path | None, project_id: str, client_id: str) -> None:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        client = await parts.clients.get(tx, project_id, client_id)
        await parts.clients.delete(tx, project_id, client_id)
        await parts.record(tx, "oidc.delete_client", client)


async def _keys(config: Path | None) -> Sequence[SigningKey]:
    async with _opened(config) as parts, parts.db.read() as tx:
        return await parts.keys.list_all(tx)


async def _rotate_keys(config: Path | None) -> Sequence[SigningKey]:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        promoted = {key.key_id for key in await parts.keys.rotate(tx, at_once=True)}
        return [key for key in await parts.keys.list_all(tx) if key.key_id in promoted]


async def _replace_keys(config: Path | None) -> Sequence[SigningKey]:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        return await parts.keys.replace_all(tx)


def _plain_key(key: SigningKey) -> dict[str, str]:
    return {
        "key_id": key.key_id,
        "alg": key.alg,
        "status": key.status,
        "since": to_rfc3339(key.changed_at_ms),
    }


def _as_text(value: object) -> str:
    """A value for a person: lists by their items, and a dash for what there is not."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return json.dumps(value) if isinstance(value, dict) else str(value or "-")
