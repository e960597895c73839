"""Templates: what may be kept, and the preview of what would be sent."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError

ORDER: dict[str, Any] = {
    "key": "order-sent",
    "text": {
        "en": 'Hi {{ name | default("you") }}, order **{{ order }}** is on its way',
        "ru": 'Здравствуйте, {{ name | default("вы") }}, заказ **{{ order }}** в пути',
    },
    "format": "markdown",
    "media": {"type": "image", "url": "https://shop.example/pictures/{{ order }}.png"},
    "buttons": [
        [
            {
                "text": {"en": "Where is {{ order }}?", "ru": "Где {{ order }}?"},
                "url": "https://shop.example/orders/{{ order }}?lang={{ lang }}",
            },
            {"text": "OK", "data": "seen {{ order }}"},
        ]
    ],
}
VARIABLES = {"order": "A*7/b", "lang": "en"}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a key with capitals": ({"key": "Order"}, "key: "),
    "a key of 65 characters": ({"key": "x" * 65}, "key: "),
    "an empty key": ({"key": ""}, "key: "),
    "no text": ({"text": {}}, "text: give a text"),
    "another language": ({"text": {"de": "Hallo"}}, "text: must be a text, or an object"),
    "a text of spaces": (
        {"text": {"en": "x", "ru": " "}},
        "text: must hold more than spaces",
    ),
    "an open variable": ({"text": {"ru": "Hi {{ name"}}, "text.ru: at character 4: "),
    "a filter": ({"text": "Hi {{ name | upper }}"}, "text: at character 4: "),
    "4,001 characters": ({"text": "x" * 4001}, "text: must be at most 4000 characters"),
    "16,001 characters": ({"text": "{{ name }}" * 1601}, "text: must be at most 16000 characters"),
    "a variable in a tag": ({"text": "<b {{ name }}>x</b>", "format": "html"}, "text: a variable"),
    "a variable in a tag of a block": ({"text": "<h2 {{ a }}>x</h2>", "format": "rich"}, "text: "),
    "a host": (
        {"buttons": [[{"text": "Go", "url": "https://{{ host }}/"}]]},
        "buttons[0][0].url: a variable can't be part of an address's host",
    ),
    "a whole address": (
        {"media": {"type": "image", "url": "{{ url }}"}},
        "media.url: a variable can't be the scheme",
    ),
    "a button's text": (
        {"buttons": [[{"text": {"ru": "{{"}, "data": "x"}]]},
        "buttons[0][0].text.ru: at character 1: ",
    ),
    "four rows": ({"buttons": [[{"text": "A", "data": "a"}]] * 4}, "buttons: at most 3 rows"),
    "four in a row": ({"buttons": [[{"text": "A", "data": "a"}] * 4]}, "buttons[0]: 1-3 buttons"),
    "a button without action": ({"buttons": [[{"text": "A"}]]}, "buttons[0][0]: "),
    "a button with two actions": (
        {"buttons": [[{"text": "A", "data": "a", "url": "https://shop.example"}]]},
        "buttons[0][0]: ",
    ),
    "a fixed script": (
        {"buttons": [[{"text": "A", "url": "javascript:alert(1)"}]]},
        "buttons[0][0].url: must be an http or https URL",
    ),
    "another field": ({"silent": True}, "silent: there is no such field"),
}


@pytest.fixture
async def order(client: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/v1/templates", json=ORDER)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_a_template_is_kept_with_its_variables(
    client: httpx2.AsyncClient, order: dict[str, Any]
) -> None:
    shown = (await client.get("/v1/templates/order-sent")).json()

    assert shown == order
    assert order["template_id"].startswith("tpl_")
    assert order["variables"] == ["name", "order", "lang"]
    assert order["required_variables"] == ["order", "lang"]
    assert order["text"] == ORDER["text"]
    assert order["media"] == {**ORDER["media"], "filename": None}
    ok = {"text": "OK", "url": None, "data": "seen {{ order }}", "style": None}
    assert order["buttons"][0][1] == ok


@pytest.mark.shared_service
@pytest.mark.parametrize(("fields", "begins"), REFUSED.values(), ids=REFUSED)
async def test_what_could_never_be_sent_is_refused_with_its_field(
    client: httpx2.AsyncClient, check_error: CheckError, fields: dict[str, Any], begins: str
) -> None:
    body = {"key": "hello", "text": "Hi", **fields}

    answer = await client.post("/v1/templates", json=body)

    code = "invalid_url" if ".url:" in begins else "validation_failed"
    assert check_error(answer, 400, code)["error"].startswith(begins)


async def test_a_taken_key_is_a_conflict(
    client: httpx2.AsyncClient, order: dict[str, Any], check_error: CheckError
) -> None:
    answer = await client.post("/v1/templates", json={"key": "order-sent", "text": "Hi"})

    check_error(answer, 409, "conflict")
    assert (await client.get("/v1/templates/order-sent")).json() == order


async def test_a_project_has_at_most_its_number_of_templates(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    check_error: CheckError,
) -> None:
    service = await make_service(limits={"templates": 2})
    client = (await make_tenant(service)).client
    for key in ("one", "two"):
        assert (await client.post("/v1/templates", json={"key": key, "text": "Hi"})).is_success

    answer = await client.post("/v1/templates", json={"key": "three", "text": "Hi"})

    assert "at most 2 templates" in check_error(answer, 409, "conflict")["error"]
    assert (await client.get("/v1/project")).json()["limits"]["templates"] == 2


async def test_what_no_channel_of_the_project_carries_is_refused_when_it_is_saved(
    service: Service, client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    short = {"key": "short", "text": "\N{PARTY POPPER}" * 9}
    for name in ("messenger_a", "messenger_b"):
        channel = service.channels[name]
        channel.capabilities = replace(channel.capabilities, text_unit="utf16", max_text_length=20)
    saved = await client.post("/v1/templates", json=short)
    refused = await client.post(
        "/v1/templates", json={**short, "key": "long", "text": "\N{PARTY POPPER}" * 11}
    )
    changed = await client.patch("/v1/templates/short", json={"text": "\N{PARTY POPPER}" * 11})
    service.channels["messenger_b"].capabilities = Capabilities()
    on_one = await client.patch("/v1/templates/short", json={"text": "\N{PARTY POPPER}" * 11})

    assert saved.status_code == 201
    assert "on messenger_a: text: " in check_error(refused, 400, "validation_failed")["error"]
    check_error(changed, 400, "validation_failed")
    assert on_one.status_code == 200


async def test_a_change_leaves_what_it_does_not_name(
    client: httpx2.AsyncClient, order: dict[str, Any], clock: FakeClock
) -> None:
    clock.advance(60)

    answer = await client.patch("/v1/templates/order-sent", json={"text": "Sent", "media": None})

    changed = answer.json()
    assert (changed["text"], changed["media"]) == ("Sent", None)
    same = ("key", "template_id", "format", "buttons", "created_at")
    assert {name: changed[name] for name in same} == {name: order[name] for name in same}
    assert changed["updated_at"] > order["updated_at"]
    assert (await client.get("/v1/templates/order-sent")).json() == changed


async def test_a_change_is_judged_with_what_stays(
    client: httpx2.AsyncClient, order: dict[str, Any], check_error: CheckError
) -> None:
    await client.patch("/v1/templates/order-sent", json={"text": "<{{ order }}> is on its way"})

    answer = await client.patch("/v1/templates/order-sent", json={"format": "html"})

    assert check_error(answer, 400, "validation_failed")["error"].startswith("text: a variable")


@pytest.mark.shared_service
@pytest.mark.parametrize("url", ["nonsense", "ftp://shop.example/x", "https://{{ host }}/x"])
@pytest.mark.parametrize("field", ["media", "buttons"])
async def test_a_wrong_url_is_invalid_url(
    client: httpx2.AsyncClient, check_error: CheckError, url: str, field: str
) -> None:
    shown = {"media": {"type": "image", "url": url}, "buttons": [[{"text": "Go", "url": url}]]}

    answer = await client.post(
        "/v1/templates", json={"key": "x", "text": "Hi", field: shown[field]}
    )

    check_error(answer, 400, "invalid_url")


@pytest.mark.shared_service
@pytest.mark.parametrize("body", [{"text": None}, {"buttons": None}, {"key": "other"}, {"text": 7}])
async def test_a_change_to_nonsense_is_refused(
    client: httpx2.AsyncClient,
    order: dict[str, Any],
    check_error: CheckError,
    body: dict[str, Any],
) -> None:
    answer = await client.patch("/v1/templates/order-sent", json=body)

    assert check_error(answer, 400, "validation_failed")["error"].startswith(next(iter(body)))
    assert (await client.get("/v1/templates/order-sent")).json() == order


async def test_a_deleted_template_is_gone(
    client: httpx2.AsyncClient, order: dict[str, Any], check_error: CheckError
) -> None:
    answer = await client.delete("/v1/templates/order-sent")

    assert answer.status_code == 204
    check_error(await client.get("/v1/templates/order-sent"), 404, "not_found")
    check_error(await client.delete("/v1/templates/order-sent"), 404, "not_found")


@pytest.mark.both_databases
async def test_templates_are_listed_newest_first(client: httpx2.AsyncClient) -> None:
    for key in ("a", "b", "c"):
        await client.post("/v1/templates", json={"key": key, "text": "Hi"})

    first = (await client.get("/v1/templates?limit=2")).json()
    rest = (await client.get("/v1/templates", params={"cursor": first["next_cursor"]})).json()

    assert [template["key"] for template in first["data"]] == ["c", "b"]
    assert [template["key"] for template in rest["data"]] == ["a"]


# ---- preview ---------------------------------------------------------------------------------------


async def test_a_preview_shows_the_message_in_every_language(
    client: httpx2.AsyncClient, order: dict[str, Any]
) -> None:
    answer = await client.post("/v1/templates/order-sent/preview", json={"variables": VARIABLES})

    english, russian = answer.json()["data"]
    assert (english["lang"], russian["lang"]) == ("en", "ru")
    assert english["text"] == r"Hi you, order **A\*7/b** is on its way"
    assert russian["text"] == r"Здравствуйте, вы, заказ **A\*7/b** в пути"
    assert english["media"]["url"] == "https://shop.example/pictures/A%2A7%2Fb.png"
    assert russian["buttons"] == [
        [
            {
                "text": "Где A*7/b?",
                "url": "https://shop.example/orders/A%2A7%2Fb?lang=en",
                "data": None,
                "style": None,
            },
            {"text": "OK", "url": None, "data": "seen A*7/b", "style": None},
        ]
    ]
    assert english["problems"] == []


async def test_a_preview_of_one_language_shows_that(
    client: httpx2.AsyncClient, order: dict[str, Any]
) -> None:
    body = {"variables": VARIABLES, "lang": "ru"}

    answer = await client.post("/v1/templates/order-sent/preview", json=body)

    assert [message["lang"] for message in answer.json()["data"]] == ["ru"]


async def test_a_preview_names_variables_that_nothing_takes(
    client: httpx2.AsyncClient, order: dict[str, Any]
) -> None:
    body = {"variables": {**VARIABLES, "nmae": "Ann"}}

    answer = await client.post("/v1/templates/order-sent/preview", json=body)

    assert answer.json()["unused"] == ["nmae"]


async def test_a_preview_says_what_a_channel_would_refuse(client: httpx2.AsyncClient) -> None:
    template = {"key": "empty", "text": "<b>{{ a }}</b>", "format": "html"}
    await client.post("/v1/templates", json=template)

    answer = await client.post("/v1/templates/empty/preview", json={"variables": {"a": ""}})

    problem = "text: shows nothing but markup"
    assert answer.json()["data"][0]["problems"] == [
        {"channel": "messenger_a", "problem": problem},
        {"channel": "messenger_b", "problem": problem},
    ]


async def test_a_preview_without_a_variable_is_refused(
    client: httpx2.AsyncClient, order: dict[str, Any], check_error: CheckError
) -> None:
    answer = await client.post("/v1/templates/order-sent/preview", json={})

    error = check_error(answer, 400, "validation_failed")["error"]
    assert error == "variables.order: is required by the template"


async def test_a_preview_of_what_is_not_there_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    check_error(await client.post("/v1/templates/none/preview", json={}), 404, "not_found")
