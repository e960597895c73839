"""Questions of other plugins to one subscriber: who is asked what, who can answer, and how often."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import (
    Conflict,
    RateLimitProject,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.plugins.sign_ins import DirectSignIn, SignIns
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from plugins.areas.auth.tests.conftest import Person, sign_ins_of

OF_ANN = "Payment of 20 EUR"


@pytest.fixture
def sign_ins(service) -> SignIns:
    return sign_ins_of(service)


@pytest.fixture
async def subscriber(service, tenant, ann):
    """Ann, who started the bot before."""
    async with service.db.transaction() as tx:
        known = await service.subscribers.ensure(
            tx, tenant.project.project_id, "messenger_a", ann.user, ann.chat_id, source="deep_link"
        )
    await settled(service)
    return known


@pytest.fixture
def ask(service, sign_ins, tenant, subscriber):
    """Has Ann asked."""

    async def ask(**changed: Any) -> Any:
        given = {
            "project_id": tenant.project.project_id,
            "source": "oidc",
            "source_id": "ciba-1",
            "subscriber_id": subscriber.subscriber_id,
            "requester_name": "Bank",
            "requester_url": "https://bank.example/pay",
            "text": OF_ANN,
            "details": ("To: Shop", "Your name will be told."),
        }
        async with service.db.transaction() as tx:
            asked = await sign_ins.ask(tx, DirectSignIn(**{**given, **changed}))
        await settled(service)
        return asked

    return ask


@pytest.fixture
def status(service, sign_ins, tenant):
    async def status(session_id: str) -> str:
        async with service.db.read() as tx:
            return await sign_ins.status(tx, tenant.project.project_id, session_id)

    return status


def texts_of(person: Person) -> list[str]:
    return [button.text for row in person.shown.message.buttons for button in row]


async def test_question_says_who_asks_what_and_of_which_site(ask, ann):
    await ask()

    assert ann.shown.message.text == (
        "Bank asks you to confirm, with Shop:\n\nPayment of 20 EUR\n\n"
        "To: Shop\nYour name will be told.\nSite: bank.example\n\n"
        "If you did not start this yourself, press Cancel."
    )
    assert texts_of(ann) == ["Yes", "Cancel"]


async def test_without_a_text_it_is_a_sign_in(ask, ann):
    await ask(text="", details=(), lang="ru")

    assert ann.shown.message.text.startswith("Войти в Bank через Shop?\n\nСайт: bank.example\n")


async def test_lines_of_others_stay_in_their_lines_and_mark_nothing_up(ask, ann):
    await ask(text="20 EUR\n\nFrom: your bank", details=("\u202e<b>x</b>", " \n"))

    assert "\n\n20 EUR From: your bank\n\n<b>x</b>\nSite: " in ann.shown.message.text
    assert ann.shown.message.format == "plain"


async def test_answer_takes_the_place_of_the_question(ask, ann):
    await ask()
    await ann.press(ann.shown, "Yes")
    yes = ann.shown
    await ask()
    await ann.press(ann.shown, "Cancel")

    assert (yes.message.text, yes.message.buttons) == ("Confirmed for Bank.", ())
    assert ann.shown.message.text == "Cancelled. Nothing was confirmed for Bank."


async def test_second_press_of_yes_is_told_that_it_counted(ask, ann):
    await ask()
    question = ann.shown
    await ann.press(question, "Yes")
    await ann.press(question, "Yes")

    assert ann.notice == "You have already confirmed this."
    assert ann.shown.message.text == "Confirmed for Bank."


async def test_yes_after_cancel_and_after_the_end_does_not_count(ask, ann, status, clock):
    denied = await ask()
    question = ann.shown
    await ann.press(question, "Cancel")
    await ann.press(question, "Yes")
    late = await ask(lifetime_s=60)
    clock.advance(60)
    await ann.press(ann.shown, "Yes")

    assert await status(denied.session_id) == "denied"
    assert await status(late.session_id) == "expired"
    assert "no longer valid" in ann.shown.message.text


async def test_wrong_number_denies(ask, ann, status):
    asked = await ask(number_matching=True)
    offered = [text for text in texts_of(ann) if text != "Cancel"]
    told = ann.shown.message.text
    wrong = next(text for text in offered if text != str(asked.match_number))
    question = ann.shown
    await ann.press(question, wrong)
    await ann.press(question, str(asked.match_number))

    assert len(offered) == 3
    assert "Press the number that Bank shows you." in told
    assert await status(asked.session_id) == "denied"


async def test_nobody_else_answers_by_the_buttons_or_is_asked_by_their_token(ask, ann, bob, status):
    asked = await ask()
    data = ann.button(ann.shown, "Yes").data
    token = data.split(":")[2]
    before = len(bob.channel.sent)

    await bob.press_data(data, ann.shown.message_ref)
    shown = await bob.open(f"https://messenger_a.example/bot?start=auth_s_{token}")

    assert await status(asked.session_id) == "pending"
    assert len(bob.channel.sent) > before
    assert "Bank" not in shown.message.text


async def test_yes_subscribes_nobody_anew_and_is_no_completed_sign_in(
    ask, ann, client, service, tenant, subscriber, status
):
    asked = await ask()
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        await service.subscribers.unsubscribe(
            tx, project_id, subscriber.subscriber_id, reason="stop"
        )
    await ann.press(ann.shown, "Yes")

    person = (await client.get(f"/v1/subscribers/{subscriber.subscriber_id}")).json()
    events = (await client.get("/v1/events?event=auth.completed")).json()["data"]
    assert await status(asked.session_id) == "confirmed"
    assert person["status"] == "unsubscribed"
    assert events == []


async def test_code_of_a_question_is_nowhere(ask, ann, client):
    asked = await ask()
    await ann.press(ann.shown, "Yes")

    answer = await client.get(f"/v1/auth/session/{asked.session_id}/status")

    assert answer.status_code == 404


@pytest.mark.both_databases
@pytest.mark.parametrize("gone", ["unsubscribed", "blocked"])
async def test_who_has_left_or_blocked_the_bot_is_not_asked(
    ask, service, tenant, subscriber, ann, gone
):
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        if gone == "blocked":
            await service.subscribers.block(tx, "messenger_a", ann.user.user_id, reason="blocked")
        else:
            await service.subscribers.unsubscribe(
                tx, project_id, subscriber.subscriber_id, reason="stop"
            )

    with pytest.raises(Conflict):
        await ask()


async def test_unknown_person_and_what_cannot_be_shown_are_refused(ask, ann):
    sent = len(ann.channel.sent)
    with pytest.raises(SubscriberNotFound):
        await ask(subscriber_id="sub_unknown")
    for wrong in (
        {"requester_name": ""},
        {"requester_url": "javascript:1"},
        {"lifetime_s": 0},
        {"text": "x" * 100_000},
    ):
        with pytest.raises(ValidationFailed):
            await ask(**wrong)

    assert len(ann.channel.sent) == sent


async def test_person_of_another_project_is_unknown(ask, service, make_tenant):
    other: Tenant = await make_tenant(service, "Other")
    with pytest.raises(SubscriberNotFound):
        await ask(project_id=other.project.project_id)


async def test_few_questions_wait_for_one_person_at_a_time(ask, ann, clock):
    await ask(lifetime_s=100)
    clock.advance(10)
    await ask()
    await ask()
    with pytest.raises(RateLimitProject) as refused:
        await ask()
    await ann.press(ann.shown, "Cancel")

    assert refused.value.retry_after_s == 90
    assert await ask()


async def test_person_is_asked_so_often_an_hour(ask, ann, clock):
    for _ in range(10):
        await ask()
        await ann.press(ann.shown, "Cancel")
    with pytest.raises(RateLimitProject) as refused:
        await ask()
    clock.advance(3600)

    assert refused.value.retry_after_s == 3600
    assert await ask()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_questions_at_once_no_more_wait_than_may(ask):
    asked = await asyncio.gather(*(ask() for _ in range(8)), return_exceptions=True)

    refused = [each for each in asked if isinstance(each, RateLimitProject)]
    assert len(refused) == 5
    assert len(asked) - len(refused) == 3


async def test_limit_is_each_persons_own(ask, service, tenant):
    for _ in range(3):
        await ask()
    async with service.db.transaction() as tx:
        bob = await service.subscribers.ensure(
            tx,
            tenant.project.project_id,
            "messenger_a",
            ChannelUser("1002", "Bob"),
            "chat-1002",
            source="deep_link",
        )

    assert await ask(subscriber_id=bob.subscriber_id)


async def test_question_goes_with_the_person_who_is_erased(ask, service, tenant, subscriber, ann):
    await ask()
    question = ann.shown
    async with service.db.transaction() as tx:
        await service.subscribers.erase(tx, tenant.project.project_id, subscriber.subscriber_id)
    await settled(service)
    await ann.press(question, "Yes")

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM auth_sessions") == 0


async def test_database_holds_neither_text_nor_token_of_a_question(ask, ann, service):
    await ask()
    token = (ann.button(ann.shown, "Yes").data or "").split(":")[2]

    async with service.db.read() as tx:
        rows = [
            *(await tx.fetch_all("SELECT * FROM auth_sessions")),
            *(await tx.fetch_all("SELECT * FROM core_jobs")),
        ]
    stored = "\n".join(str(dict(row)) for row in rows)
    assert "Bank" in stored
    assert OF_ANN not in stored
    assert token not in stored
