"""The whole way: a service, its API, and people with telephones."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.sms import FakeSmsCentre, Person, Text
from msgsvc_otp import plugin as otp
from msgsvc_sms import plugin

from .conftest import UNLIMITED

pytestmark = pytest.mark.both_databases


@pytest.fixture
async def service(make_service: ServiceFactory, centre: FakeSmsCentre) -> Service:
    return await make_service(
        extra_plugins=[("sms", plugin), ("auth", auth), ("otp", otp)],
        use_clock=SystemClock(),
        channels={"sms": {**centre.settings, **UNLIMITED, "trusts_senders": True}},
    )


async def shown(person: Person, text: str) -> Text:
    """The message with that text, waited for."""

    async def found() -> list[Text]:
        return [each for each in person.messages if text in each.text]

    return (await until(found))[-1]


async def events(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    """The events of that name, at least one, waited for."""

    async def found() -> list[dict[str, Any]]:
        answer = await client.get("/v1/events", params={"event": name})
        return [event["data"] for event in answer.json()["data"]]

    return await until(found)


async def add(client: httpx2.AsyncClient, person: Person) -> str:
    added = await client.post("/v1/subscribers", json={"channel": "sms", "address": person.number})
    assert added.status_code == 201, added.text
    return str(added.json()["subscriber_id"])


async def test_a_person_signs_in_by_a_text_and_a_numbered_reply(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, centre: FakeSmsCentre, ann: Person
) -> None:
    session = (await client.post("/v1/auth/session", json={"state": "xyz"})).json()
    link = session["links"]["sms"]
    assert link.startswith("sms:+4915110000000?body=start%20auth_")

    centre.write(ann, link.partition("body=")[2].replace("%20", " "))
    asked = await shown(ann, "Answer with the number.")
    assert "1 - Yes" in asked.text
    centre.write(ann, "1")
    [completed] = await events(client, "auth.completed")

    assert (completed["state"], completed["channel"]) == ("xyz", "sms")
    async with service.db.read() as tx:
        found = await service.contacts.find(
            tx, tenant.project.project_id, completed["subscriber_id"]
        )
    assert found.phone == ann.number


async def test_a_code_to_a_number_is_verified(
    client: httpx2.AsyncClient, centre: FakeSmsCentre, ann: Person
) -> None:
    sent = await client.post(
        "/v1/otp/send", json={"channel": "sms", "address": ann.number, "purpose": "login"}
    )
    assert sent.status_code == 202, sent.text
    text = (await shown(ann, "code")).text
    code = next(word.strip(".,:") for word in text.split() if word.strip(".,:").isdigit())
    verified = await client.post(
        "/v1/otp/verify", json={"otp_id": sent.json()["otp_id"], "code": code}
    )

    assert verified.status_code == 200, verified.text


async def test_a_message_is_reported_as_delivered(client: httpx2.AsyncClient, ann: Person) -> None:
    subscriber_id = await add(client, ann)
    buttons = [[{"text": "Yes", "data": "y"}, {"text": "Shop", "url": "https://shop.example"}]]
    sent = await client.post(
        "/v1/send", json={"subscriber_id": subscriber_id, "text": "Lunch?", "buttons": buttons}
    )
    message_id = sent.json()["message_id"]
    [delivered] = await events(client, "delivery.delivered")

    assert delivered["message_id"] == message_id
    assert ann.messages[0].text == (
        "Lunch?\n\nShop: https://shop.example\n\n1 - Yes\nAnswer with the number."
    )


@pytest.fixture
async def untrusted(make_service: ServiceFactory, centre: FakeSmsCentre) -> Service:
    """Where anybody could write in the name of a number."""
    return await make_service(
        extra_plugins=[("sms", plugin), ("auth", auth)],
        use_clock=SystemClock(),
        channels={"sms": {**centre.settings, **UNLIMITED}},
    )


async def test_a_forged_reply_does_not_answer_a_sign_in(
    untrusted: Service, make_tenant: Any, centre: FakeSmsCentre, ann: Person
) -> None:
    client = (await make_tenant(untrusted)).client
    body = {"channel": "sms", "address": ann.number, "must_prove": ["phone"]}
    session = (await client.post("/v1/auth/session", json=body)).json()
    path = f"/v1/auth/session/{session['session_id']}/status"
    asked = await shown(ann, "Yes: http")
    [page] = re.findall(r"Yes: https?://[^/]+(/b/[0-9a-f]+/[0-9]+)", asked.text)
    for text in ("1", "Yes"):
        centre.write(ann, text)
    looked = await client.get(page)
    before = (await client.get(path)).json()

    attempt = re.search(r'name="attempt" value="([0-9a-f]+)"', looked.text)
    assert attempt is not None, looked.text
    await client.post(page, data={"attempt": attempt[1]})
    [completed] = await events(client, "auth.completed")
    code = (await client.get(path)).json()["code"]
    verified = (await client.post("/v1/auth/verify", json={"code": code})).json()

    assert "Answer with the number" not in asked.text
    assert before["status"] == "pending"
    assert (completed["proves"], verified["proves"]) == ("phone", "phone")


async def test_a_numbered_reply_is_a_press(
    client: httpx2.AsyncClient, centre: FakeSmsCentre, ann: Person
) -> None:
    subscriber_id = await add(client, ann)
    buttons = [[{"text": "Yes", "data": "y"}, {"text": "No", "data": "n"}]]
    sent = await client.post(
        "/v1/send", json={"subscriber_id": subscriber_id, "text": "Lunch?", "buttons": buttons}
    )
    await shown(ann, "Lunch?")
    await events(client, "delivery.success")
    centre.write(ann, "2")
    [clicked] = await events(client, "button.clicked")

    assert (clicked["message_id"], clicked["data"]) == (sent.json()["message_id"], "n")


async def test_a_project_connects_its_own_account_at_the_operators_centre(
    make_service: ServiceFactory, make_tenant: Any, centre: FakeSmsCentre, ann: Person
) -> None:
    of_operator = {name: centre.settings[name] for name in ("host", "port", "tls")}
    service = await make_service(
        extra_plugins=[("sms", plugin)],
        use_clock=SystemClock(),
        own_channels={"settings": {"sms": of_operator}},
    )
    client = (await make_tenant(service)).client
    mine = {
        name: value
        for name, value in centre.settings.items()
        if name not in of_operator and name != "plugin"
    }
    added = await client.post(
        "/v1/channels", json={"name": "texts", "plugin": "sms", "settings": mine}
    )
    refused = await client.post(
        "/v1/channels",
        json={"name": "other", "plugin": "sms", "settings": {**mine, "host": "10.0.0.1"}},
    )
    person = await client.post("/v1/subscribers", json={"channel": "texts", "address": ann.number})
    sent = await client.post(
        "/v1/send", json={"subscriber_id": person.json()["subscriber_id"], "text": "Hello"}
    )
    assert sent.status_code == 202, sent.text
    await shown(ann, "Hello")

    assert added.status_code == 201, added.text
    assert "fake-pw1" not in added.text
    assert (refused.status_code, "only the operator" in refused.text) == (400, True)


async def test_stop_ends_messages_and_start_brings_them_back(
    client: httpx2.AsyncClient, centre: FakeSmsCentre, ann: Person
) -> None:
    subscriber_id = await add(client, ann)
    centre.write(ann, "СТОП")

    async def status(wanted: str) -> bool:
        found = (await client.get(f"/v1/subscribers/{subscriber_id}")).json()
        return (found["status"] == "active") == (wanted == "active")

    await until(lambda: status("stopped"))
    sent = await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "News"})

    async def skipped() -> bool:
        found = (await client.get(f"/v1/messages/{sent.json()['message_id']}")).json()
        return str(found["status"]) == "skipped"

    await until(skipped)
    centre.write(ann, "Start")
    await until(lambda: status("active"))
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Welcome back"})
    await shown(ann, "Welcome back")

    assert not any(each.text == "News" for each in ann.messages)


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        ("+49 (0)1512 0000001", 201),
        ("0049 1512 0000001", 201),
        ("01512 0000001", 201),
        ("+49 1512", 400),
        ("+999 1512 0000001", 400),
    ],
)
async def test_numbers_are_taken_as_people_write_them(
    make_service: ServiceFactory, make_tenant: Any, centre: FakeSmsCentre, typed: str, status: int
) -> None:
    service = await make_service(
        extra_plugins=[("sms", plugin), ("otp", otp)],
        use_clock=SystemClock(),
        default_country="DE",
        channels={"sms": {**centre.settings, **UNLIMITED}},
    )
    client = (await make_tenant(service)).client
    added = await client.post("/v1/subscribers", json={"channel": "sms", "address": typed})
    sent = await client.post(
        "/v1/otp/send", json={"channel": "sms", "address": typed, "purpose": "login"}
    )
    file = f"address\n{typed}\n"
    started = await client.post(
        "/v1/people/imports", data={"channel": "sms"}, files={"file": ("people.csv", file)}
    )
    path = f"/v1/people/imports/{started.json()['import_id']}"

    async def imported() -> dict[str, Any] | None:
        state: dict[str, Any] = (await client.get(path)).json()
        return state if state["status"] == "completed" else None

    counts = await until(imported)

    assert added.status_code == status, added.text
    assert counts["refused"] == (0 if status == 201 else 1)
    if status == 201:
        assert added.json()["username"] == "+4915120000001"
        assert sent.status_code == 202
    else:
        assert "country" in added.text
        assert sent.status_code == 400
