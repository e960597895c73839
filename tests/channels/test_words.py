"""A messenger without buttons and start links: people answer by number, and start by a word."""

from collections.abc import Callable
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import Button, Capabilities, ChannelUser, MessageReceived, OutgoingMessage
from msgsvc_core.channels.buttons import fallbacks
from msgsvc_core.cli.live_checks import check_channels
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms
from msgsvc_helpdesk import plugin as helpdesk

CALLBACK = "https://shop.example/back"
QUESTION = {
    "text": "Coming?",
    "buttons": [
        [{"text": "Yes", "data": "y"}, {"text": "No, sorry", "data": "n"}],
        [{"text": "Map", "url": "https://shop.example/map_1"}],
    ],
}

_ids = count(1)


class Writer:
    """Somebody who can do nothing but write."""

    def __init__(self, service: Service, lang: str = "en") -> None:
        self._service = service
        self._user = ChannelUser("77", "Ann", None, lang)

    async def write(self, text: str) -> str:
        """Returns what the bot has said last."""
        update = MessageReceived(
            update_id=f"w{next(_ids)}", chat_id="room-77", user=self._user, text=text
        )
        await self._service.inbound.receive("messenger_a", update)
        await settled(self._service)
        return self.said[-1] if self.said else ""

    @property
    def said(self) -> list[str]:
        channel = self._service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        assert all(not sent.message.buttons for sent in channel.sent)
        return [sent.message.text for sent in channel.sent if sent.chat_id == "room-77"]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    service = await make_service(
        extra_plugins=[("auth", auth), ("forms", forms), ("helpdesk", helpdesk)]
    )
    service.channels["messenger_a"].capabilities = Capabilities(
        buttons="words", start_links=False, edit=False
    )
    return service


@pytest.fixture
def ann(service: Service) -> Writer:
    return Writer(service)


async def post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def session(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    return await post(client, "/v1/auth/session", {"state": "s1", "channel": "messenger_a", **body})


async def status(client: httpx2.AsyncClient, begun: dict[str, Any]) -> dict[str, Any]:
    answer = await client.get(f"/v1/auth/session/{begun['session_id']}/status")
    found: dict[str, Any] = answer.json()
    return found


async def subscribe(client: httpx2.AsyncClient, ann: Writer) -> str:
    """Subscribes by the messenger's way; returns the subscriber's id."""
    link = await post(client, "/v1/subscribers/links", {})
    await ann.write(link["start_messages"]["messenger_a"])
    found = (await client.get("/v1/subscribers")).json()["data"]
    subscriber_id: str = found[0]["subscriber_id"]
    return subscriber_id


async def send(client: httpx2.AsyncClient, service: Service, to: str, body: dict[str, Any]) -> None:
    await post(client, "/v1/send", {"subscriber_id": to, **body})
    await settled(service)


async def clicks(client: httpx2.AsyncClient) -> list[str]:
    events = (await client.get("/v1/events")).json()["data"]
    return [event["data"]["data"] for event in events if event["event"] == "button.clicked"]


async def test_a_person_signs_in_by_a_short_code_and_a_number(
    client: httpx2.AsyncClient, ann: Writer
) -> None:
    begun = await session(client)

    question = await ann.write(begun["start_messages"]["messenger_a"].upper())
    assert question.endswith("1 - Yes\n2 - Cancel\nAnswer with the number.")
    assert await ann.write("1") == (
        "You are signed in to Shop. Go back to the page where you started."
    )
    now = await status(client, begun)
    verified = await post(client, "/v1/auth/verify", {"code": now["code"]})

    assert (now["status"], verified["first_name"]) == ("confirmed", "Ann")


async def test_the_number_to_match_is_its_own_answer(
    client: httpx2.AsyncClient, ann: Writer
) -> None:
    begun = await session(client, number_matching=True)
    await ann.write(begun["start_messages"]["messenger_a"])

    await ann.write(str(begun["match_number"]))

    assert (await status(client, begun))["status"] == "confirmed"


async def test_a_button_is_answered_by_its_own_word_in_the_persons_language(
    client: httpx2.AsyncClient, service: Service
) -> None:
    boris = Writer(service, "ru-RU")
    begun = await session(client)

    question = await boris.write(begun["start_messages"]["messenger_a"])
    await boris.write("  ОТМЕНА ")

    assert question.endswith("Ответьте номером.")
    assert (await status(client, begun))["status"] == "denied"


async def test_a_question_that_was_answered_takes_no_number_any_more(
    client: httpx2.AsyncClient, ann: Writer
) -> None:
    begun = await session(client)
    await ann.write(begun["start_messages"]["messenger_a"])
    await ann.write("1")
    said = len(ann.said)

    await ann.write("2")

    tickets = (await client.get("/v1/tickets")).json()["data"]
    assert (await status(client, begun))["status"] == "confirmed"
    assert len(tickets) == 1, "ordinary words go where they went before"
    assert len(ann.said) >= said


async def test_a_static_link_is_started_by_its_own_payload(
    client: httpx2.AsyncClient, ann: Writer
) -> None:
    body = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    link = await post(client, "/v1/auth/links", body)

    assert link["start_messages"] == {"messenger_a": "start auth_shop"}
    assert "Sign in to Shop?" in await ann.write("start auth_shop")
    back = await ann.write("yes")

    assert f"Return to the site: {CALLBACK}?code=" in back


async def test_a_projects_buttons_are_numbers_and_its_addresses_lines(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)

    await ann.write("no,  SORRY")
    await ann.write("1.")

    assert ann.said[-1] == (
        "Coming?\n\nMap: https://shop.example/map_1\n\n"
        "1 - Yes\n2 - No, sorry\nAnswer with the number."
    )
    assert await clicks(client) == ["y", "n"]


async def test_the_newest_question_counts(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)
    other = {"text": "Which?", "buttons": [[{"text": "A", "data": "a"}]]}
    await send(client, service, to, other)

    await ann.write("1")

    assert await clicks(client) == ["a"]


async def test_a_question_of_the_day_before_yesterday_takes_no_number(
    client: httpx2.AsyncClient, service: Service, ann: Writer, clock: FakeClock
) -> None:
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)
    clock.advance(2 * 24 * 3600)

    await ann.write("1")

    assert await clicks(client) == []


@pytest.mark.both_databases
async def test_a_number_answers_what_the_bot_has_said_last(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)
    await send(client, service, to, {"text": "How many guests?"})

    await ann.write("2")

    tickets = (await client.get("/v1/tickets")).json()["data"]
    assert await clicks(client) == []
    assert [ticket["subject"] for ticket in tickets] == ["2"]


async def test_a_number_in_a_conversation_is_said_to_the_agent(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)
    await ann.write("May I bring somebody?")
    [ticket] = (await client.get("/v1/tickets")).json()["data"]
    await post(client, f"/v1/tickets/{ticket['ticket_id']}/reply", {"text": "How many?"})
    await ann.write("2")

    shown = (await client.get(f"/v1/tickets/{ticket['ticket_id']}/messages")).json()
    said = [message["text"] for message in shown["data"]]
    assert await clicks(client) == []
    assert said[::-1] == ["May I bring somebody?", "How many?", "2"]


async def test_a_sign_in_stays_open_though_a_message_comes_between(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    to = await subscribe(client, ann)
    begun = await session(client)
    await ann.write(begun["start_messages"]["messenger_a"])
    await send(client, service, to, {"text": "Somebody signs in just now."})

    await ann.write("1")

    assert (await status(client, begun))["status"] == "confirmed"


async def test_a_sign_in_of_long_ago_takes_no_number_after_another_message(
    client: httpx2.AsyncClient, service: Service, ann: Writer, clock: FakeClock
) -> None:
    to = await subscribe(client, ann)
    begun = await session(client)
    await ann.write(begun["start_messages"]["messenger_a"])
    clock.advance(fallbacks.OWN_QUESTION_MS / 1000 + 1)
    await send(client, service, to, {"text": "How many guests?"})

    await ann.write("2")

    tickets = (await client.get("/v1/tickets")).json()["data"]
    assert [ticket["subject"] for ticket in tickets] == ["2"]


async def test_an_agents_answer_ends_even_a_sign_ins_question(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    await subscribe(client, ann)
    await ann.write("May I bring somebody?")
    [ticket] = (await client.get("/v1/tickets")).json()["data"]
    begun = await session(client)
    await ann.write(begun["start_messages"]["messenger_a"])
    await post(client, f"/v1/tickets/{ticket['ticket_id']}/reply", {"text": "How many?"})
    await settled(service)

    await ann.write("1")

    assert (await status(client, begun))["status"] == "pending"


async def test_a_forms_question_ends_what_was_offered_before(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    form = {
        "slug": "visit",
        "title": {"en": "Visit"},
        "fields": [{"key": "guests", "type": "number", "label": {"en": "How many?"}}],
    }
    await post(client, "/v1/forms", form)
    to = await subscribe(client, ann)
    await send(client, service, to, QUESTION)

    await ann.write("start form_visit")
    await ann.write("1")

    assert await clicks(client) == []


async def test_a_ticket_is_rated_by_a_number(
    client: httpx2.AsyncClient, service: Service, ann: Writer
) -> None:
    await subscribe(client, ann)
    await ann.write("It is broken")
    ticket = (await client.get("/v1/tickets")).json()["data"][0]
    await client.patch(f"/v1/tickets/{ticket['ticket_id']}", json={"status": "closed"})
    await settled(service)

    await ann.write("4")

    now = (await client.get(f"/v1/tickets/{ticket['ticket_id']}")).json()
    assert (now["status"], now["csat_score"]) == ("closed", 4)


async def test_a_sign_in_on_a_channel_that_nobody_can_answer_is_refused(
    client: httpx2.AsyncClient, service: Service, check_error: Callable[..., None]
) -> None:
    service.channels["messenger_a"].capabilities = Capabilities(buttons="links")

    answer = await client.post("/v1/auth/session", json={"channel": "messenger_a"})

    check_error(answer, 400, "validation_failed")
    assert answer.json()["error"] == "channel: people can't answer a bot on messenger_a"


async def test_what_is_offered_can_be_read_by_nobody_who_has_the_database(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant, ann: Writer
) -> None:
    begun = await session(client)
    start = begun["start_messages"]["messenger_a"]
    await ann.write(start)

    async with service.db.read() as tx:
        rows = [
            *await tx.fetch_all("SELECT * FROM core_offers"),
            *await tx.fetch_all("SELECT * FROM core_start_codes"),
        ]
    kept = " ".join(str(value) for row in rows for value in row)

    assert len(rows) == 2
    assert "auth" not in kept
    assert start.removeprefix("start ") not in kept


def message(*labels: str, text_format: Any = "plain") -> OutgoingMessage:
    row = tuple(Button(label, data=label) for label in labels)
    return OutgoingMessage("Well?", format=text_format, buttons=(row,))


def test_labels_that_are_numbers_stand_for_themselves() -> None:
    offered = fallbacks.choices_of(message("47", "1", "Cancel"))

    assert [(each.number, each.label) for each in offered] == [
        (None, "47"),
        (None, "1"),
        (2, "Cancel"),
    ]
    assert fallbacks.pressed("1", offered) == offered[1]


@pytest.mark.parametrize("text", ["3", "yes please", "", "01", "1 2"])
def test_other_words_press_nothing(text: str) -> None:
    assert fallbacks.pressed(text, fallbacks.choices_of(message("Yes", "No"))) is None


@pytest.mark.parametrize("text_format", ["markdown", "html"])
def test_labels_are_no_markup(service: Service, text_format: Any) -> None:
    channel = service.channels["messenger_a"]
    shown = fallbacks.in_words(
        message("<b>*a*_b_", text_format=text_format), service.texts.into("en"), answered=True
    )

    spans = "".join(span.text for span in channel.appearance(shown))

    assert "1 - <b>*a*_b_" in spans


@pytest.mark.parametrize("lang", ["en", "ru"])
def test_buttons_in_words_take_no_more_than_is_reckoned(service: Service, lang: str) -> None:
    channel = service.channels["messenger_a"]
    channel.capabilities = Capabilities(buttons="words", max_text_length=300)
    rows = tuple(
        tuple(Button("x" * 10, data=f"{row}{place}") for place in range(3)) for row in range(3)
    )
    longest = next(
        length
        for length in range(300, 0, -1)
        if channel.problem(OutgoingMessage("a" * length, buttons=rows)) is None
    )

    shown = fallbacks.in_words(
        OutgoingMessage("a" * longest, buttons=rows), service.texts.into(lang), answered=True
    )

    assert len(shown.text) <= 300


async def test_the_doctor_names_a_channel_on_which_nobody_can_answer(service: Service) -> None:
    service.channels["messenger_a"].capabilities = Capabilities(buttons="links")

    found = [finding async for finding in check_channels(service)]

    assert [each.text for each in found if each.level == "warning"] == [
        "users can't reply to a bot there, so it can't be used for sign-in"
    ]
