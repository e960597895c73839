"""Backchannel authentication (CIBA Core 1.0) in poll mode: a client has a person asked in their messenger."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.errors import Conflict, RateLimitProject
from msgsvc_core.plugins.sign_ins import AskedSignIn, DirectSignIn, SignInMethod
from msgsvc_core.subscribers.models import UpdateSubscriberBody
from plugins.areas.oidc.tests.conftest import Visitor
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns

CIBA = "urn:openid:params:grant-type:ciba"

#: How a client for backchannel requests is registered.
CIBA_CLIENT: dict[str, Any] = {
    "name": "Bank",
    "redirect_uris": [],
    "home_url": "https://bank.example/",
    "grant_types": [CIBA, "refresh_token"],
    "scopes": ["openid", "profile", "offline_access", "notify"],
}


class AskingSignIns(ScriptedSignIns):
    """Refuses to ask, if the test says so."""

    refusal: Exception | None = None

    async def ask(self, tx: Any, request: DirectSignIn) -> AskedSignIn:
        if self.refusal is not None:
            raise self.refusal
        return await super().ask(tx, request)


@pytest.fixture
def sign_ins(clock: Any) -> ScriptedSignIns:
    return AskingSignIns(clock)


@pytest.fixture
async def bank(register) -> dict[str, Any]:
    return await register(**CIBA_CLIENT)


async def ask(person: Visitor, client: dict[str, Any], **changed: Any) -> httpx2.Response:
    """The client's request. A parameter of None is left out."""
    fields = {"scope": "openid", "login_hint": person.subscriber.subscriber_id, **changed}
    return await person.post(client, "/bc-authorize", **fields)


async def started(person: Visitor, client: dict[str, Any], **changed: Any) -> dict[str, Any]:
    response = await ask(person, client, **changed)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def poll(person: Visitor, client: dict[str, Any], auth_req_id: str) -> httpx2.Response:
    return await person.token(client, grant_type=CIBA, auth_req_id=auth_req_id)


def say_yes(person: Visitor, method: SignInMethod = "button") -> None:
    """The person presses Yes, or the number."""
    person.sign_ins.confirm(person.sign_ins.latest.session_id, person.subscriber, method)


def question(person: Visitor) -> DirectSignIn:
    """What the person was asked last."""
    asked = person.sign_ins.latest.request
    assert isinstance(asked, DirectSignIn)
    return asked


def refusal(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


class TestCibaPoll:
    @pytest.mark.both_databases
    async def test_the_client_gets_tokens_once_the_person_said_yes(self, ann: Visitor, bank, clock):
        body = await started(
            ann, bank, scope="openid profile offline_access", binding_message="Pay 20 EUR, K7P"
        )
        waiting = await poll(ann, bank, body["auth_req_id"])
        clock.advance(3)
        say_yes(ann)
        response = await poll(ann, bank, body["auth_req_id"])
        tokens = response.json()
        person = (await ann.userinfo(tokens["access_token"])).json()
        claims = ann.claims(tokens)

        assert (body["expires_in"], body["interval"]) == (300, 5)
        assert "match_number" not in body
        assert refusal(waiting) == (400, "authorization_pending")
        assert response.headers["Cache-Control"] == "no-store"
        assert claims["sub"] == person["sub"] == ann.subscriber.subscriber_id
        assert (claims["acr"], claims["amr"]) == ("urn:msgsvc:acr:button", ["mca"])
        assert claims["auth_time"] == clock.now_ms() // 1000
        assert (await ann.refresh(bank, tokens["refresh_token"])).status_code == 200

    async def test_the_question_names_the_client_its_message_and_what_it_learns(
        self, ann: Visitor, bank
    ):
        await started(ann, bank, scope="openid profile notify", binding_message="Überweisung 20 €")

        asked = question(ann)
        assert asked.subscriber_id == ann.subscriber.subscriber_id
        assert (asked.requester_name, asked.requester_url) == ("Bank", "https://bank.example/")
        assert asked.text == "Überweisung 20 €"
        assert asked.details == [
            "Bank may then:",
            "• Recognise you when you sign in again",
            "• See your name, user name and language",
            "• Let Shop send you messages",
        ]

    async def test_the_question_is_in_the_language_of_the_person(self, ann: Visitor, bank, service):
        async with service.db.transaction() as tx:
            person = ann.subscriber
            await service.subscribers.change(
                tx, ann.project_id, person.subscriber_id, UpdateSubscriberBody(lang="ru")
            )
        await started(ann, bank)

        assert question(ann).details[0] == "Bank сможет:"

    async def test_what_was_agreed_to_is_not_listed_again(self, ann: Visitor, bank):
        body = await started(ann, bank, scope="openid profile")
        say_yes(ann)
        await poll(ann, bank, body["auth_req_id"])
        await started(ann, bank, scope="openid profile")

        assert question(ann).details == []

    async def test_a_client_of_the_project_itself_needs_no_consent(self, ann: Visitor, register):
        client = await register(**CIBA_CLIENT, first_party=True)
        body = await started(ann, client)
        say_yes(ann)

        assert question(ann).details == []
        assert (await poll(ann, client, body["auth_req_id"])).status_code == 200
        assert await ann.consents() == []

    async def test_yes_is_a_consent_that_is_remembered_and_grants_messages(
        self, ann: Visitor, bank, service
    ):
        body = await started(ann, bank, scope="openid notify")
        before = await ann.consents()
        say_yes(ann)
        await poll(ann, bank, body["auth_req_id"])
        async with service.db.read() as tx:
            person = await service.subscribers.get(tx, ann.project_id, ann.subscriber.subscriber_id)

        assert before == []
        assert await ann.consents() == [("Bank", ("openid", "notify"))]
        assert person.permissions == ("notify",)

    async def test_a_later_yes_does_not_turn_messages_on_again(self, ann: Visitor, bank, service):
        """The question does not name again what was agreed to."""
        person = (ann.project_id, ann.subscriber.subscriber_id)
        for _ in range(2):
            body = await started(ann, bank, scope="openid notify")
            say_yes(ann)
            await poll(ann, bank, body["auth_req_id"])
            async with service.db.transaction() as tx:
                found = await service.subscribers.get(tx, *person)
                await service.subscribers.set_permission(tx, *person, "notify", granted=False)

        assert question(ann).details == []
        assert found.permissions == ()

    async def test_a_client_of_the_project_itself_turns_messages_on_once(
        self, ann: Visitor, register, service
    ):
        own = await register(**CIBA_CLIENT, first_party=True)
        person = (ann.project_id, ann.subscriber.subscriber_id)
        granted = []
        for _ in range(2):
            body = await started(ann, own, scope="openid notify")
            say_yes(ann)
            await poll(ann, own, body["auth_req_id"])
            async with service.db.transaction() as tx:
                found = await service.subscribers.get(tx, *person)
                await service.subscribers.set_permission(tx, *person, "notify", granted=False)
            granted.append(found.permissions)

        assert granted == [("notify",), ()]

    @pytest.mark.parametrize("by", ["acr_values", "client"])
    async def test_a_number_to_match_goes_to_the_client(self, ann: Visitor, register, by: str):
        client = await register(**CIBA_CLIENT, number_matching=by == "client")
        wanted = "urn:msgsvc:acr:number" if by == "acr_values" else None
        body = await started(ann, client, acr_values=wanted)
        say_yes(ann, "number")
        tokens = (await poll(ann, client, body["auth_req_id"])).json()

        assert question(ann).number_matching
        assert body["match_number"] == ann.sign_ins.latest.match_number
        assert ann.claims(tokens)["acr"] == "urn:msgsvc:acr:number"

    async def test_the_person_is_named_by_the_external_id(self, ann: Visitor, bank, service):
        async with service.db.transaction() as tx:
            await service.subscribers.change(
                tx,
                ann.project_id,
                ann.subscriber.subscriber_id,
                UpdateSubscriberBody(external_id="customer 7"),
            )
        await started(ann, bank, login_hint="customer 7")

        assert question(ann).subscriber_id == ann.subscriber.subscriber_id

    async def test_the_person_is_named_by_an_id_token_that_may_have_expired(
        self, ann: Visitor, register, clock
    ):
        client = await register(
            **{**CIBA_CLIENT, "redirect_uris": ["https://app.example/callback"]}
            | {"grant_types": [CIBA, "authorization_code"]}
        )
        id_token = (await ann.tokens(client))["id_token"]
        clock.advance(86_400)
        await started(ann, client, login_hint=None, id_token_hint=id_token)

        assert question(ann).subscriber_id == ann.subscriber.subscriber_id

    async def test_an_id_token_of_another_client_or_changed_is_refused(
        self, ann: Visitor, bank, register
    ):
        id_token = (await ann.tokens(await register()))["id_token"]
        head, payload, _ = id_token.split(".")
        for hint in (id_token, f"{head}.{payload}.", f"e30.{payload}.", "x", "a.b.c"):
            response = await ask(ann, bank, login_hint=None, id_token_hint=hint)

            assert refusal(response) == (400, "invalid_request")

    @pytest.mark.both_databases
    async def test_a_pairwise_client_names_the_person_by_its_own_sub_alone(
        self, ann: Visitor, register, service
    ):
        client = await register(**CIBA_CLIENT, subject_type="pairwise")
        async with service.db.transaction() as tx:
            await service.subscribers.change(
                tx,
                ann.project_id,
                ann.subscriber.subscriber_id,
                UpdateSubscriberBody(external_id="7"),
            )
        body = await started(ann, client, login_hint="7")
        say_yes(ann)
        subject = ann.claims((await poll(ann, client, body["auth_req_id"])).json())["sub"]
        by_id = await ask(ann, client)

        assert subject != ann.subscriber.subscriber_id
        assert refusal(by_id) == (400, "unknown_user_id")
        assert (await ask(ann, client, login_hint=subject)).status_code == 200

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"login_hint": None}, "invalid_request"),
            ({"id_token_hint": "x"}, "invalid_request"),
            ({"login_hint": None, "login_hint_token": "x"}, "invalid_request"),
            ({"login_hint_token": "x"}, "invalid_request"),
            ({"request": "x"}, "invalid_request"),
            ({"user_code": "1234"}, "invalid_request"),
            ({"requested_expiry": "0"}, "invalid_request"),
            ({"requested_expiry": "-5"}, "invalid_request"),
            ({"requested_expiry": "1.5"}, "invalid_request"),
            ({"scope": None}, "invalid_scope"),
            ({"scope": "profile"}, "invalid_scope"),
            ({"binding_message": "x" * 101}, "invalid_binding_message"),
            ({"binding_message": "a\nb"}, "invalid_binding_message"),
            ({"binding_message": "\u202eabc"}, "invalid_binding_message"),
            ({"binding_message": "\u3164 \u3164"}, "invalid_binding_message"),
            ({"login_hint": "sub_" + "0" * 22}, "unknown_user_id"),
            ({"login_hint": "nobody"}, "unknown_user_id"),
            ({"login_hint": " \n"}, "unknown_user_id"),
        ],
    )
    async def test_what_is_wrong_with_a_request_has_a_registered_code(
        self, ann: Visitor, bank, changed: dict[str, Any], error: str
    ):
        assert refusal(await ask(ann, bank, **changed)) == (400, error)
        assert ann.sign_ins.started == {}

    async def test_what_poll_mode_has_no_use_for_is_ignored(self, ann: Visitor, bank):
        assert (await ask(ann, bank, client_notification_token="t" * 40)).status_code == 200

    async def test_a_person_who_can_not_be_asked_is_a_refusal(self, ann: Visitor, bank, sign_ins):
        sign_ins.refusal = Conflict("has blocked the bot")

        assert refusal(await ask(ann, bank)) == (403, "access_denied")

    async def test_too_many_questions_to_one_person_have_to_wait(
        self, ann: Visitor, bank, sign_ins
    ):
        sign_ins.refusal = RateLimitProject("too many", retry_after_s=40)
        response = await ask(ann, bank)

        assert refusal(response) == (429, "temporarily_unavailable")
        assert response.headers["Retry-After"] == "40"

    async def test_a_client_needs_the_grant_type_and_its_secret(self, ann: Visitor, bank, register):
        web = await register()
        named = {"token_endpoint_auth_method": "none", "client_id": bank["client_id"]}

        assert refusal(await ask(ann, web)) == (400, "unauthorized_client")
        assert refusal(await poll(ann, web, "x")) == (400, "unauthorized_client")
        assert refusal(await ask(ann, named)) == (401, "invalid_client")

    async def test_a_public_client_can_not_be_registered_for_it(self, client: httpx2.AsyncClient):
        body = {**CIBA_CLIENT, "token_endpoint_auth_method": "none"}
        response = await client.post("/v1/oidc/clients", json=body)

        assert response.status_code == 400
        assert "CIBA needs a client that authenticates" in response.text

    async def test_the_client_may_shorten_the_time_and_not_extend_it(self, ann: Visitor, bank):
        short = await started(ann, bank, requested_expiry="60")
        lifetime_s = question(ann).lifetime_s
        long = await started(ann, bank, requested_expiry="86400")

        assert (short["expires_in"], lifetime_s, long["expires_in"]) == (60, 60, 300)

    async def test_no_is_told_to_the_client(self, ann: Visitor, bank):
        body = await started(ann, bank)
        ann.sign_ins.deny(ann.sign_ins.latest.session_id)
        polled = [refusal(await poll(ann, bank, body["auth_req_id"])) for _ in range(2)]

        assert polled == [(400, "access_denied")] * 2
        assert await ann.outcomes(bank) == [("ciba", "access_denied")]
        assert await ann.consents() == []

    async def test_a_question_that_nobody_answers_expires(self, ann: Visitor, bank, clock):
        body = await started(ann, bank)
        clock.advance(300)
        polled = [refusal(await poll(ann, bank, body["auth_req_id"])) for _ in range(2)]

        assert polled == [(400, "expired_token")] * 2
        assert await ann.outcomes(bank) == [("ciba", "expired_token")]

    async def test_a_question_that_was_deleted_has_expired(self, ann: Visitor, bank):
        body = await started(ann, bank)
        ann.sign_ins.started.clear()

        assert refusal(await poll(ann, bank, body["auth_req_id"])) == (400, "expired_token")

    @pytest.mark.both_databases
    async def test_early_polls_make_the_client_wait_for_longer(self, ann: Visitor, bank, clock):
        auth_req_id = (await started(ann, bank))["auth_req_id"]
        outcomes = [refusal(await poll(ann, bank, auth_req_id))[1]]
        for wait_s in (5, 2, 8, 15):
            clock.advance(wait_s)
            outcomes.append(refusal(await poll(ann, bank, auth_req_id))[1])

        assert outcomes == [
            "authorization_pending",
            "authorization_pending",
            "slow_down",  # from now on 10 s
            "slow_down",  # 15 s
            "authorization_pending",
        ]

    async def test_an_auth_req_id_works_once(self, ann: Visitor, bank):
        body = await started(ann, bank)
        say_yes(ann)
        tokens = (await poll(ann, bank, body["auth_req_id"])).json()
        again = await poll(ann, bank, body["auth_req_id"])

        assert refusal(again) == (400, "invalid_grant")
        assert (await ann.userinfo(tokens["access_token"])).status_code == 200
        assert await ann.outcomes(bank) == [("ciba", "signed_in")]

    @pytest.mark.parametrize("text", ["bogus", "cib_" + "0" * 22 + "." + "0" * 22, "é"])
    async def test_a_bogus_auth_req_id_gets_no_token(self, ann: Visitor, bank, text: str):
        assert refusal(await poll(ann, bank, text)) == (400, "invalid_grant")

    async def test_another_client_can_neither_use_nor_spoil_it(self, ann: Visitor, bank, register):
        other = await register(**CIBA_CLIENT)
        body = await started(ann, bank)
        say_yes(ann)

        assert refusal(await poll(ann, other, body["auth_req_id"])) == (400, "invalid_grant")
        assert (await poll(ann, bank, body["auth_req_id"])).status_code == 200

    async def test_the_answer_to_another_question_is_not_taken(self, ann: Visitor, bank):
        body = await started(ann, bank)
        say_yes(ann)
        session_id = ann.sign_ins.latest.session_id
        confirmed = ann.sign_ins.latest
        assert confirmed.person is not None
        other = replace(confirmed.person, source_id="cib_other")
        ann.sign_ins.started[session_id] = replace(confirmed, person=other)

        assert refusal(await poll(ann, bank, body["auth_req_id"])) == (400, "access_denied")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_fifty_concurrent_polls_of_a_request_get_one_grant(ann: Visitor, bank):
    body = await started(ann, bank)
    say_yes(ann)

    polls = await asyncio.gather(*(poll(ann, bank, body["auth_req_id"]) for _ in range(50)))

    refused = [refusal(each) for each in polls if each.status_code != 200]
    assert refused == [(400, "invalid_grant")] * 49
