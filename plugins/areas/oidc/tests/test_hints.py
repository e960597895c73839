"""Whom a client expects to sign in (`id_token_hint`), and how (`login_hint`)."""

import pytest

from plugins.areas.oidc.tests.conftest import answer_of
from plugins.areas.oidc.tests.test_pushed_requests import push, use


async def hint_of(visitor, client):
    return (await visitor.tokens(client))["id_token"]


class TestIdTokenHint:
    async def test_the_person_who_is_signed_in_goes_on_without_a_question(self, ann, register):
        client = await register(first_party=True)
        hint = await hint_of(ann, client)

        answer = answer_of(await ann.authorize(client, id_token_hint=hint, prompt="none"))

        assert "code" in answer

    async def test_an_expired_token_is_a_hint_too(self, ann, register, clock):
        client = await register(first_party=True)
        hint = await hint_of(ann, client)
        clock.advance(3600)

        answer = answer_of(await ann.authorize(client, id_token_hint=hint, prompt="none"))

        assert "code" in answer

    @pytest.mark.parametrize("subject_type", ["public", "pairwise"])
    async def test_a_silent_request_for_another_person_is_refused(
        self, ann, new_visitor, register, subject_type
    ):
        client = await register(first_party=True, subject_type=subject_type)
        ben = await new_visitor("Ben", "1002")
        of_ben = await hint_of(ben, client)
        await ann.code(client)

        answer = answer_of(await ann.authorize(client, id_token_hint=of_ben, prompt="none"))

        assert answer["error"] == "login_required"

    async def test_another_person_is_asked_to_sign_in_and_it_has_to_be_the_right_one(
        self, ann, new_visitor, register
    ):
        client = await register(first_party=True)
        ben = await new_visitor("Ben", "1002")
        of_ben = await hint_of(ben, client)
        await ann.code(client)

        asked = await ann.authorize(client, id_token_hint=of_ben)
        wrong = answer_of(await ann.press_yes())
        await ann.authorize(client, id_token_hint=of_ben)
        ann.subscriber = ben.subscriber
        right = answer_of(await ann.press_yes())

        assert "/login/" in asked.headers["Location"]
        assert (wrong["error"], wrong["state"]) == ("login_required", "state-1")
        assert "code" in right

    async def test_a_token_of_another_client_is_no_hint(self, ann, register):
        first, second = await register(first_party=True), await register(first_party=True)
        hint = await hint_of(ann, first)

        answer = answer_of(await ann.authorize(second, id_token_hint=hint, prompt="none"))

        assert answer["error"] == "invalid_request"

    async def test_it_can_be_pushed(self, ann, new_visitor, register):
        client = await register(first_party=True)
        ben = await new_visitor("Ben", "1002")
        of_ben = await hint_of(ben, client)
        await ann.code(client)

        pushed = await push(ann, client, id_token_hint=of_ben, prompt="none")
        answer = answer_of(await use(ann, client, pushed.json()["request_uri"]))
        garbage = await push(ann, client, id_token_hint="x")

        assert answer["error"] == "login_required"
        assert (garbage.status_code, garbage.json()["error"]) == (400, "invalid_request")


class TestLoginHint:
    async def test_the_name_of_a_messenger_offers_that_one(self, ann, register):
        await ann.authorize(await register(), login_hint="messenger_a")

        assert ann.sign_ins.latest.request.channel == "messenger_a"

    @pytest.mark.parametrize("hint", ["ann@example.com", "+4915112345678", "MESSENGER_A", "x"])
    async def test_any_other_is_ignored(self, ann, register, hint):
        page = await ann.authorize(await register(), login_hint=hint)

        assert page.status_code == 303
        assert ann.sign_ins.latest.request.channel is None
