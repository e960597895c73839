"""A client of the provider, and what a browser asks for it."""

from typing import Any

from starlette.requests import Request

from msgsvc_core.db import Tx
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.authorization.models import PendingRequest
from msgsvc_oidc.authorization.sign_in_pages import SignInPages
from msgsvc_oidc.clients.models import CreateOidcClientBody
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.polling.service import Polls
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session
from msgsvc_oidc.protocol.clients import Client

BASE_URL = "https://msgsvc.example"
CALLBACK = "https://app.example/callback"

CLIENT = Client(
    project_id=PROJECT,
    client_id="app_1",
    name="Grafana",
    redirect_uris=(CALLBACK,),
    created_at_ms=0,
)

REQUEST = AuthorizationRequest(
    client_id="app_1", redirect_uri=CALLBACK, response_mode="query", scopes=("openid",), state="s"
)

PENDING = PendingRequest(
    project_id=PROJECT,
    request_id="oar_1",
    client_id="app_1",
    status="begun",
    request=REQUEST,
    session_id=None,
    device_id=None,
    expires_at_ms=900_000,
)

SESSION = Session(session_id="sid_1", subscriber_id="sub_1", auth_time_ms=0, method="button")


async def register(core: MemoryCore, tx: Tx, **fields: Any) -> Client:
    """A client that the project has."""
    body = CreateOidcClientBody(name="Grafana", redirect_uris=[CALLBACK], **fields)
    return (await core.get(Clients).create(tx, PROJECT, body)).client


def polls_of(core: MemoryCore, records: Records) -> Polls:
    return Polls(
        clock=core.clock,
        consents=records.consents,
        grants=records.grants,
        journal=records.journal,
    )


def sign_in_pages(core: MemoryCore, records: Records) -> SignInPages:
    return SignInPages(
        issuers=records.issuers, sign_ins=core.peers.sign_ins, channels=core.channels
    )


def browser_request(address: str = "203.0.113.7", project_id: str = PROJECT) -> Request:
    """A request to an address of the project's issuer."""
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "client": (address, 50000),
            "headers": [],
            "path_params": {"project_id": project_id},
        }
    )
