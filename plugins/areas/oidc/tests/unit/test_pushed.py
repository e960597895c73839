"""Pushed authorization requests, without a database."""

import pytest
from starlette.requests import Request

from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fakes import PROJECT, FakeDatabase, FakeJobQueue, fake_secrets
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.authorization.pushed_endpoint import PushedEndpoint
from msgsvc_oidc.authorization.reading import RequestReader
from msgsvc_oidc.clients.remote_keys import RemoteKeys
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.authorize import AuthorizationRequest
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.pushed import read_pushed
from msgsvc_oidc.settings import OidcSettings

CALLBACK = "https://app.example/callback"

CLIENT = Client(
    project_id=PROJECT,
    client_id="app_1",
    name="Grafana",
    redirect_uris=(CALLBACK,),
    require_pushed=True,
    created_at_ms=0,
)

REQUEST = {"response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}


def parameters_of(**changed: str) -> Parameters:
    return Parameters(list({**REQUEST, **changed}.items()))


def pushed_requests(db: FakeDatabase) -> PushedRequests:
    return PushedRequests(
        clock=FakeClock(), db=db, references=References(fake_secrets()), lifetime_s=90
    )


class Anybody(ExpectedPeople):
    """No request has an ID token as a hint."""

    def __init__(self) -> None:
        """Needs nothing."""

    async def resolve(
        self, client: Client, request: AuthorizationRequest, token: str | None
    ) -> AuthorizationRequest:
        assert token is None
        return request


def reader_of(db: FakeDatabase) -> RequestReader:
    clock = FakeClock()
    keys = RemoteKeys(clock=clock, jobs=FakeJobQueue(clock))
    clients = Clients(clock=clock, db=db, settings=OidcSettings(), remote_keys=keys)
    return RequestReader(clients=clients, pushed=pushed_requests(db), expected=Anybody())


async def test_the_client_gets_a_reference_that_tells_nothing_of_the_request():
    db = FakeDatabase()

    pushed = await pushed_requests(db).push(CLIENT, read_pushed(parameters_of(), CLIENT))

    [row] = db.rows["oidc_requests"]
    assert (row["status"], row["client_id"]) == ("pushed", "app_1")
    assert row["request_id"] in pushed.request_uri
    assert CALLBACK not in pushed.request_uri


async def test_a_reference_is_read_by_a_conditional_update_of_its_client():
    db = FakeDatabase(replies={"UPDATE oidc_requests": []})
    requests = pushed_requests(db)
    pushed = await requests.push(CLIENT, read_pushed(parameters_of(), CLIENT))

    with pytest.raises(RedirectError, match="invalid_request_uri"):
        await requests.take(CLIENT, pushed.request_uri)

    [params] = db.params_of("UPDATE oidc_requests")
    assert params["client_id"] == "app_1"


async def test_a_made_up_reference_costs_no_statement():
    db = FakeDatabase()

    with pytest.raises(UnusableRequest, match="invalid_request_uri"):
        await reader_of(db).pushed(
            CLIENT, Parameters([("request_uri", "urn:ietf:params:oauth:request_uri:x")])
        )

    assert db.statements == []


async def test_a_request_without_a_reference_is_not_a_pushed_one():
    reader = reader_of(FakeDatabase())

    assert await reader.pushed(CLIENT, parameters_of()) is None
    assert await reader.pushed(CLIENT, parameters_of(request_uri="https://a.example/")) is None


async def test_a_client_that_must_push_is_refused_at_the_authorization_endpoint():
    reader = reader_of(FakeDatabase())
    path = reader.return_path(CLIENT, parameters_of(response_mode="fragment"))

    with pytest.raises(RedirectError, match="must push"):
        await reader.read(CLIENT, parameters_of(), path.redirect_uri)

    assert (path.response_mode, path.state) == ("query", "s")


def test_a_pushed_request_can_name_no_other():
    with pytest.raises(OAuthError, match="can't be pushed"):
        read_pushed(parameters_of(request_uri="urn:x"), CLIENT)


class KnownClient:
    """Whoever asks is `CLIENT`."""

    async def authenticate(self, request: Request, parameters: Parameters) -> Client:
        return CLIENT


async def test_a_refused_request_is_in_the_journal():
    db = FakeDatabase()
    limit = RequestLimit(limiter=MemoryLimiter(FakeClock()), per_minute=5)
    journal, pushed = SignInJournal(clock=FakeClock()), pushed_requests(db)
    pages = PushedEndpoint(
        db=db,
        access=KnownClient(),
        limit=limit,
        journal=journal,
        pushed=pushed,
        expected=Anybody(),
    )

    with pytest.raises(OAuthError, match="response_type is missing"):
        await pages.push(form_request(b"redirect_uri=https://app.example/callback"))

    [entry] = db.rows["oidc_sign_ins"]
    assert entry["outcome"] == "invalid_request"


def form_request(body: bytes) -> Request:
    """A POST of a form."""
    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)
