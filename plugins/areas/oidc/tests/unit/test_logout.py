"""Logout, without a database."""

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Route

from msgsvc_core.events import Event
from msgsvc_core.http_client import CallTimeout, NotConnected
from msgsvc_core.jobs import NewJob
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_devkit import FakeClock, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_oidc import plugin
from msgsvc_oidc.backchannel_logout.jobs import LogoutJobs
from msgsvc_oidc.backchannel_logout.models import LogoutAttempt
from msgsvc_oidc.backchannel_logout.retries import WAITS_S, judge
from msgsvc_oidc.backchannel_logout.sender import LogoutSender, failed_attempt
from msgsvc_oidc.backchannel_logout.service import DELIVER, LogoutDeliveries
from msgsvc_oidc.erasure import SubscriberErasure
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.logout.pages import LogoutPages
from msgsvc_oidc.logout.reading import AskedLogout, LogoutReader
from msgsvc_oidc.logout.rendering import LogoutTemplates
from msgsvc_oidc.logout.service import Logouts
from msgsvc_oidc.protocol.clients import Client, SigningAlg
from msgsvc_oidc.protocol.errors import UnusableRequest
from msgsvc_oidc.protocol.id_token_hint import IdTokenHint, read_hint
from msgsvc_oidc.protocol.keys import Signer, new_private_jwk, public_jwk
from msgsvc_oidc.protocol.logout import (
    EVENT,
    LogoutRequest,
    check_return,
    logout_claims,
    logout_step,
    read_logout,
)
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.settings import OidcSettings
from plugins.areas.oidc.tests.unit.test_parts import Parts

ISSUER = "https://msgsvc.example/oidc/prj_1"
GOODBYE = "https://app.example/goodbye"

CLIENT = Client(
    project_id=PROJECT,
    client_id="app_1",
    name="Grafana",
    post_logout_redirect_uris=(GOODBYE,),
    backchannel_logout_uri="https://app.example/logout",
    created_at_ms=0,
)

HINT = IdTokenHint(client_id="app_1", subject="sub_1", session_id="sid_1")

PRIVATE = new_private_jwk("ES256", "key_1")

ID_TOKEN = {"iss": ISSUER, "aud": "app_1", "sub": "sub_1", "sid": "sid_1", "exp": 1}

DELIVERY: Mapping[str, Any] = {
    "project_id": PROJECT,
    "delivery_id": "old_1",
    "client_id": "app_1",
    "subject": "sub_1",
    "session_id": "sid_1",
    "status": "pending",
    "attempts": 0,
    "status_code": None,
    "error": "",
    "created_at_ms": 0,
    "next_attempt_at_ms": 0,
}


def signed(claims: Mapping[str, Any], private: Mapping[str, Any] = PRIVATE) -> str:
    return Signer("ES256", "key_1", private).sign(claims)


def hint_of(token: str) -> IdTokenHint | None:
    return read_hint(token, [public_jwk(PRIVATE)], ISSUER)


def asked(**given: str) -> Parameters:
    return Parameters(list(given.items()))


class TestHints:
    def test_an_expired_id_token_of_ours_is_one(self) -> None:
        assert hint_of(signed(ID_TOKEN)) == HINT

    @pytest.mark.parametrize(
        "claims",
        [
            {**ID_TOKEN, "iss": "https://msgsvc.example/oidc/prj_2"},
            {**ID_TOKEN, "events": {EVENT: {}}},
            {**ID_TOKEN, "aud": ["app_1", "app_2"]},
            {**ID_TOKEN, "sub": None},
        ],
    )
    def test_another_token_of_ours_is_none(self, claims: Mapping[str, Any]) -> None:
        assert hint_of(signed(claims)) is None

    def test_a_token_that_another_signed_is_none(self) -> None:
        assert hint_of(signed(ID_TOKEN, new_private_jwk("ES256", "key_1"))) is None

    @pytest.mark.parametrize("token", ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
    def test_what_is_no_token_is_none(self, token: str) -> None:
        assert hint_of(token) is None


class TestDecisions:
    def test_a_hint_of_the_browsers_session_ends_it(self) -> None:
        request = read_logout(asked(), HINT)

        assert logout_step(request, "sid_1") == "end"
        assert logout_step(request, "sid_2") == "ask"
        assert logout_step(request, None) == "nothing"

    def test_a_hint_without_a_session_asks(self) -> None:
        hint = IdTokenHint(client_id="app_1", subject="sub_1", session_id=None)

        assert logout_step(read_logout(asked(), hint), "sid_1") == "ask"

    def test_the_client_of_the_hint_counts(self) -> None:
        assert read_logout(asked(), HINT).client_id == "app_1"
        with pytest.raises(UnusableRequest, match="not that of id_token_hint"):
            read_logout(asked(client_id="app_2"), HINT)

    def test_a_long_state_is_refused(self) -> None:
        with pytest.raises(UnusableRequest, match="too long"):
            read_logout(asked(state="x" * 2049), None)

    def test_a_registered_uri_is_compared_by_character(self) -> None:
        check_return(read_logout(asked(post_logout_redirect_uri=GOODBYE), HINT), CLIENT)
        for uri in (GOODBYE + "/", GOODBYE + "#x", "https://app.example:443/goodbye"):
            with pytest.raises(UnusableRequest, match="not registered"):
                check_return(read_logout(asked(post_logout_redirect_uri=uri), HINT), CLIENT)

    def test_a_uri_needs_a_client(self) -> None:
        with pytest.raises(UnusableRequest, match="goes with"):
            check_return(read_logout(asked(post_logout_redirect_uri=GOODBYE), None), None)
        with pytest.raises(UnusableRequest, match="not known"):
            check_return(read_logout(asked(client_id="app_2"), None), None)

    def test_a_logout_token_is_never_an_id_token(self) -> None:
        claims = logout_claims(
            issuer=ISSUER,
            client_id="app_1",
            subject="sub_1",
            session_id=None,
            token_id="lgt_1",
            now_ms=5000,
        )

        assert claims["events"] == {EVENT: {}}
        assert (claims["iat"], claims["exp"]) == (5, 125)
        assert claims.keys().isdisjoint({"nonce", "sid", "auth_time"})


class TestRetries:
    @pytest.mark.parametrize(
        ("code", "status"),
        [(200, "delivered"), (204, "delivered"), (400, "failed"), (404, "failed"), (302, "failed")],
    )
    def test_an_answer_ends_it(self, code: int, status: str) -> None:
        assert judge(LogoutAttempt(status_code=code, error=""), 1).status == status

    @pytest.mark.parametrize("code", [500, 503, 408, 425, 429, None])
    def test_what_may_pass_is_tried_again_for_hours_and_not_for_ever(
        self, code: int | None
    ) -> None:
        verdicts = [
            judge(LogoutAttempt(status_code=code, error="x"), number)
            for number in range(1, len(WAITS_S) + 2)
        ]

        assert [verdict.after_s for verdict in verdicts] == [*WAITS_S, None]
        assert verdicts[-1].status == "failed"

    def test_a_client_may_ask_for_a_longer_wait(self) -> None:
        attempt = LogoutAttempt(status_code=503, error="x", retry_after_s=90.0)

        assert judge(attempt, 1).after_s == 90.0
        forever = LogoutAttempt(status_code=503, error="x", retry_after_s=1e12)
        assert judge(forever, 1).after_s == 7200


@pytest.fixture
def parts() -> Parts:
    return Parts(plugin_context(plugin=plugin, settings=[OidcSettings()]))


def deliveries_of(parts: Parts) -> LogoutDeliveries:
    return LogoutDeliveries(clock=parts.core.clock, jobs=parts.core.jobs)


def logouts_of(parts: Parts) -> Logouts:
    return Logouts(
        db=parts.core.db,
        sessions=parts.sessions,
        grants=parts.grants,
        deliveries=deliveries_of(parts),
        references=parts.references,
    )


def sender_of(clock: FakeClock) -> LogoutSender:
    return LogoutSender(clock=clock, guard=OutboundGuard(), timeout_s=5)


def jobs_of(parts: Parts, sender: LogoutSender) -> LogoutJobs:
    return LogoutJobs(
        clock=parts.core.clock,
        db=parts.core.db,
        issuers=parts.issuers,
        clients=parts.clients,
        keys=parts.keys,
        sender=sender,
    )


ENDED = {
    "session_id": "sid_1",
    "subscriber_id": "sub_1",
    "auth_time_ms": 0,
    "method": "button",
    "proves": "account",
}


async def test_a_session_ends_with_its_grants_and_its_clients_hear_of_it(parts: Parts) -> None:
    parts.core.db.replies |= {
        "UPDATE oidc_sessions": [ENDED],
        "UPDATE oidc_grants": 1,
        "SELECT DISTINCT g.client_id": [{"client_id": "app_1", "subject": "sub_1"}],
    }

    await logouts_of(parts).end(PROJECT, "sid_1")

    [row] = parts.core.db.rows["oidc_logout_deliveries"]
    [job] = parts.core.jobs.named(DELIVER)
    assert (row["client_id"], row["session_id"], row["status"]) == ("app_1", "sid_1", "pending")
    assert (job.lane, job.payload) == ("oidc-logout:app_1", {"delivery_id": row["delivery_id"]})


async def test_a_session_that_had_ended_is_told_to_nobody(parts: Parts) -> None:
    parts.core.db.replies["UPDATE oidc_sessions"] = []

    await logouts_of(parts).end(PROJECT, "sid_1")

    assert parts.core.jobs.enqueued == []


def test_a_confirmation_is_of_one_session(parts: Parts) -> None:
    logouts, session_id = logouts_of(parts), "sid_" + "0" * 22
    confirmation = logouts.confirmation(PROJECT, session_id)

    assert logouts.is_confirmed(PROJECT, session_id, confirmation)
    assert not logouts.is_confirmed(PROJECT, "sid_" + "1" * 22, confirmation)
    assert not logouts.is_confirmed("prj_2", session_id, confirmation)
    assert not logouts.is_confirmed(
        PROJECT, session_id, parts.references.make("session", PROJECT, session_id)
    )


async def test_only_an_erased_person_is_signed_out_everywhere(parts: Parts) -> None:
    erasure = SubscriberErasure(
        db=parts.core.db,
        grants=parts.grants,
        deliveries=deliveries_of(parts),
        journal=parts.journal,
    )
    tx = FakeTx(
        replies={
            "SELECT DISTINCT g.client_id": [{"client_id": "app_1", "subject": "sub_9"}],
            "DELETE FROM oidc_grants": 1,
        }
    )

    await erasure.on_events(tx, [deleted("blocked", "sub_1"), deleted("erased", "sub_2")])

    [row] = tx.rows["oidc_logout_deliveries"]
    assert (row["subject"], row["session_id"]) == ("sub_9", None)
    assert [each["subscriber_id"] for each in tx.params_of("DELETE")] == ["sub_2"]


def deleted(reason: str, subscriber_id: str) -> Event:
    return Event(
        event_id="evt_1",
        project_id=PROJECT,
        name="subscription.deleted",
        data={"reason": reason, "subscriber_id": subscriber_id},
        occurred_at_ms=0,
    )


async def test_a_target_of_our_own_network_is_never_called() -> None:
    attempt = await sender_of(FakeClock()).send("https://127.0.0.1/logout", "token")

    assert attempt.is_forbidden
    assert judge(attempt, 1).status == "failed"


async def test_a_name_that_does_not_resolve_tells_no_address() -> None:
    sender = sender_of(FakeClock())
    try:
        attempt = await sender.send("https://nowhere.invalid/logout", "token")
    finally:
        await sender.close()

    assert attempt.error == "the host can't be resolved to public addresses"
    assert not attempt.is_forbidden


class Recording(LogoutSender):
    """Answers by the next of `answers`; `sent` holds URLs and tokens."""

    def __init__(self, *answers: LogoutAttempt) -> None:
        super().__init__(clock=FakeClock(), guard=OutboundGuard(), timeout_s=5)
        self.answers = list(answers)
        self.sent: list[tuple[str, str]] = []

    async def send(self, url: str, token: str) -> LogoutAttempt:
        self.sent.append((url, token))
        return self.answers.pop(0)


def known(parts: Parts, delivery: Mapping[str, Any] = DELIVERY) -> None:
    """The delivery and its client are in the database."""
    client = {name: getattr(CLIENT, name) for name in CLIENT.__dataclass_fields__}
    lists = ("redirect_uris", "post_logout_redirect_uris", "grant_types", "scopes", "must_prove")
    row = {**client, **dict.fromkeys(lists, "[]"), "secret_id": None}
    parts.core.db.replies |= {
        "FROM oidc_logout_deliveries": [delivery],
        "LEFT JOIN oidc_client_secrets": [row],
        "FROM oidc_keys": [],
        "INSERT INTO oidc_keys": 1,
        "UPDATE oidc_logout_deliveries": 1,
    }


JOB = claimed(NewJob(DELIVER, {"delivery_id": "old_1"}, project_id=PROJECT))


async def test_a_failed_attempt_is_planned_again(parts: Parts) -> None:
    known(parts)
    sender, ctx = Recording(LogoutAttempt(status_code=503, error="x")), FakeJobContext()
    ctx.db = parts.core.db
    parts.keys = PlainKeys(parts)

    await jobs_of(parts, sender).deliver(ctx, [JOB])

    [(_, at_ms)] = ctx.rescheduled
    [written] = parts.core.db.params_of("UPDATE oidc_logout_deliveries")
    now_ms = parts.core.clock.now_ms()
    assert now_ms + 2000 <= at_ms <= now_ms + 2200
    assert (written["status"], written["next_attempt_at_ms"]) == ("pending", at_ms)
    assert sender.sent == [("https://app.example/logout", "logout+jwt for app_1")]


class PlainKeys(SigningKeys):
    """Signs in no time."""

    def __init__(self, parts: Parts) -> None:
        core = parts.core
        super().__init__(
            clock=core.clock, db=core.db, secrets=core.secrets, settings=OidcSettings()
        )

    async def sign(self, claims: Mapping[str, Any], alg: SigningAlg, typ: str = "JWT") -> str:
        return f"{typ} for {claims['aud']}"


async def test_a_delivery_that_has_ended_is_not_made_again(parts: Parts) -> None:
    known(parts, {**DELIVERY, "status": "delivered"})
    sender, ctx = Recording(), FakeJobContext()

    await jobs_of(parts, sender).deliver(ctx, [JOB])

    assert sender.sent == []


async def test_a_job_that_failed_for_good_ends_its_delivery(parts: Parts) -> None:
    tx = FakeTx(replies={"UPDATE oidc_logout_deliveries": 1})

    await jobs_of(parts, Recording()).finish_dead(tx, JOB, "no database")

    [written] = tx.params_of("status = 'failed'")
    assert written["error"] == "an error on our side"


def test_failures_are_told_in_words() -> None:
    assert failed_attempt(CallTimeout(sent=True), 5).error == "no complete answer within 5 s"
    assert (
        failed_attempt(NotConnected("x", 443, None), 5).error
        == "could not connect: no reason given"
    )


async def test_an_unknown_client_has_nowhere_to_go(parts: Parts) -> None:
    parts.core.db.replies |= {"FROM oidc_keys": [], "oidc_client_secrets": []}
    reader = LogoutReader(issuers=parts.issuers, clients=parts.clients, keys=parts.keys)

    with pytest.raises(UnusableRequest, match="client_id is not known here"):
        await reader.read(PROJECT, asked(id_token_hint="x", client_id="app_9"))


async def test_an_unknown_issuer_has_no_logout(parts: Parts) -> None:
    templates = LogoutTemplates(parts.core.texts)
    pages = LogoutPages(
        issuers=parts.issuers,
        limit=parts.limit,
        reader=LogoutReader(issuers=parts.issuers, clients=parts.clients, keys=parts.keys),
        logouts=logouts_of(parts),
        cookies=parts.cookies,
        templates=templates,
        responses=parts.responses,
    )

    shown = [
        await route.endpoint(page_request("nobody"))
        for route in pages.routes()
        if isinstance(route, Route)
    ]

    assert [page.status_code for page in shown] == [404, 404]


def test_the_question_escapes_what_the_client_sends(parts: Parts) -> None:
    request = LogoutRequest(client_id="app_1", hint=None, return_uri=None, state='"><script>')
    page = LogoutTemplates(parts.core.texts).question(
        page_request(PROJECT),
        "en",
        AskedLogout(request, CLIENT),
        action="/confirm",
        confirmation="c",
        project_name="Shop",
    )

    assert b"<script>" not in page.body
    assert b"Grafana" in page.body


def page_request(project_id: str) -> Request:
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "client": ("203.0.113.7", 50000),
            "headers": [],
            "path_params": {"project_id": project_id},
        }
    )
