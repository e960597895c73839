"""Logout, and what clients are told of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.plugins.sign_ins import SignedIn
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.backchannel_logout.models import LogoutAttempt, LogoutDelivery
from msgsvc_oidc.backchannel_logout.retries import WAITS_S, classify
from msgsvc_oidc.backchannel_logout.sender import LogoutSender
from msgsvc_oidc.backchannel_logout.service import DELIVER, LogoutDeliveries
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.logout.reading import AskedLogout
from msgsvc_oidc.logout.rendering import LogoutTemplates
from msgsvc_oidc.logout.service import Logouts
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import UnusableRequest
from msgsvc_oidc.protocol.id_token_hint import IdTokenHint, read_hint
from msgsvc_oidc.protocol.keys import Signer, new_private_jwk, public_jwk
from msgsvc_oidc.protocol.logout import (
    EVENT,
    LogoutRequest,
    logout_claims,
    logout_step,
    read_logout,
    return_problem,
)
from msgsvc_oidc.protocol.parameters import Parameters
from plugins.areas.oidc.tests.unit.provider import CLIENT as ANY_CLIENT
from plugins.areas.oidc.tests.unit.provider import REQUEST, browser_request, register

ISSUER = "https://msgsvc.example/oidc/prj_1"
GOODBYE = "https://app.example/goodbye"

CLIENT = replace(ANY_CLIENT, post_logout_redirect_uris=(GOODBYE,))

HINT = IdTokenHint(client_id="app_1", subject="sub_1", session_id="sid_1")

PRIVATE = new_private_jwk("ES256", "key_1")

ID_TOKEN = {"iss": ISSUER, "aud": "app_1", "sub": "sub_1", "sid": "sid_1", "exp": 1}


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
            read_logout(asked(state="x" * 8193), None)

    def test_a_registered_uri_is_compared_by_character(self) -> None:
        registered = read_logout(asked(post_logout_redirect_uri=GOODBYE), HINT)

        assert return_problem(registered, CLIENT) is None
        for uri in (GOODBYE + "/", GOODBYE + "#x", "https://app.example:443/goodbye"):
            request = read_logout(asked(post_logout_redirect_uri=uri), HINT)
            assert "not registered" in str(return_problem(request, CLIENT))

    def test_a_uri_needs_a_client(self) -> None:
        without = read_logout(asked(post_logout_redirect_uri=GOODBYE), None)
        unknown = read_logout(asked(client_id="app_2"), None)

        assert "goes with" in str(return_problem(without, None))
        assert "not known" in str(return_problem(unknown, None))

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
        assert classify(LogoutAttempt(status_code=code, failure=None), 1).status == status

    @pytest.mark.parametrize("code", [500, 503, 408, 425, 429, None])
    def test_what_may_pass_is_tried_again_for_hours_and_not_for_ever(
        self, code: int | None
    ) -> None:
        verdicts = [
            classify(LogoutAttempt(status_code=code, failure=Finding("x")), number)
            for number in range(1, len(WAITS_S) + 2)
        ]

        assert [verdict.after_s for verdict in verdicts] == [*WAITS_S, None]
        assert verdicts[-1].status == "failed"

    def test_a_client_may_ask_for_a_longer_wait(self) -> None:
        attempt = LogoutAttempt(status_code=503, failure=Finding("x"), retry_after_s=90.0)

        assert classify(attempt, 1).after_s == 90.0
        forever = LogoutAttempt(status_code=503, failure=Finding("x"), retry_after_s=1e12)
        assert classify(forever, 1).after_s == 7200


def logouts_of(core: MemoryCore, records: Records) -> Logouts:
    return Logouts(
        db=core.db,
        sessions=records.sessions,
        grants=records.grants,
        deliveries=records.logouts,
        references=records.references,
    )


def test_a_confirmation_is_of_one_session(core: MemoryCore, records: Records) -> None:
    logouts, session_id = logouts_of(core, records), "sid_" + "0" * 22
    confirmation = logouts.confirmation(PROJECT, session_id)

    assert logouts.is_confirmed(PROJECT, session_id, confirmation)
    assert not logouts.is_confirmed(PROJECT, "sid_" + "1" * 22, confirmation)
    assert not logouts.is_confirmed("prj_2", session_id, confirmation)
    assert not logouts.is_confirmed(
        PROJECT, session_id, records.references.make("session", PROJECT, session_id)
    )


# ---- deliveries ---------------------------------------------------------------------------------


async def signed_in(core: MemoryCore, tx: Tx, records: Records) -> tuple[Client, str]:
    """A client with a URL for logout tokens, and the id of a session of Anna's with it."""
    client = await register(core, tx, backchannel_logout_uri="https://app.example/logout")
    person = SignedIn(
        session_id="ses_1",
        source="oidc",
        source_id="oar_1",
        subscriber=await core.person(tx),
        method="button",
        confirmed_at_ms=core.clock.now_ms(),
    )
    session = await records.sessions.open(tx, PROJECT, person)
    await records.grants.issue_code(tx, client, REQUEST, session)
    return client, session.session_id


async def deliveries_of(core: MemoryCore, client: Client) -> list[LogoutDelivery]:
    """The logout tokens that a client gets, newest first."""
    async with core.db.read() as tx:
        query = PageQuery(limit=10)
        return list(await core.get(LogoutDeliveries).page(tx, PROJECT, client.client_id, query))


async def test_only_an_erased_person_is_signed_out_everywhere(
    core: MemoryCore, records: Records
) -> None:
    async with core.db.transaction() as tx:
        client, _ = await signed_in(core, tx, records)
        await core.subscribers.block(tx, "messenger_a", "1", reason="blocked")
    blocked = await deliveries_of(core, client)
    async with core.db.transaction() as tx:
        await core.subscribers.erase(tx, PROJECT, "sub_1")

    assert blocked == []
    [delivery] = await deliveries_of(core, client)
    assert (delivery.subject, delivery.session_id) == ("sub_1", None)


class ScriptedClient:
    """Answers by the next of `answers`; `called` has the URLs."""

    def __init__(self) -> None:
        self.answers: list[LogoutAttempt] = []
        self.called: list[str] = []

    async def send(self, url: str, _token: str) -> LogoutAttempt:
        self.called.append(url)
        return self.answers.pop(0)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedClient:
    """Called instead of the clients' URLs."""
    scripted = ScriptedClient()
    monkeypatch.setattr(LogoutSender, "send", lambda _, *given: scripted.send(*given))
    return scripted


async def signed_out(core: MemoryCore, records: Records) -> tuple[Client, Job]:
    """A client whose session has ended, and the job that tells it so."""
    async with core.db.transaction() as tx:
        client, session_id = await signed_in(core, tx, records)
    await logouts_of(core, records).end(PROJECT, session_id)
    async with core.db.read() as tx:
        [job] = await core.jobs_named(tx, DELIVER)
    return client, job


async def test_a_failed_attempt_is_planned_again(
    core: MemoryCore, records: Records, scripted: ScriptedClient
) -> None:
    client, job = await signed_out(core, records)
    scripted.answers.append(LogoutAttempt(status_code=503, failure=Finding("x")))
    ctx = await core.run(job)

    [(_, at_ms)] = ctx.rescheduled
    now_ms = core.clock.now_ms()
    assert at_ms is not None
    assert now_ms + 2000 <= at_ms <= now_ms + 2200
    [delivery] = await deliveries_of(core, client)
    assert (delivery.status, delivery.next_attempt_at_ms) == ("pending", at_ms)
    assert scripted.called == ["https://app.example/logout"]


async def test_a_delivery_that_has_ended_is_not_made_again(
    core: MemoryCore, records: Records, scripted: ScriptedClient
) -> None:
    client, job = await signed_out(core, records)
    scripted.answers.append(LogoutAttempt(status_code=200, failure=None))
    await core.run(job)
    await core.run(job)

    assert len(scripted.called) == 1
    [delivery] = await deliveries_of(core, client)
    assert (delivery.status, delivery.attempts) == ("delivered", 1)


async def test_a_job_that_failed_for_good_ends_its_delivery(
    core: MemoryCore, records: Records
) -> None:
    client, job = await signed_out(core, records)
    [spec] = [each for each in core.service.job_specs if each.name == DELIVER]
    assert spec.on_dead is not None
    async with core.db.transaction() as tx:
        await spec.on_dead(tx, job, "no database")

    [delivery] = await deliveries_of(core, client)
    assert (delivery.status, delivery.error) == ("failed", "an error on our side")


# ---- calls --------------------------------------------------------------------------------------


def sender_of(clock: FakeClock) -> LogoutSender:
    return LogoutSender(clock=clock, guard=OutboundGuard(), timeout_s=5)


async def test_a_target_of_our_own_network_is_never_called() -> None:
    attempt = await sender_of(FakeClock()).send("https://127.0.0.1/logout", "token")

    assert attempt.is_forbidden
    assert classify(attempt, 1).status == "failed"


async def test_a_name_that_does_not_resolve_tells_no_address() -> None:
    sender = sender_of(FakeClock())
    try:
        attempt = await sender.send("https://nowhere.invalid/logout", "token")
    finally:
        await sender.close()

    assert str(attempt.failure) == "the host can't be resolved to public addresses"
    assert not attempt.is_forbidden


# ---- pages --------------------------------------------------------------------------------------


def test_the_question_escapes_what_the_client_sends(core: MemoryCore) -> None:
    request = LogoutRequest(client_id="app_1", hint=None, return_uri=None, state='"><script>')
    page = LogoutTemplates(core.texts).question(
        browser_request(),
        "en",
        AskedLogout(request, CLIENT),
        action="/confirm",
        confirmation="c",
        project_name="Shop",
    )

    assert b"<script>" not in page.body
    assert b"Grafana" in page.body
