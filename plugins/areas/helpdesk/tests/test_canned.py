"""Canned answers: kept per language, used by key with variables."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, Person, act, listed, post, refusal, told, virtual

PATH = "/v1/tickets/canned-answers"
HELLO = {
    "key": "hello",
    "title": "Greeting",
    "text": {
        "en": "Hello, **{{ name }}**!",
        "ru": 'Здравствуйте, **{{ name | default("друг") }}**!',
    },
    "format": "markdown",
}


async def test_each_customer_is_answered_in_their_language(
    client: httpx2.AsyncClient, service: Service, ann: Person, bob: Person
) -> None:
    await post(client, PATH, **HELLO)
    for person in (ann, bob):
        await person.subscribe(client)
        await person.write("Hi")
    bobs, anns = await listed(client)

    for ticket in (anns, bobs):
        await act(client, ticket, "reply", canned="hello", variables={"name": "*Mia*"})
    await settled(service)

    assert ann.shown == "Hello, **\\*Mia\\***!"
    assert bob.shown == "Здравствуйте, **\\*Mia\\***!"
    texts = [one[1] for one in await told(client, "text") if one[1]]
    assert texts == ["Hello, **\\*Mia\\***!", "Здравствуйте, **\\*Mia\\***!"]


@pytest.mark.both_databases
async def test_they_are_made_shown_changed_and_removed(client: httpx2.AsyncClient) -> None:
    made = await post(client, PATH, **HELLO)
    await post(client, PATH, key="bye", text="Bye")

    changed = await client.patch(f"{PATH}/hello", json={"text": "Hi {{ who }}"})
    one = await client.get(f"{PATH}/hello")
    page = (await client.get(f"{PATH}?limit=1")).json()
    rest = (await client.get(f"{PATH}?cursor={page['next_cursor']}")).json()
    gone = await client.delete(f"{PATH}/bye")

    assert (made["variables"], made["required_variables"]) == (["name"], ["name"])
    assert (changed.json()["text"], changed.json()["title"]) == ("Hi {{ who }}", "Greeting")
    assert one.json() == changed.json()
    assert [answer["key"] for answer in page["data"] + rest["data"]] == ["bye", "hello"]
    assert gone.status_code == 204
    for request in ("get", "delete"):
        answer = await getattr(client, request)(f"{PATH}/bye")
        assert refusal(answer) == (404, "not_found")
    assert refusal(await client.patch(f"{PATH}/bye", json={"title": "x"})) == (404, "not_found")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "body",
    [
        {"key": "Hello", "text": "Hi"},
        {"key": "a", "text": "{{ name"},
        {"key": "a", "text": {"fr": "Salut"}},
        {"key": "a", "text": " "},
        {"key": "a", "text": "x" * 4001},
        {"key": "a", "text": "<a {{ x }}>b</a>", "format": "html"},
        {"key": "a"},
        {"key": "a", "text": "Hi", "more": 1},
    ],
)
async def test_what_could_never_be_sent_is_refused(
    client: httpx2.AsyncClient, body: dict[str, Any]
) -> None:
    assert refusal(await client.post(PATH, json=body)) == (400, "validation_failed")


async def test_what_a_variable_lacks_is_named(client: httpx2.AsyncClient) -> None:
    await post(client, PATH, **HELLO)
    ticket = await virtual(client)

    answer = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json={"canned": "hello"})

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"] == "variables.name: is required by the template"


async def test_a_project_has_so_many_and_a_key_is_taken_once(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"canned_answers": 2}
    )
    tenant: Tenant = await make_tenant(service)
    await post(tenant.client, PATH, key="a", text="A")

    twice = await tenant.client.post(PATH, json={"key": "a", "text": "A"})
    await post(tenant.client, PATH, key="b", text="B")
    more = await tenant.client.post(PATH, json={"key": "c", "text": "C"})

    assert refusal(twice) == refusal(more) == (409, "conflict")
    assert "at most 2" in more.json()["error"]
