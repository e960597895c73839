"""The plugin's objects one by one, built from fakes."""

from dataclasses import dataclass, replace
from types import ModuleType

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeSignIns, FakeTx
from msgsvc_oidc import plugin
from msgsvc_oidc.authorization.browser_sessions import BrowserSessions
from msgsvc_oidc.authorization.consent_pages import ConsentPages
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.endings import RequestEndings
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.issuing import CodeIssuer
from msgsvc_oidc.authorization.models import ClientRedirect, PendingRequest, SignInNeeded
from msgsvc_oidc.authorization.pages import AuthorizationPages
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.authorization.questions import ConsentQuestions
from msgsvc_oidc.authorization.reading import RequestReader
from msgsvc_oidc.authorization.rendering import ConsentTemplates
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.authorization.sign_in_pages import SignInPages
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.clients.models import ClientBody
from msgsvc_oidc.clients.remote_keys import RemoteKeys
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.consents.service import NOTIFY_PERMISSION, Consents
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.endpoints.client_access import ClientAccess, RequestLimit
from msgsvc_oidc.endpoints.metadata import MetadataEndpoints
from msgsvc_oidc.endpoints.token import TokenEndpoints
from msgsvc_oidc.endpoints.userinfo import UserinfoEndpoint
from msgsvc_oidc.grants.references import AccessToken, References
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.jobs import OidcJobs
from msgsvc_oidc.journal.failures import FailedRequests
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.people import People
from msgsvc_oidc.polling.service import Polls
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.token import Grant, RefreshRequest, Replayed, check_refresh
from msgsvc_oidc.sessions.service import Sessions
from msgsvc_oidc.settings import OidcSettings

BASE_URL = "https://msgsvc.example"
CALLBACK = "https://app.example/callback"

#: An id of the right shape.
GRANT_ID = "gra_" + "0" * 22

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

GRANT = Grant(
    project_id=PROJECT,
    grant_id=GRANT_ID,
    client_id="app_1",
    subscriber_id="sub_1",
    subject="sub_1",
    scopes=("openid",),
    auth_time_ms=0,
    method="button",
    created_at_ms=0,
)


class Ended:
    """Notes the sessions that are to end."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def end_in(self, tx: Tx, project_id: str, session_id: str) -> None:
        self.ended.append(session_id)


@dataclass
class Parts:
    """The plugin's objects on fakes of the core."""

    core: FakeContext

    def __post_init__(self) -> None:
        core, settings = self.core, self.core.settings(OidcSettings)
        self.references = References(core.secrets)
        self.issuers = Issuers(
            clock=core.clock, db=core.db, projects=core.projects, base_url=BASE_URL
        )
        self.keys = SigningKeys(
            clock=core.clock, db=core.db, secrets=core.secrets, settings=settings
        )
        self.clients = Clients(
            clock=core.clock,
            db=core.db,
            settings=settings,
            remote_keys=RemoteKeys(clock=core.clock, jobs=core.jobs),
        )
        self.journal = SignInJournal(clock=core.clock)
        self.grants = Grants(
            clock=core.clock,
            db=core.db,
            settings=settings,
            references=self.references,
            keys=self.keys,
        )
        self.consents = Consents(
            clock=core.clock,
            grants=self.grants,
            logouts=LogoutDeliveries(clock=core.clock, jobs=core.jobs),
            subscribers=core.subscribers,
            permissions=core.permissions,
            texts=core.texts,
        )
        self.sessions = Sessions(clock=core.clock, settings=settings, references=self.references)
        self.pushed = PushedRequests(
            clock=core.clock, db=core.db, references=self.references, lifetime_s=90
        )
        self.expected = ExpectedPeople(
            db=core.db, issuers=self.issuers, keys=self.keys, grants=self.grants
        )
        self.reader = RequestReader(
            clients=self.clients, pushed=self.pushed, expected=self.expected
        )
        self.failed = FailedRequests(db=core.db, limiter=core.limiter, journal=self.journal)
        self.access = ClientAccess(
            issuers=self.issuers,
            clients=self.clients,
            limiter=core.limiter,
            failures_per_minute=1,
            failed=self.failed,
        )
        self.limit = RequestLimit(limiter=core.limiter, per_minute=1)
        self.cookies = BrowserCookies(
            issuers=self.issuers, sessions=self.sessions, references=self.references
        )
        self.templates = ConsentTemplates(core.texts)
        self.responses = BrowserResponses(
            issuers=self.issuers,
            texts=core.texts,
            settings=settings,
            cookies=self.cookies,
            templates=self.templates,
        )
        self.sign_in_pages = SignInPages(
            issuers=self.issuers, sign_ins=core.peers.sign_ins, channels=core.channels
        )
        self.issuer = CodeIssuer(
            issuers=self.issuers, consents=self.consents, grants=self.grants, journal=self.journal
        )
        self.polls = Polls(
            clock=core.clock, consents=self.consents, grants=self.grants, journal=self.journal
        )
        self.devices = DeviceRequests(
            clock=core.clock,
            db=core.db,
            secrets=core.secrets,
            settings=settings,
            references=self.references,
            journal=self.journal,
        )
        self.endings = RequestEndings(codes=self.issuer, devices=self.devices)
        self.authorizations = Authorizations(
            clock=core.clock,
            db=core.db,
            lifetime_s=900,
            clients=self.clients,
            sessions=BrowserSessions(sessions=self.sessions, endings=Ended()),
            consents=self.consents,
            pages=self.sign_in_pages,
            endings=self.endings,
        )
        self.questions = ConsentQuestions(
            db=core.db,
            projects=core.projects,
            subscribers=core.subscribers,
            clients=self.clients,
            authorizations=self.authorizations,
        )


@pytest.fixture
def core() -> FakeContext:
    declared: ModuleType = plugin
    return plugin_context(plugin=declared, settings=[OidcSettings()])


@pytest.fixture
def parts(core: FakeContext) -> Parts:
    return Parts(core)


def request_of(address: str = "203.0.113.7", **headers: str) -> Request:
    """A request of a browser."""
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "client": (address, 50000),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "path_params": {"project_id": PROJECT, "request_id": "oar_1"},
        }
    )


def test_a_token_of_another_project_is_not_read(parts: Parts) -> None:
    token = AccessToken(GRANT_ID, 1000, ("openid", "phone"))
    text = parts.references.access_token(PROJECT, token)

    assert parts.references.read_access_token(PROJECT, text) == token
    assert parts.references.access_token(PROJECT, token) != text
    assert parts.references.read_access_token("prj_other", text) is None


@pytest.mark.parametrize("changed", ["x", "", ".", "gra_1", "a" * 10_000])
def test_a_changed_token_is_not_read(parts: Parts, changed: str) -> None:
    text = parts.references.code(PROJECT, GRANT_ID)

    assert parts.references.read_code(PROJECT, text + changed) == (None if changed else GRANT_ID)
    assert parts.references.read_code(PROJECT, changed) is None


def test_a_code_is_no_token_and_a_token_no_code(parts: Parts) -> None:
    code = parts.references.code(PROJECT, GRANT_ID)
    token = parts.references.access_token(PROJECT, AccessToken(GRANT_ID, 1000, ("openid",)))

    assert parts.references.read_access_token(PROJECT, code) is None
    assert parts.references.read_refresh_token(PROJECT, code) is None
    assert parts.references.read_code(PROJECT, token) is None


async def test_what_is_no_project_has_no_issuer(parts: Parts) -> None:
    assert parts.issuers.url("prj_1") == f"{BASE_URL}/oidc/prj_1"
    with pytest.raises(NotFound):
        await parts.issuers.project("_static")


async def test_a_client_with_a_loose_redirect_uri_is_refused(parts: Parts) -> None:
    body = ClientBody(name="Grafana", redirect_uris=["https://*.app.example/callback"])

    with pytest.raises(ValidationFailed, match="wildcard"):
        await parts.clients.create(FakeTx(), PROJECT, body)


async def test_a_client_that_nobody_knows_is_refused(parts: Parts) -> None:
    parts.core.db.answers.append([])

    assert await parts.clients.find(PROJECT, "app_2") is None


async def test_an_expired_access_token_is_refused_without_a_query(parts: Parts) -> None:
    token = AccessToken(GRANT_ID, parts.core.clock.now_ms() // 1000, ("openid",))
    text = parts.references.access_token(PROJECT, token)

    with pytest.raises(OAuthError, match="expired"):
        await parts.grants.find_by_access_token(PROJECT, text)


async def test_agreeing_to_messages_grants_the_project_permission(parts: Parts) -> None:
    person = parts.core.subscribers.person()
    await parts.consents.allow_messages(FakeTx(), CLIENT, person.subscriber_id, agreed=True)

    found = await parts.core.subscribers.get(FakeTx(), PROJECT, person.subscriber_id)
    assert found.permissions == (NOTIFY_PERMISSION,)


def test_without_an_interval_no_refresh_is_a_repetition_whatever_the_clocks_say() -> None:
    rotated = replace(
        GRANT,
        refresh_number=2,
        refreshed_at_ms=1001,
        refresh_expires_at_ms=9000,
        scopes=("openid",),
    )
    request = RefreshRequest(project_id=PROJECT, client_id="app_1", grant_id=GRANT_ID, number=1)

    assert check_refresh(rotated, request, 1000, reuse_ms=1) == (rotated, False)
    with pytest.raises(Replayed):
        check_refresh(rotated, request, 1000, reuse_ms=0)


async def test_a_reference_of_a_browser_is_of_its_project(parts: Parts) -> None:
    session_id = "sid_" + "0" * 22
    held = parts.sessions.reference(PROJECT, session_id)

    assert parts.sessions.read(PROJECT, held) == session_id
    assert parts.sessions.read("prj_other", held) is None
    assert await parts.sessions.get(FakeTx(), PROJECT, None) is None


async def test_the_journal_says_why_a_sign_in_failed(parts: Parts) -> None:
    tx = FakeTx()
    await parts.journal.failed(tx, CLIENT, "code", RedirectError("access_denied", "no"))

    [entry] = tx.rows["oidc_sign_ins"]
    assert (entry["client_id"], entry["outcome"], entry["detail"]) == (
        "app_1",
        "access_denied",
        "no",
    )


async def test_a_flood_of_failures_is_no_flood_of_rows(parts: Parts) -> None:
    for _ in range(40):
        await parts.failed.record(CLIENT, "token", OAuthError("invalid_client", "no"))

    assert len(parts.core.db.rows["oidc_sign_ins"]) == 30


async def test_an_address_that_asks_too_often_has_to_wait(parts: Parts) -> None:
    await parts.limit.count(request_of())

    with pytest.raises(RateLimitProject):
        await parts.limit.count(request_of())
    await parts.limit.count(request_of("198.51.100.9"))


async def test_a_request_that_names_no_client_is_refused(parts: Parts) -> None:
    project = await parts.core.projects.add(FakeTx(), "Shop")
    request = request_of()
    request.scope["path_params"] = {"project_id": project.project_id}

    with pytest.raises(OAuthError, match="does not say who it is"):
        await parts.access.authenticate(request, Parameters([]))


async def test_a_person_who_was_erased_has_no_claims(parts: Parts) -> None:
    people = People(
        db=parts.core.db, subscribers=parts.core.subscribers, contacts=parts.core.contacts
    )

    with pytest.raises(OAuthError, match="no longer known"):
        await people.get(GRANT)


async def test_the_sign_in_page_names_the_client_and_comes_back_to_the_issuer(
    parts: Parts,
) -> None:
    sign_ins = parts.core.peers.sign_ins
    assert isinstance(sign_ins, FakeSignIns)
    await parts.sign_in_pages.open(FakeTx(), CLIENT, PENDING)

    asked = sign_ins.latest.request
    assert isinstance(asked, PageSignIn)
    assert (asked.requester_name, asked.requester_url) == ("Grafana", CALLBACK)
    assert asked.return_url == f"{BASE_URL}/oidc/{PROJECT}/return"
    assert not asked.number_matching


async def test_a_code_of_another_request_is_not_taken(parts: Parts) -> None:
    sign_ins, person = parts.core.peers.sign_ins, parts.core.subscribers.person()
    await parts.sign_in_pages.open(FakeTx(), CLIENT, PENDING)
    code = sign_ins.confirm(sign_ins.latest.session_id, person, "button")

    with pytest.raises(UnusableRequest):
        await parts.sign_in_pages.exchange(FakeTx(), PROJECT, "oar_2", code)


async def test_a_code_goes_to_the_client_with_its_state_and_the_issuer(parts: Parts) -> None:
    redirect = await parts.issuer.issue(FakeTx(), CLIENT, REQUEST, SESSION, agreed=True)

    assert redirect.redirect_uri == CALLBACK
    assert redirect.parameters["state"] == "s"
    assert redirect.parameters["iss"] == parts.issuers.url(PROJECT)
    assert parts.references.read_code(PROJECT, redirect.parameters["code"]) is not None


async def test_a_browser_without_a_session_goes_to_the_sign_in_page(parts: Parts) -> None:
    outcome = await parts.authorizations.begin(CLIENT, REQUEST, None)

    assert isinstance(outcome, SignInNeeded)


async def test_a_question_needs_the_session_of_its_request(parts: Parts) -> None:
    parts.core.db.answers.append([])

    with pytest.raises(UnusableRequest):
        await parts.questions.get(PROJECT, "oar_1", "sid_1")


def test_cookies_are_only_for_this_host(parts: Parts) -> None:
    response = Response()
    parts.cookies.set_session(response, PROJECT, "sid_" + "0" * 22, 60)
    parts.cookies.set_started(response, PROJECT, "oar_" + "0" * 22, 60)

    session, started = response.headers.getlist("set-cookie")
    assert session.startswith("__Host-msgsvc-oidc-sid-")
    assert {"HttpOnly", "Path=/", "SameSite=none", "Secure"} <= set(session.split("; "))
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(started.split("; "))


def test_an_error_for_the_developer_is_escaped(parts: Parts) -> None:
    page = parts.responses.problem(request_of(), UnusableRequest("<script>"))

    assert page.status_code == 400
    assert b"&lt;script&gt;" in page.body
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_an_answer_by_post_is_a_form_that_posts_itself(parts: Parts) -> None:
    answer = ClientRedirect(
        redirect_uri=CALLBACK, response_mode="form_post", parameters={"code": "1", "state": '"'}
    )
    page = ConsentTemplates(parts.core.texts).form_post(request_of(), "en", answer)

    assert f'action="{CALLBACK}"'.encode() in page.body
    assert b'name="state" value="&#34;"' in page.body


async def test_pages_of_an_unknown_issuer_are_not_found(parts: Parts) -> None:
    request = request_of()
    request.scope["path_params"] = {"project_id": "nobody", "request_id": "oar_1"}
    authorization = AuthorizationPages(
        issuers=parts.issuers,
        limit=parts.limit,
        reader=parts.reader,
        failed=parts.failed,
        authorizations=parts.authorizations,
        cookies=parts.cookies,
        responses=parts.responses,
    )
    consent = ConsentPages(
        issuers=parts.issuers,
        authorizations=parts.authorizations,
        questions=parts.questions,
        cookies=parts.cookies,
        templates=parts.templates,
        responses=parts.responses,
    )

    shown = [
        await route.endpoint(request)
        for route in [*authorization.routes(), *consent.routes()]
        if isinstance(route, Route)
    ]
    assert [page.status_code for page in shown] == [404, 404, 404]


async def test_endpoints_of_an_unknown_issuer_are_not_found(parts: Parts) -> None:
    request = request_of()
    request.scope["path_params"] = {"project_id": "nobody"}
    metadata = MetadataEndpoints(
        issuers=parts.issuers,
        keys=parts.keys,
        texts=parts.core.texts,
        max_age_s=60,
        registers=False,
    )
    userinfo = UserinfoEndpoint(
        issuers=parts.issuers,
        grants=parts.grants,
        people=People(
            db=parts.core.db, subscribers=parts.core.subscribers, contacts=parts.core.contacts
        ),
    )
    tokens = TokenEndpoints(
        db=parts.core.db,
        issuers=parts.issuers,
        access=parts.access,
        grants=parts.grants,
        references=parts.references,
        sources={},
        failed=parts.failed,
    )

    assert len(tokens.routes()) == 3
    with pytest.raises(NotFound):
        await metadata.document(request)
    with pytest.raises(NotFound):
        await userinfo.userinfo(request)


async def test_keys_are_looked_at_every_hour(parts: Parts) -> None:
    jobs = OidcJobs(
        clock=parts.core.clock, settings=parts.core.settings(OidcSettings), keys=parts.keys
    )

    assert {spec.name: spec.every_s for spec in jobs.specs()} == {
        "oidc.purge": 3600,
        "oidc.rotate_keys": 3600,
    }
