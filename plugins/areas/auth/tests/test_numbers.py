"""Number matching: Yes is a number that only the page shows."""

import asyncio

import pytest

from msgsvc_auth.service import SignIn
from msgsvc_core.security import SecretBox, new_number, offered
from msgsvc_core.security.numbers import NUMBERS
from msgsvc_devkit.services import SECRET_KEY

WRONG = "That is not the number on the page. You are not signed in to Shop."


@pytest.fixture
async def session(client):
    return (
        await client.post("/v1/auth/session", json={"state": "xyz", "number_matching": True})
    ).json()


@pytest.fixture
def open_link(session):
    async def open_link(person):
        return await person.open(session["links"][person.channel_name])

    return open_link


@pytest.fixture
def status(client, session):
    async def status():
        path = f"/v1/auth/session/{session['session_id']}/status"
        return (await client.get(path)).json()["status"]

    return status


def numbers_in(question):
    return [button.text for button in question.message.buttons[0]]


def wrong_in(question, session):
    return next(text for text in numbers_in(question) if text != str(session["match_number"]))


async def test_number_is_there_when_asked_for_alone(client, session):
    plain = (await client.post("/v1/auth/session", json={"number_matching": False})).json()

    assert session["match_number"] in NUMBERS
    assert "match_number" not in plain


async def test_bot_shows_three_numbers_and_no_yes(open_link, session, ann):
    question = await open_link(ann)

    picks, cancel = question.message.buttons
    numbers = [int(button.text) for button in picks]
    assert len(set(numbers)) == 3
    assert session["match_number"] in numbers
    assert set(numbers) <= set(NUMBERS)
    assert [button.text for button in cancel] == ["Cancel"]
    assert question.message.text.endswith(
        "Press the number that the page shows. If you did not start this yourself, press Cancel."
    )
    assert str(session["match_number"]) not in question.message.text


async def test_right_number_signs_in(open_link, session, ann, status, client):
    question = await open_link(ann)

    await ann.press(question, str(session["match_number"]))

    assert await status() == "confirmed"
    assert ann.shown.message.text.startswith("You are signed in to Shop.")


async def test_wrong_number_denies_and_says_so(open_link, session, ann, status, client):
    question = await open_link(ann)

    await ann.press(question, wrong_in(question, session))

    assert await status() == "denied"
    assert (ann.shown.message.text, ann.notice) == (WRONG, WRONG)
    assert ann.shown.message.buttons == ()
    assert (await client.get("/v1/events?event=auth.completed")).json()["data"] == []


async def test_right_number_after_a_wrong_one_changes_nothing(open_link, session, ann, status):
    question = await open_link(ann)
    await ann.press(question, wrong_in(question, session))

    await ann.press(question, str(session["match_number"]))

    assert await status() == "denied"


async def test_wrong_number_after_the_right_one_changes_nothing(open_link, session, ann, status):
    question = await open_link(ann)
    await ann.press(question, str(session["match_number"]))

    await ann.press(question, wrong_in(question, session))

    assert await status() == "confirmed"
    assert ann.notice == "You are already signed in."


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_all_numbers_pressed_at_once_are_one_guess(open_link, session, ann, client):
    question = await open_link(ann)
    presses = [
        ann.pressing(button.data, question.message_ref) for button in question.message.buttons[0]
    ]

    await asyncio.gather(*(ann.receive(press) for press in presses))

    status = (await client.get(f"/v1/auth/session/{session['session_id']}/status")).json()
    assert status["status"] in {"confirmed", "denied"}
    assert len(ann.channel.answered) == 3


async def test_cancel_denies(open_link, ann, status):
    await ann.press(await open_link(ann), "Cancel")

    assert await status() == "denied"
    assert ann.shown.message.text == "Cancelled. You are not signed in to Shop."


@pytest.mark.parametrize("choice", ["y", "11", "99"])
async def test_a_choice_that_was_not_shown_is_no_press(open_link, ann, status, choice):
    question = await open_link(ann)
    _, _, token, seal = ann.button(question, "Cancel").data.split(":")

    await ann.press_data(f"~auth:{choice}:{token}:{seal}", question.message_ref)

    assert await status() == "pending"
    assert ann.notice == "This button no longer works."


@pytest.mark.parametrize("number", [None, 1])
async def test_no_plain_yes_confirms_a_session_with_a_number(service, tenant, session, number, ann):
    sign_in = service.get(SignIn)

    async with service.db.transaction() as tx:
        found = await sign_in.get(tenant.project.project_id, session["session_id"], tx)
        confirmed = await sign_in.confirm(
            tx, found, ann.channel_name, ann.user, ann.chat_id, number=number
        )

    assert confirmed is None


async def test_data_of_the_numbers_fits_every_messenger(open_link, ann):
    question = await open_link(ann)

    data = [button.data for row in question.message.buttons for button in row]
    assert len(data) == 4
    assert all(text.startswith("~auth:") and len(text.encode()) <= 64 for text in data)


async def test_opening_twice_gives_the_same_numbers_to_everybody(open_link, ann, bob):
    shown = [numbers_in(await open_link(person)) for person in (ann, bob, ann)]

    assert shown[0] == shown[1] == shown[2]


async def test_wrong_number_is_told_in_russian(open_link, session, bob):
    question = await open_link(bob)
    await bob.press(question, wrong_in(question, session))

    assert "Нажмите число, которое видите на странице." in question.message.text
    assert bob.notice == "На странице другое число. Вы не вошли в Shop."


def test_place_and_neighbours_of_the_right_number_tell_nothing():
    box = SecretBox([SECRET_KEY])
    shown = [offered(box, "auth.numbers", f"ses_{each}", 47) for each in range(3000)]

    places = [numbers.index(47) for numbers in shown]
    decoys = {number for numbers in shown for number in numbers if number != 47}
    assert all(len(set(numbers)) == 3 for numbers in shown)
    # Three standard deviations of a fair choice are 77.
    assert all(abs(places.count(place) - 1000) < 120 for place in range(3))
    assert decoys == set(NUMBERS) - {47}


def test_numbers_have_two_digits():
    drawn = {new_number() for _ in range(5000)}

    assert drawn == set(range(10, 100))
