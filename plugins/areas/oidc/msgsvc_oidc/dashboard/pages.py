"""Pages: clients, one client with its secrets and redirect URIs, its sign-ins and sign-outs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.kernel.json import to_json
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.clients.models import ClientQuery, CreateOidcClientBody, UpdateOidcClientBody
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.dashboard import forms, labels
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.models import SIGNED_IN
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.clients import Client, SecretMethod
from msgsvc_oidc.protocol.redirect_differences import compare
from msgsvc_oidc.settings import OidcSettings

#: Characters of a pasted redirect URI that are looked at; a whole request may be around it.
MAX_PASTED = 8000

pages = Pages("oidc", package="msgsvc_oidc.dashboard")


@pages.get(
    "/oidc",
    access="project:read",
    nav=Nav("OpenID clients", icon="plug", group="sign_in", order=30),
)
async def clients(page: PageContext, all_clients: Clients, issuers: Issuers) -> Render:
    query = validate(ClientQuery, _asked(page))
    found = await all_clients.page(page.tx, page.project_id, query)
    shown, following = query.cut(found, lambda client: client.client_id)
    values = {
        "clients": shown,
        "older": following and page.url("/oidc", cursor=following),
        "issuer": issuers.url(page.project_id),
    }
    return Render("clients.html", values)


@pages.get("/oidc/new", access="project:write")
async def new_client(page: PageContext, all_clients: Clients, settings: OidcSettings) -> Render:
    others = await all_clients.list_all(page.tx, page.project_id)
    return Render("edit.html", _form(page, None, others, settings))


@pages.post(
    "/oidc/new",
    access="project:write",
    form_page=new_client,
    title=lambda _: _("OpenID client created"),
)
async def create_client(page: PageContext, all_clients: Clients, issuers: Issuers) -> Render:
    body = validate(CreateOidcClientBody, forms.new_client(page))
    new = await all_clients.create(page.tx, page.project_id, body)
    page.note(client_id=new.client.client_id)
    return _created(page, new.client, new.secret, issuers)


@pages.get("/oidc/{client_id}", access="project:read")
async def client(page: PageContext, all_clients: Clients, issuers: Issuers) -> Render:
    found = await _client(page, all_clients)
    issuer = issuers.url(page.project_id)
    values = {
        "client": found,
        "issuer": issuer,
        "secrets": await all_clients.secrets(page.tx, found),
        "checked": _checked(page, all_clients, found),
        "scopes": [text for name, text in labels.scopes(page._) if name in found.scopes],
        "grant_types": [
            text for name, text in labels.grant_types(page._) if name in found.grant_types
        ],
        "proofs": [text for name, text in labels.identities(page._) if name in found.must_prove],
        "auth_method": dict(labels.auth_methods(page._))[found.auth_method],
        "callers": [
            each
            for each in await all_clients.list_all(page.tx, page.project_id)
            if each.client_id in found.introspects
        ],
    }
    return Render("client.html", values)


@pages.get("/oidc/{client_id}/edit", access="project:write")
async def edit_client(page: PageContext, all_clients: Clients, settings: OidcSettings) -> Render:
    found = await _client(page, all_clients)
    every = await all_clients.list_all(page.tx, page.project_id)
    others = [each for each in every if each.client_id != found.client_id]
    return Render("edit.html", _form(page, found, others, settings))


@pages.post(
    "/oidc/{client_id}/edit",
    access="project:write",
    form_page=edit_client,
    title=lambda _: _("OpenID client changed"),
)
async def change_client(page: PageContext, all_clients: Clients) -> Redirect:
    body = validate(UpdateOidcClientBody, forms.changes(page))
    client_id = page.params["client_id"]
    await all_clients.change(page.tx, page.project_id, client_id, body)
    return Redirect(page.url(f"/oidc/{client_id}"), page._("Saved."))


@pages.post(
    "/oidc/{client_id}/secrets",
    access="project:write",
    title=lambda _: _("Secret of an OpenID client rotated"),
)
async def rotate_client_secret(page: PageContext, all_clients: Clients, issuers: Issuers) -> Render:
    found = await _client(page, all_clients)
    _, secret, until_ms = await all_clients.rotate_secret(page.tx, found)
    return _created(page, found, secret, issuers, until_ms)


@pages.post(
    "/oidc/{client_id}/secrets/{secret_id}/delete",
    access="project:write",
    title=lambda _: _("Secret of an OpenID client deleted"),
)
async def delete_client_secret(page: PageContext, all_clients: Clients) -> Redirect:
    found = await _client(page, all_clients)
    await all_clients.delete_secret(page.tx, found, page.params["secret_id"])
    return Redirect(page.url(f"/oidc/{found.client_id}"), page._("Deleted."))


@pages.post(
    "/oidc/{client_id}/delete", access="project:write", title=lambda _: _("OpenID client deleted")
)
async def delete_client(page: PageContext, all_clients: Clients) -> Redirect:
    await all_clients.delete(page.tx, page.project_id, page.params["client_id"])
    return Redirect(page.url("/oidc"), page._("Deleted."))


@pages.get("/oidc/{client_id}/sign-ins", access="project:read")
async def sign_ins(
    page: PageContext, all_clients: Clients, journal: SignInJournal, subscribers: Subscribers
) -> Render:
    found = await _client(page, all_clients)
    query = validate(PageQuery, _asked(page))
    entries = await journal.page(page.tx, page.project_id, found.client_id, query)
    shown, following = query.cut(entries, lambda entry: entry.entry_id)
    people = await subscribers.get_many(
        page.tx,
        [(page.project_id, each.subscriber_id) for each in shown if each.subscriber_id],
    )
    values = {
        "client": found,
        "entries": [
            (
                each,
                labels.sign_in_failure(page._, each.outcome),
                people.get((page.project_id, each.subscriber_id or "")),
            )
            for each in shown
        ],
        "signed_in": SIGNED_IN,
        "flows": labels.flows(page._),
        "older": following and page.url(f"/oidc/{found.client_id}/sign-ins", cursor=following),
    }
    return Render("sign_ins.html", values)


@pages.get("/oidc/{client_id}/logouts", access="project:read")
async def logouts(page: PageContext, all_clients: Clients, deliveries: LogoutDeliveries) -> Render:
    found = await _client(page, all_clients)
    query = validate(PageQuery, _asked(page))
    logged = await deliveries.page(page.tx, page.project_id, found.client_id, query)
    shown, following = query.cut(logged, lambda each: each.delivery_id)
    values = {
        "client": found,
        "deliveries": shown,
        "failure": partial(labels.failure, page._),
        "statuses": labels.statuses(page._),
        "tones": labels.STATUS_TONES,
        "older": following and page.url(f"/oidc/{found.client_id}/logouts", cursor=following),
    }
    return Render("logouts.html", values)


async def _client(page: PageContext, all_clients: Clients) -> Client:
    return await all_clients.get(page.tx, page.project_id, page.params["client_id"])


def _asked(page: PageContext) -> dict[str, Any]:
    return {"limit": 50, "cursor": page.query.get("cursor") or None}


def _created(
    page: PageContext,
    found: Client,
    secret: str | None,
    issuers: Issuers,
    old_until_ms: int | None = None,
) -> Render:
    values = {
        "client": found,
        "secret": secret,
        "issuer": issuers.url(page.project_id),
        "old_until_ms": old_until_ms,
    }
    return Render("created.html", values)


def _form(
    page: PageContext, found: Client | None, others: Sequence[Client], settings: OidcSettings
) -> dict[str, Any]:
    return {
        "client": found,
        "jwks": to_json(dict(found.jwks)) if found and found.jwks else "",
        "chosen": forms.chosen(page, found),
        "scopes": labels.scopes(page._),
        "grant_types": labels.grant_types(page._),
        "identities": labels.identities(page._),
        "auth_methods": [
            (name, text)
            for name, text in labels.auth_methods(page._)
            if found is None or name in get_args(SecretMethod)
        ],
        "others": [(each.client_id, each.name) for each in others],
        "signing_algs": [(alg, alg) for alg in ("RS256", "ES256", "EdDSA")],
        "signing_alg": settings.signing_alg,
    }


def _checked(page: PageContext, all_clients: Clients, found: Client) -> dict[str, Any] | None:
    """What the checker says of the redirect URI that was pasted; None if none was."""
    pasted = page.query.get("redirect_uri", "")[:MAX_PASTED].strip()
    if not pasted:
        return None
    compared = compare(found.redirect_uris, pasted, any_port=found.is_public)
    return {
        "pasted": pasted,
        "compared": compared,
        "texts": [labels.difference_text(page._, each) for each in compared.differences],
        "problem": all_clients.redirect_problem(found, compared.sent),
    }
