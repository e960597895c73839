"""What a person meets in the messenger, and what their answer does."""

import asyncio
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason

LATE = "This sign-in request is no longer valid. Please start again on the site."
INVALID_LINK = "This link is no longer valid. Please ask the site for a new one."


@pytest.fixture
async def session(client, link):
    body = {"state": "a b&c=ё", "callback_url": link["callback_url"]}
    return (await client.post("/v1/auth/session", json=body)).json()


@pytest.fixture
def open_link(session):
    """`await open_link(ann)`: she opens the session's link; returns the bot's message."""

    async def open_link(person):
        return await person.open(session["links"][person.channel_name])

    return open_link


@pytest.fixture
def status(client, session):
    async def status():
        response = await client.get(f"/v1/auth/session/{session['session_id']}/status")
        return response.json()

    return status


@pytest.fixture
def events(client):
    """The project's events of one name, oldest first."""

    async def events(name):
        response = await client.get(f"/v1/events?event={name}")
        return [event["data"] for event in reversed(response.json()["data"])]

    return events


async def test_bot_asks_with_yes_and_cancel(open_link, ann, status):
    question = await open_link(ann)

    assert question.message.text.startswith("Sign in to Shop?\n")
    assert question.message.format == "plain"
    assert [[button.text for button in row] for row in question.message.buttons] == [
        ["Yes", "Cancel"]
    ]
    assert (await status())["status"] == "pending"


async def test_bot_asks_in_the_persons_language(open_link, bob):
    question = await open_link(bob)

    assert question.message.text.startswith("Войти в Shop?\n")
    assert [button.text for button in question.message.buttons[0]] == ["Да", "Отмена"]


async def test_bot_asks_in_the_language_of_the_site_if_it_names_one(client, ann):
    session = (await client.post("/v1/auth/session", json={"lang": "ru"})).json()

    question = await ann.open(session["links"]["messenger_a"])

    assert question.message.text.startswith("Войти в Shop?\n")


@pytest.mark.both_databases
async def test_braces_in_a_projects_name_are_shown_as_they_are(service, make_tenant, ann):
    tenant = await make_tenant(service, "{Shop} %s")
    session = (await tenant.client.post("/v1/auth/session", json={})).json()

    question = await ann.open(session["links"]["messenger_a"])

    assert question.message.text.startswith("Sign in to {Shop} %s?\n")


async def test_data_of_the_buttons_fits_every_messenger(open_link, ann):
    question = await open_link(ann)

    data = [button.data for button in question.message.buttons[0]]
    assert all(text.startswith("~auth:") and len(text.encode()) <= 64 for text in data)


async def test_opening_a_link_subscribes_nobody(open_link, ann, events):
    await open_link(ann)

    assert await events("subscription.created") == []


async def test_yes_gives_the_session_its_code(open_link, ann, status):
    await ann.press(await open_link(ann), "Yes")

    answer = await status()
    assert answer["status"] == "confirmed"
    assert len(answer["code"]) == 43


async def test_yes_replaces_the_question_by_the_way_back(open_link, ann, status):
    question = await open_link(ann)
    await ann.press(question, "Yes")

    shown = ann.shown
    [[back]] = shown.message.buttons
    assert shown.message_ref == question.message_ref
    assert shown.message.text == "You are signed in to Shop."
    assert back.text == "Return to the site"
    assert back.url.startswith("https://shop.example/back?from=bot&code=")
    assert parse_qs(urlsplit(back.url).query) == {
        "from": ["bot"],
        "code": [(await status())["code"]],
        "state": ["a b&c=ё"],
    }
    assert ann.notice is None


async def test_yes_where_the_messenger_takes_no_button_tells_to_go_back(open_link, ann, status):
    question = await open_link(ann)
    ann.channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "Wrong HTTP URL")]
    await ann.press(question, "Yes")

    back = OutgoingMessage("You are signed in to Shop. Go back to the page where you started.")
    assert (ann.shown.message, (await status())["status"]) == (back, "confirmed")


async def test_yes_without_a_callback_tells_to_go_back(client, ann):
    session = (await client.post("/v1/auth/session", json={"state": "xyz"})).json()

    await ann.press(await ann.open(session["links"]["messenger_a"]), "Yes")

    assert ann.shown.message.buttons == ()
    assert ann.shown.message.text == (
        "You are signed in to Shop. Go back to the page where you started."
    )


async def test_yes_subscribes_the_person(open_link, ann, events):
    await ann.press(await open_link(ann), "Yes")

    [created] = await events("subscription.created")
    assert created["source"] == "auth"
    assert created["first_name"] == "Ann"


async def test_yes_emits_auth_completed_with_the_state(open_link, ann, session, events, clock):
    question = await open_link(ann)
    clock.advance(5)
    await ann.press(question, "Yes")

    [completed] = await events("auth.completed")
    assert completed.pop("subscriber_id").startswith("sub_")
    assert completed == {
        "occurred_at": "2026-01-15T12:00:05.000Z",
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann_k",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "session_id": session["session_id"],
        "state": "a b&c=ё",
        "auth_time": "2026-01-15T12:00:05.000Z",
        "proves": "account",
    }


async def test_second_sign_in_of_a_person_finds_the_same_subscriber(client, ann, sign_in, events):
    codes = [(await sign_in(ann))["code"] for _ in range(2)]

    answers = [(await client.post("/v1/auth/verify", json={"code": code})).json() for code in codes]

    assert answers[0]["subscriber_id"] == answers[1]["subscriber_id"]
    assert len(await events("subscription.created")) == 1
    assert len(await events("auth.completed")) == 2


async def test_yes_makes_the_chat_belong_to_the_project(open_link, ann, service, tenant):
    question = await open_link(ann)
    before = await _project_of_chat(service, ann)
    await ann.press(question, "Yes")

    assert before is None
    assert await _project_of_chat(service, ann) == tenant.project.project_id


async def test_cancel_denies_and_says_so(open_link, ann, status, events):
    question = await open_link(ann)
    await ann.press(question, "Cancel")

    answer = await status()
    assert (answer["status"], answer["expires_in"]) == ("denied", 0)
    assert "code" not in answer
    assert ann.shown.message_ref == question.message_ref
    assert ann.shown.message.text == "Cancelled. You are not signed in to Shop."
    assert ann.shown.message.buttons == ()
    assert await events("subscription.created") == []
    assert await events("auth.completed") == []


async def test_two_presses_of_yes_give_one_code(open_link, ann, status, events):
    question = await open_link(ann)
    await ann.press(question, "Yes")
    first = (await status())["code"]
    way_back = ann.shown

    await ann.press(question, "Yes")

    assert (await status())["code"] == first
    assert len(await events("auth.completed")) == 1
    assert ann.shown == way_back
    assert ann.notice == "You are already signed in."


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_presses_of_yes_at_the_same_moment_give_one_code(open_link, ann, service, events):
    question = await open_link(ann)
    yes = ann.button(question, "Yes").data

    await asyncio.gather(*(ann.receive(ann.pressing(yes, question.message_ref)) for _ in range(20)))

    assert len(await events("auth.completed")) == 1
    assert len(await events("subscription.created")) == 1


async def test_update_that_comes_twice_counts_once(open_link, ann, events):
    question = await open_link(ann)
    update = ann.pressing(ann.button(question, "Yes").data, question.message_ref)

    for _ in range(2):
        await ann.receive(update)

    assert len(ann.channel.answered) == 1
    assert len(await events("auth.completed")) == 1


async def test_yes_after_cancel_only_tells(open_link, ann, status, events):
    question = await open_link(ann)
    await ann.press(question, "Cancel")

    await ann.press(question, "Yes")

    assert (await status())["status"] == "denied"
    assert await events("subscription.created") == []
    assert (ann.shown.message.text, ann.notice) == (LATE, LATE)


async def test_yes_after_expiry_only_tells(open_link, ann, clock, status, events):
    question = await open_link(ann)
    clock.advance(600)

    await ann.press(question, "Yes")

    assert (await status())["status"] == "expired"
    assert await events("auth.completed") == []
    assert (ann.shown.message.text, ann.notice) == (LATE, LATE)


async def test_yes_after_the_code_was_exchanged_changes_nothing(
    open_link, client, ann, status, events
):
    question = await open_link(ann)
    await ann.press(question, "Yes")
    await client.post("/v1/auth/verify", json={"code": (await status())["code"]})

    await ann.press(question, "Yes")

    assert (await status())["status"] == "consumed"
    assert len(await events("auth.completed")) == 1
    assert ann.notice == "You are already signed in."


async def test_cancel_after_yes_changes_nothing(open_link, ann, status):
    question = await open_link(ann)
    await ann.press(question, "Yes")

    await ann.press(question, "Cancel")

    assert (await status())["status"] == "confirmed"


async def test_first_yes_of_two_people_wins(open_link, ann, bob, client, status, events):
    anns, bobs = await open_link(ann), await open_link(bob)
    await bob.press(bobs, "Да")

    await ann.press(anns, "Yes")

    verified = await client.post("/v1/auth/verify", json={"code": (await status())["code"]})
    assert verified.json()["first_name"] == "Bob"
    assert [event["first_name"] for event in await events("subscription.created")] == ["Bob"]
    assert (ann.shown.message.text, ann.notice) == (LATE, LATE)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_people_at_the_same_moment_one_is_subscribed(open_link, ann, bob, events):
    pressing = [
        (person, person.pressing(message.message.buttons[0][0].data, message.message_ref))
        for person in (ann, bob)
        for message in [await open_link(person)]
    ]

    await asyncio.gather(*(person.receive(update) for person, update in pressing))

    assert len(await events("auth.completed")) == 1
    assert len(await events("subscription.created")) == 1


@pytest.mark.parametrize("choice", ["Yes", "Cancel"])
async def test_press_by_somebody_who_was_not_asked_does_nothing(
    open_link, ann, bob, status, choice
):
    question = await open_link(ann)

    # In a group, everybody sees the buttons: the chat is the same, the person is another.
    data = ann.button(question, choice).data
    await ann.receive(replace(ann.pressing(data, question.message_ref), user=bob.user))
    await bob.press_data(data, question.message_ref)

    assert (await status())["status"] == "pending"
    assert bob.notice == "Эта кнопка больше не работает."


@pytest.mark.parametrize(
    "data", ["~auth:", "~auth:y", "~auth:y:t:s", f"~auth:x:{'0' * 22}:{'0' * 22}"]
)
async def test_press_with_broken_data_is_answered(ann, link, data):
    await ann.press_data(data)

    assert ann.notice == "This button no longer works."


async def test_link_of_a_decided_session_is_not_valid(open_link, ann, bob):
    await ann.press(await open_link(ann), "Yes")

    answer = await open_link(bob)

    assert answer.message.text.startswith("Эта ссылка")


async def test_link_of_an_expired_session_is_not_valid(open_link, ann, clock):
    clock.advance(600)

    assert (await open_link(ann)).message.text == INVALID_LINK


async def test_link_does_not_open_on_a_channel_that_was_not_offered(client, ann):
    session = (await client.post("/v1/auth/session", json={"channel": "messenger_b"})).json()

    answer = await ann.open(session["links"]["messenger_b"])

    assert answer.message.text == INVALID_LINK


@pytest.mark.shared_service
@pytest.mark.parametrize("payload", ["auth_", "auth_s_short", "auth_NOT-A-SLUG", "auth_nobody"])
async def test_unknown_start_payload_is_answered(ann, payload):
    assert (await ann.open(f"https://bot?start={payload}")).message.text == INVALID_LINK


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_yes_to_a_project_disabled_meanwhile_only_tells(
    open_link, ann, service, tenant, status
):
    question = await open_link(ann)
    await service.projects.set_active(tenant.project.project_id, False)

    await ann.press(question, "Yes")
    await service.projects.set_active(tenant.project.project_id, True)

    assert (await status())["status"] == "pending"
    assert ann.notice == LATE


async def test_yes_undoes_itself_whole_when_a_part_fails(
    open_link, ann, service, status, events, monkeypatch
):
    question = await open_link(ann)

    async def fail(*_args, **_kwargs):
        raise RuntimeError("no events today")

    with monkeypatch.context() as patch:
        patch.setattr(service.events, "emit", fail)
        await ann.press(question, "Yes")

    assert (await status())["status"] == "pending"
    assert await events("subscription.created") == []
    assert ann.shown == question


async def _project_of_chat(service, person):
    async with service.db.read() as tx:
        return await tx.fetch_val(
            "SELECT project_id FROM core_chats WHERE channel = :channel AND chat_id = :chat_id",
            {"channel": person.channel_name, "chat_id": person.chat_id},
        )
