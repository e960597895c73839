"""Sends that name a template: rendered at the call, for whoever gets it."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from tests.api.conftest import CheckError, Send, Subscribe
from tests.api.reading import message_of


@pytest.fixture
async def hello(client: httpx2.AsyncClient) -> str:
    body = {
        "key": "hello",
        "text": {"en": "Hello <b>{{ name }}</b>", "ru": "Привет, <b>{{ name }}</b>"},
        "format": "html",
        "buttons": [
            [{"text": "{{ name }}", "data": "{{ code }}"}],
            [{"text": "Go", "url": "https://shop.example/{{ name }}"}],
        ],
    }
    answer = await client.post("/v1/templates", json=body)
    assert answer.status_code == 201, answer.text
    return "hello"


def greeting(subscriber_id: str, **variables: Any) -> dict[str, Any]:
    variables = {"name": "Ann", "code": "c", **variables}
    return {"subscriber_id": subscriber_id, "template": "hello", "variables": variables}


async def test_everybody_gets_the_template_in_their_language(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    hello: str,
    channel: RecordingChannel,
) -> None:
    for name, lang in (("Ann", "en"), ("Olga", "ru"), ("Jan", "nl")):
        subscriber_id = await subscribe(name, lang=lang)
        answer = await client.post("/v1/send", json=greeting(subscriber_id, name=name))
        assert answer.status_code == 202, answer.text
    await settled(service)

    texts = [text for text in channel.texts if "subscribed" not in text and "подпис" not in text]
    assert texts == ["Hello <b>Ann</b>", "Привет, <b>Olga</b>", "Hello <b>Jan</b>"]
    last = channel.sent[-1].message
    assert last.format == "html"
    assert last.buttons[1][0].url == "https://shop.example/Jan"


async def test_a_name_can_t_become_markup(
    service: Service, client: httpx2.AsyncClient, ann: str, hello: str, channel: RecordingChannel
) -> None:
    await client.post("/v1/send", json=greeting(ann, name='<a href="https://evil.example">x</a>'))
    await settled(service)

    sent = channel.sent[-1].message
    assert sent.text.startswith("Hello <b>&lt;a href=")
    url = sent.buttons[1][0].url or ""
    assert url.startswith("https://shop.example/%3Ca%20href%3D")


async def test_a_value_is_shown_as_it_is_where_the_templates_format_can_not_say_it(
    service: Service, client: httpx2.AsyncClient, ann: str, channel: RecordingChannel
) -> None:
    body = {"key": "order", "text": "Order *No* `{{ id }}", "format": "markdown"}
    await client.post("/v1/templates", json=body)

    for number in ("7", "`7`"):
        send = {"subscriber_id": ann, "template": "order", "variables": {"id": number}}
        assert (await client.post("/v1/send", json=send)).status_code == 202
    await settled(service)

    shown = [(call.message.text, call.message.format) for call in channel.sent[-2:]]
    assert shown == [("Order *No* `7", "markdown"), ("Order <i>No</i> ``7`", "html")]


async def test_a_later_change_does_not_reach_a_queued_message(
    service: Service, client: httpx2.AsyncClient, ann: str, hello: str, channel: RecordingChannel
) -> None:
    answer = await client.post("/v1/send", json=greeting(ann))
    await client.patch("/v1/templates/hello", json={"text": "Changed", "buttons": []})
    await client.delete("/v1/templates/hello")
    await settled(service)

    message = await message_of(client, answer.json()["message_id"])
    assert message["text"] == "Hello <b>Ann</b>"
    assert (message["status"], channel.texts[-1]) == ("sent", "Hello <b>Ann</b>")


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"name": None}, "variables.name: must be a text, a number, or true or false"),
        ({"name": ["Ann"]}, "variables.name: must be a text, a number, or true or false"),
        ({"name": {"first": "Ann"}}, "variables.name: must be a text, a number, or true or false"),
        ({"first name": "Ann"}, "variables.first name"),
        ({"name": "x" * 65}, "template: once rendered, buttons[0][0].text: "),
        ({"name": ""}, "template: once rendered, buttons[0][0].text: "),
        ({"name": "x" * 4001}, "template: once rendered, text: must be at most 4000 characters"),
        ({"code": "й" * 33}, "template: once rendered, buttons[0][0]: data must be at most 64"),
        ({"code": "~auth"}, "template: once rendered, buttons[0][0]: data must not begin with"),
        ({"name": ".."}, "variables.name: dots alone can't be part of an address"),
    ],
)
async def test_values_that_don_t_fit_are_refused_with_their_name(
    client: httpx2.AsyncClient,
    ann: str,
    hello: str,
    check_error: CheckError,
    variables: dict[str, Any],
    error: str,
) -> None:
    answer = await client.post("/v1/send", json=greeting(ann, **variables))

    assert check_error(answer, 400, "validation_failed")["error"].startswith(error)


async def test_markup_of_a_rendered_template_does_not_count(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    text = "**{{ name }}** [{{ name }}](https://shop.example/{{ url }})"
    body = {"key": "bold", "text": text, "format": "markdown"}
    url = "x" * 200
    assert (await client.post("/v1/templates", json=body)).status_code == 201
    answers = [
        await client.post(
            "/v1/send",
            json={
                "subscriber_id": ann,
                "template": "bold",
                "variables": {"name": "x" * length, "url": url},
            },
        )
        for length in (1999, 2000)
    ]

    assert answers[0].status_code == 202, answers[0].text
    error = check_error(answers[1], 400, "validation_failed")["error"]
    assert error == "template: once rendered, text: must be at most 4000 characters"


async def test_at_the_limits_a_rendered_template_is_taken(
    client: httpx2.AsyncClient, ann: str
) -> None:
    template = {"key": "long", "text": "{{ a }}", "buttons": [[{"text": "b", "data": "{{ d }}"}]]}
    await client.post("/v1/templates", json=template)
    variables = {"a": "й" * 4000, "d": "й" * 32}

    body = {"subscriber_id": ann, "template": "long", "variables": variables}
    answer = await client.post("/v1/send", json=body)

    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("name", ["name", "code"])
async def test_a_missing_variable_is_refused_at_the_call(
    client: httpx2.AsyncClient, ann: str, hello: str, check_error: CheckError, name: str
) -> None:
    body = greeting(ann)
    del body["variables"][name]

    answer = await client.post("/v1/send", json=body)

    error = check_error(answer, 400, "validation_failed")["error"]
    assert error == f"variables.{name}: is required by the template"
    assert (await client.get("/v1/messages")).json()["data"] == []


async def test_a_variable_of_another_language_s_text_is_required_too(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    template = {"key": "mixed", "text": {"en": "Hi", "ru": "Привет, {{ name }}"}}
    await client.post("/v1/templates", json=template)

    answer = await client.post("/v1/send", json={"subscriber_id": ann, "template": "mixed"})

    assert "variables.name" in check_error(answer, 400, "validation_failed")["error"]


async def test_a_variable_that_the_template_does_not_use_is_no_error(
    client: httpx2.AsyncClient, ann: str, hello: str
) -> None:
    answer = await client.post("/v1/send", json=greeting(ann, other=7))

    assert answer.status_code == 202


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "text: is required, unless template is given"),
        ({"text": None}, "text: is required, unless template is given"),
        ({"text": "Hi", "template": "hello"}, "text: can't be combined with template"),
        ({"template": "hello", "format": "html"}, "format: can't be combined with template"),
        (
            {"template": "hello", "media": {"type": "image", "url": "https://shop.example/a"}},
            "media: can't be combined with template",
        ),
        (
            {"template": "hello", "buttons": [[{"text": "A", "data": "a"}]]},
            "buttons: can't be combined with template",
        ),
        ({"text": "Hi", "variables": {}}, "variables: are for a template"),
    ],
)
async def test_a_send_has_a_text_or_a_template(
    client: httpx2.AsyncClient,
    ann: str,
    check_error: CheckError,
    fields: dict[str, Any],
    error: str,
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, **fields})

    assert check_error(answer, 400, "validation_failed")["error"].startswith(error)


async def test_a_send_by_a_template_that_is_not_there_is_not_found(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "template": "none"})

    assert "'none'" in check_error(answer, 404, "not_found")["error"]


async def test_what_else_a_send_says_goes_along_with_a_template(
    service: Service, client: httpx2.AsyncClient, ann: str, hello: str, channel: RecordingChannel
) -> None:
    body = {**greeting(ann), "silent": True, "metadata": {"order": 7}}

    answer = await client.post("/v1/send", json=body)
    await settled(service)

    message = await message_of(client, answer.json()["message_id"])
    assert channel.sent[-1].message.silent
    assert message["metadata"] == {"order": 7}


@pytest.mark.both_databases
async def test_sends_at_the_same_time_look_for_their_templates_together(
    service: Service,
    client: httpx2.AsyncClient,
    ann: str,
    hello: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    fetch_all = Tx.fetch_all

    async def counted(tx: Tx, sql: str, params: Any = None) -> Any:
        asked.append(sql)
        return await fetch_all(tx, sql, params)

    monkeypatch.setattr(Tx, "fetch_all", counted)
    answers = await asyncio.gather(
        *(client.post("/v1/send", json=greeting(ann)) for _ in range(20))
    )

    assert {answer.status_code for answer in answers} == {202}
    assert sum("core_templates" in sql for sql in asked) <= 3


async def test_a_template_is_sent_in_process_too(
    service: Service, send: Send, ann: str, hello: str, client: httpx2.AsyncClient
) -> None:
    project_id = (await client.get("/v1/project")).json()["project_id"]

    message = await service.messages.send(project_id, **greeting(ann, name=True, code=1.5))

    assert message.content.text == "Hello <b>true</b>"
    assert message.content.buttons[0][0].data == "1.5"
