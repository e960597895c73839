"""What a project says to who has subscribed by signing in, beside the answer to their Yes."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import MessageReceived
from plugins.areas.auth.tests.conftest import Person, SignInAs

SIGNED_IN = "You are signed in to Shop. Go back to the page where you started."


@pytest.fixture
async def welcoming(client: httpx2.AsyncClient) -> None:
    answer = await client.patch("/v1/project", json={"welcome": "Welcome, {{ first_name }}"})
    assert answer.status_code == 200, answer.text


def texts(person: Person) -> list[str]:
    """What the person has read, with edits in their place."""
    edits = {edit.message_ref: edit for edit in person.channel.edited}
    return [
        edits.get(sent.message_ref, sent).message.text
        for sent in person.channel.sent
        if sent.chat_id == person.chat_id
    ]


@pytest.mark.usefixtures("welcoming")
async def test_who_subscribes_by_signing_in_is_welcomed(sign_in: SignInAs, ann: Person) -> None:
    await sign_in(ann)

    assert texts(ann) == [SIGNED_IN, "Welcome, Ann"]


@pytest.mark.usefixtures("welcoming")
async def test_who_signs_in_again_is_not_welcomed_again(sign_in: SignInAs, ann: Person) -> None:
    await sign_in(ann)
    await sign_in(ann)

    assert texts(ann) == [SIGNED_IN, "Welcome, Ann", SIGNED_IN]


async def test_without_a_text_of_the_project_the_answer_to_yes_is_enough(
    sign_in: SignInAs, ann: Person
) -> None:
    await sign_in(ann)

    assert texts(ann) == [SIGNED_IN]


async def test_the_question_is_asked_in_the_language_that_was_chosen_in_the_chat(
    client: httpx2.AsyncClient, ann: Person
) -> None:
    said: dict[str, Any] = {"chat_id": ann.chat_id, "user": ann.user}
    await ann.receive(MessageReceived(update_id="lang-1", text="/lang ru", **said))
    session = (await client.post("/v1/auth/session", json={})).json()

    question = await ann.open(session["links"]["messenger_a"])

    assert question.message.text.startswith("Войти в Shop?\n")
