"""Device authorization (RFC 8628), from the device's codes to its tokens."""

import asyncio
import re
from typing import Any

import pytest

from msgsvc_core.kernel.hooks import in_order
from plugins.areas.oidc.tests.conftest import Visitor
from plugins.areas.oidc.tests.devices import (
    DEVICE_CLIENT,
    answer,
    ask_for_codes,
    enter,
    poll,
    start,
)


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


@pytest.fixture
async def tv(register) -> dict[str, Any]:
    return await register(**DEVICE_CLIENT)


class TestDevice:
    async def test_the_response_names_the_codes_and_the_page(self, ann: Visitor, tv):
        response = await ask_for_codes(ann, tv)
        codes = response.json()

        page = f"http://msgsvc.test{ann.issuer}/device"
        assert response.headers["Cache-Control"] == "no-store"
        assert re.fullmatch(
            "[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", codes["user_code"]
        )
        assert codes["verification_uri"] == page
        assert codes["verification_uri_complete"] == f"{page}?user_code={codes['user_code']}"
        assert (codes["expires_in"], codes["interval"]) == (600, 5)

    @pytest.mark.both_databases
    async def test_a_device_gets_its_tokens_once_the_person_allowed_it(
        self, ann: Visitor, tv, clock
    ):
        codes = await start(ann, tv, scope="openid profile offline_access")
        waiting = await poll(ann, tv, codes["device_code"])
        answered = await answer(ann, codes["user_code"])
        tokens = (await poll(ann, tv, codes["device_code"])).json()
        person = (await ann.userinfo(tokens["access_token"])).json()
        refreshed = await ann.refresh(tv, tokens["refresh_token"])

        assert refusal(waiting) == (400, "authorization_pending")
        assert (answered.status_code, "Go back to your device" in answered.text) == (200, True)
        assert tokens["scope"] == "openid profile offline_access"
        assert (person["sub"], person["name"]) == (ann.subscriber.subscriber_id, "Ann")
        assert refreshed.status_code == 200
        assert ann.claims(tokens)["acr"] == "urn:msgsvc:acr:number"
        assert ann.claims(tokens)["auth_time"] == clock.now_ms() // 1000
        assert "sid" not in ann.claims(tokens)

    async def test_one_poll_too_many_gets_nothing_and_ends_nothing(self, ann: Visitor, tv):
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])
        tokens = (await poll(ann, tv, codes["device_code"])).json()

        again = await poll(ann, tv, codes["device_code"])

        assert refusal(again) == (400, "invalid_grant")
        assert (await ann.userinfo(tokens["access_token"])).status_code == 200

    @pytest.mark.both_databases
    async def test_each_early_poll_makes_the_device_wait_five_seconds_longer(
        self, ann: Visitor, tv, clock
    ):
        code = (await start(ann, tv))["device_code"]
        outcomes = [refusal(await poll(ann, tv, code))[1]]
        for wait_s in (1, 8, 15, 14, 20):
            clock.advance(wait_s)
            outcomes.append(refusal(await poll(ann, tv, code))[1])

        assert outcomes == [
            "authorization_pending",
            "slow_down",  # from now on 10 s
            "slow_down",  # 15 s
            "authorization_pending",
            "slow_down",  # 20 s
            "authorization_pending",
        ]

    async def test_a_code_expires(self, ann: Visitor, tv, clock):
        codes = await start(ann, tv)
        clock.advance(601)

        page = await enter(ann, codes["user_code"])
        polled = [refusal(await poll(ann, tv, codes["device_code"])) for _ in range(2)]

        assert (page.status_code, "has expired" in page.text) == (400, True)
        assert polled == [(400, "expired_token")] * 2

    async def test_an_approval_that_is_not_fetched_expires(self, ann: Visitor, tv, clock):
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])
        clock.advance(601)

        assert refusal(await poll(ann, tv, codes["device_code"])) == (400, "expired_token")

    @pytest.mark.both_databases
    async def test_the_device_learns_that_the_person_refused(self, ann: Visitor, tv):
        codes = await start(ann, tv)
        page = await answer(ann, codes["user_code"], "deny")

        assert "Not connected" in page.text
        assert refusal(await poll(ann, tv, codes["device_code"])) == (400, "access_denied")

    async def test_the_device_learns_of_cancel_in_the_bot(self, ann: Visitor, tv):
        codes = await start(ann, tv)
        await enter(ann, codes["user_code"])
        state = ann.sign_ins.latest.request.state
        query = {"error": "access_denied", "state": state}
        page = await ann.http.get(f"{ann.issuer}/return", params=query)

        assert "Not connected" in page.text
        assert refusal(await poll(ann, tv, codes["device_code"])) == (400, "access_denied")

    @pytest.mark.both_databases
    async def test_cancel_in_the_bot_is_recorded_once_however_often_it_is_reported(
        self, ann: Visitor, tv, service
    ):
        codes = await start(ann, tv)
        await enter(ann, codes["user_code"])
        request = ann.sign_ins.latest.request
        denied = in_order(service.plugins.hook.on_sign_in_denied)
        for _ in range(2):
            async with service.db.transaction() as tx:
                await denied(tx, ann.project_id, request.source, request.source_id)
        query = {"error": "access_denied", "state": request.state}
        page = await ann.http.get(f"{ann.issuer}/return", params=query)

        assert refusal(await poll(ann, tv, codes["device_code"])) == (400, "access_denied")
        assert "Not connected" in page.text
        assert await ann.outcomes(tv) == [("device", "access_denied")]

    async def test_cancel_of_another_project_s_sign_in_ends_nothing(
        self, ann: Visitor, tv, service
    ):
        codes = await start(ann, tv)
        await enter(ann, codes["user_code"])
        request = ann.sign_ins.latest.request
        denied = in_order(service.plugins.hook.on_sign_in_denied)
        async with service.db.transaction() as tx:
            await denied(tx, "prj_other", request.source, request.source_id)
            await denied(tx, ann.project_id, "other", request.source_id)

        waiting = await poll(ann, tv, codes["device_code"])

        assert refusal(waiting) == (400, "authorization_pending")

    @pytest.mark.parametrize(
        "code",
        [
            "bogus",
            "dev_" + "0" * 22 + "." + "0" * 22,
            "GMMhmHCXhWEzkobqIHGG_EnNYYsAkukHspeYUk9E8",
            "é" * 20,
            "../" * 10,
        ],
    )
    async def test_cve_2026_49272_a_bogus_device_code_gets_no_token(
        self, ann: Visitor, tv, code: str
    ):
        assert refusal(await poll(ann, tv, code)) == (400, "invalid_grant")

    async def test_a_changed_device_code_gets_no_token(self, ann: Visitor, tv):
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])
        code = codes["device_code"]
        changed = code[:-1] + ("0" if code[-1] != "0" else "1")

        assert refusal(await poll(ann, tv, changed)) == (400, "invalid_grant")
        assert (await poll(ann, tv, code)).status_code == 200

    async def test_a_user_code_and_an_authorization_code_are_no_device_codes(
        self, ann: Visitor, tv, register
    ):
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])
        code = await ann.code(await register())

        assert refusal(await poll(ann, tv, codes["user_code"])) == (400, "invalid_grant")
        assert refusal(await poll(ann, tv, code)) == (400, "invalid_grant")

    async def test_a_code_without_a_value_is_missing(self, ann: Visitor, tv):
        assert refusal(await poll(ann, tv, "")) == (400, "invalid_request")

    async def test_another_client_can_neither_use_nor_spoil_a_code(
        self, ann: Visitor, tv, register
    ):
        other = await register(**DEVICE_CLIENT)
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])

        assert refusal(await poll(ann, other, codes["device_code"])) == (400, "invalid_grant")
        assert (await poll(ann, tv, codes["device_code"])).status_code == 200

    async def test_a_client_needs_the_grant_type_and_openid(self, ann: Visitor, tv, register):
        web = await register()

        assert refusal(await ask_for_codes(ann, web)) == (400, "unauthorized_client")
        assert refusal(await poll(ann, web, "x")) == (400, "unauthorized_client")
        assert refusal(await ask_for_codes(ann, tv, scope="profile")) == (400, "invalid_scope")
        assert refusal(await ask_for_codes(ann, {**tv, "client_id": "app_1"})) == (
            401,
            "invalid_client",
        )

    async def test_a_confidential_client_authenticates(self, ann: Visitor, register):
        client = await register(
            **{**DEVICE_CLIENT, "token_endpoint_auth_method": "client_secret_basic"}
        )
        wrong = {**client, "client_secret": "mos_wrong"}

        assert (await ask_for_codes(ann, client)).status_code == 200
        assert refusal(await ask_for_codes(ann, wrong)) == (401, "invalid_client")

    async def test_what_the_person_took_back_before_the_poll_is_not_given(
        self, ann: Visitor, tv, service
    ):
        codes = await start(ann, tv)
        await answer(ann, codes["user_code"])
        await ann.take_back(tv)

        assert refusal(await poll(ann, tv, codes["device_code"])) == (400, "access_denied")

    async def test_the_journal_tells_how_it_ended(self, ann: Visitor, tv):
        allowed, denied = await start(ann, tv), await start(ann, tv)
        await answer(ann, allowed["user_code"])
        await answer(ann, denied["user_code"], "deny")
        for codes in (allowed, denied):
            await poll(ann, tv, codes["device_code"])
            await poll(ann, tv, codes["device_code"])

        assert await ann.outcomes(tv) == [("device", "signed_in"), ("device", "access_denied")]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_fifty_concurrent_polls_of_a_code_get_one_grant(ann: Visitor, tv):
    codes = await start(ann, tv)
    await answer(ann, codes["user_code"])

    polls = await asyncio.gather(*(poll(ann, tv, codes["device_code"]) for _ in range(50)))

    refused = [refusal(each) for each in polls if each.status_code != 200]
    assert refused == [(400, "invalid_grant")] * 49


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_concurrent_polls_of_a_pending_code_one_is_in_its_time(ann: Visitor, tv):
    code = (await start(ann, tv))["device_code"]

    polls = await asyncio.gather(*(poll(ann, tv, code) for _ in range(5)))

    errors = sorted(refusal(each)[1] for each in polls)
    assert errors == ["authorization_pending", *["slow_down"] * 4]


async def test_the_first_of_two_people_with_a_code_answers(ann: Visitor, new_visitor, tv):
    bob = await new_visitor("Bob", "1002")
    codes = await start(ann, tv)
    await enter(ann, codes["user_code"])
    ann_page = await ann.press_yes()
    await answer(bob, codes["user_code"])

    late = await ann.answer_consent(ann_page, "allow")
    tokens = (await poll(ann, tv, codes["device_code"])).json()

    assert late.status_code == 400
    assert ann.claims(tokens)["sub"] == bob.subscriber.subscriber_id
