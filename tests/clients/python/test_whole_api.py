"""Every method, event and error of the document in the Python client, by the document's own examples."""

import inspect
import json
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import pytest

from contrib.clients.codegen.contract import Contract, Method
from contrib.clients.codegen.generate import DOCUMENT
from contrib.clients.codegen.python_client import identifier
from msgsvc_client import AsyncClient, AsyncPaginator, Client, Page
from msgsvc_client._async.downloads import AsyncDownload
from msgsvc_client._model import Model
from msgsvc_client.events import UnknownEvent, event_from_data
from tests.clients.python.fakes import Answer, stage

CONTRACT = Contract.read(DOCUMENT)
METHODS = {".".join(method.dotted): method for method in CONTRACT.methods}


def operation_of(method: Method) -> dict[str, Any]:
    found: dict[str, Any] = CONTRACT.document["paths"][method.path][method.http_method.lower()]
    return found


def arguments(method: Method, body: dict[str, Any]) -> dict[str, Any]:
    """The document's examples as arguments."""
    given = {
        parameter["name"]: parameter["example"]
        for parameter in map(CONTRACT.resolved, operation_of(method)["parameters"])
        if parameter["required"] and parameter["in"] != "header"
    }
    if method.takes_file:
        given |= {"content": b"content", "filename": "a.txt"}
    return given | {identifier(name): value for name, value in body.items()}


def answer_of(method: Method) -> Answer:
    content = operation_of(method)["responses"][str(method.status)].get("content", {})
    body = content.get("application/json", {}).get("example", b"id\r\n1\r\n")
    return Answer(method.status, body)


async def result_of(asked: Any) -> Any:
    if isinstance(asked, AsyncPaginator):
        return await asked.first_page()
    if isinstance(asked, AsyncDownload):
        return await asked.read()
    return await asked


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_sends_the_example_and_reads_its_answer(name: str) -> None:
    method = METHODS[name]
    content = operation_of(method).get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("example", {})
    answer = answer_of(method)
    made = stage(answer)

    asked = attrgetter(name)(made.client)(**arguments(method, body))
    result = await result_of(asked)

    (request,) = made.transport.requests
    assert request.method == method.http_method
    assert urlsplit(request.url).path.count("/") == method.path.count("/")
    assert ("Idempotency-Key" in request.headers) == method.takes_idempotency_key
    if method.body:
        assert json.loads(request.content or b"") == body
    if method.answer:
        assert isinstance(result, Model | Page)
        assert result.raw == answer.body
    elif method.media_type:
        assert result == answer.body
    else:
        assert result is None


@pytest.mark.parametrize("event", CONTRACT.events, ids=lambda event: event.name)
def test_an_event_is_read_as_its_class(event: Any) -> None:
    content = CONTRACT.document["webhooks"][event.name]["post"]["requestBody"]["content"]

    read = event_from_data(content["application/json"]["example"])

    assert type(read).__name__ == event.class_name
    assert read.name == event.name
    assert read.event_id.startswith("evt_")


def test_an_event_of_another_shape_is_an_unknown_one() -> None:
    read = event_from_data({"event": "auth.completed", "data": {"event_id": "evt_1"}})

    assert isinstance(read, UnknownEvent)
    assert (read.name, read.event_id) == ("auth.completed", "evt_1")


async def test_the_sync_side_has_the_same_methods_with_the_same_arguments() -> None:
    async with AsyncClient("msk_x", "https://msgsvc.example") as client:
        with Client("msk_x", "https://msgsvc.example") as sync:
            differing = [
                name
                for name in METHODS
                if inspect.signature(attrgetter(name)(client)).parameters
                != inspect.signature(attrgetter(name)(sync)).parameters
            ]

    assert differing == []
