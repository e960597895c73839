"""No body of an endpoint keeps the event loop, whatever stands in place of one of its values.

The bodies are the examples of the API's own document, so a new endpoint is among them; its query and path are
filled in too.
"""

import json
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.http.openapi import openapi
from msgsvc_devkit.fixtures import ServiceFactory
from tests.faults.fuzzing import Reply
from tests.hostile.asking import Stranger, quoted
from tests.hostile.loop_steps import measured_steps, most_s
from tests.hostile.place import Place, furnish
from tests.hostile.test_public_pages import large_values, leaves, with_value
from tests.hostile.texts import BOUNDARY, FEW_UNITS, VALUE_UNITS, multipart, texts, urlencoded
from tests.paths import kinds_in

pytestmark = pytest.mark.slow

JSON = b"application/json"

#: Characters of a text: of the longest that a message may have. Longer ones are among `large_values`.
SIZES = (4_000,)

#: What stands in a path, and in a query.
PATH_UNITS = ("\u0301", "a")
QUERY_UNITS = ("\u0301", " ", "a,", "-", "9")

#: The endpoints are asked in so many tests, for as many processes.
PARTS = 4

Sending = tuple[str, Callable[[], Awaitable[Reply]]]


class Operation:
    """The requests to one endpoint."""

    def __init__(self, place: Place, endpoint: Endpoint, example: Any, client: Stranger) -> None:
        self._place = place
        self._endpoint = endpoint
        self._example = example
        self._client = client

    def __str__(self) -> str:
        return f"{self._endpoint.method} {self._endpoint.path}"

    def sendings(self) -> Iterator[Sending]:
        path = self._place.path(self._endpoint.path)
        yield "as described", self._ask(path, self._body())
        for parameter in kinds_in(self._endpoint.path):
            for name, text in texts(PATH_UNITS, (8_000,)):
                changed = self._place.path(self._endpoint.path, **{parameter: quoted(text)})
                yield f"{parameter}: {name}", self._ask(changed, self._body())
        fields = self._endpoint.query.model_fields if self._endpoint.query is not None else {}
        for field in fields:
            for name, text in texts(QUERY_UNITS, (24_000,)):
                query = urlencoded({field: text})[:28_000]
                yield f"?{field}: {name}", self._ask(path, self._body(), query)
        if self._endpoint.body is not None:
            yield from self._bodies(path)
        if self._endpoint.takes_upload:
            yield from self._uploads(path)

    def _bodies(self, path: str) -> Iterator[Sending]:
        known = self._known(self._example)
        for name, body in large_values(known):
            yield name, self._ask(path, body)
        for spot, value in leaves(known):
            for name, text in texts(VALUE_UNITS, SIZES) if isinstance(value, str) else ():
                yield f"{spot}: {name}", self._ask(path, _json(with_value(known, spot, text)))
        for spot, items in _lists(known):
            wrong = [0] * 35_000
            for longer in ((items * 1_000)[:1_000], (items * 15_000)[:15_000], wrong):
                body = _json(with_value(known, spot, longer))[:1_040_000]
                yield f"{spot}: {len(longer)} items", self._ask(path, body)

    def _uploads(self, path: str) -> Iterator[Sending]:
        declared = f"multipart/form-data; boundary={BOUNDARY}".encode()
        for name, content in files():
            body = multipart({}, {"file": ("a", content)})
            yield name, self._ask(path, body, content_type=declared)
        for name, text in texts(FEW_UNITS, (60_000, 1_000)):
            body = multipart({}, {"file": (text, b"a")})
            yield f"filename {name}", self._ask(path, body, content_type=declared)

    def _body(self) -> bytes:
        return b"" if self._endpoint.body is None else _json(self._known(self._example))

    def _known(self, value: Any, name: str = "") -> Any:
        """The example with what there is in place of its ids."""
        if isinstance(value, dict):
            return {key: self._known(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._known(inner, name.removesuffix("s")) for inner in value]
        return self._place.ids.get(name, value) if isinstance(value, str) else value

    def _ask(
        self, path: str, body: bytes, query: bytes = b"", content_type: bytes = JSON
    ) -> Callable[[], Awaitable[Reply]]:
        method = self._endpoint.method
        return lambda: self._client.ask(
            method, path, query=query, body=body, content_type=content_type
        )


def files() -> Iterator[tuple[str, bytes]]:
    """Files that a parser may take long for: tables and pictures."""
    head = b"address,first_name,tags,attributes,consent,language\n"
    for unit in (
        b",",
        b'"',
        b'""',
        b"\n",
        b"a,b\n",
        b'"\n"',
        b";",
        b"\r",
        b"a",
        b" \n",
        b"\xcc\x81",
    ):
        for before in (b"", head):
            yield f"a table of {unit!r}", before + unit * (5_000_000 // len(unit))
    row = b"a%d@example.com,Ann," + b"t," * 20 + b"{},yes,en\n"
    yield "many rows", head + b"".join(row % number for number in range(5_000))
    for unit in ("a,", "a;", "\u0301", " "):
        tags = '"' + unit * (100_000 // len(unit)) + '"'
        yield f"tags of {unit!r}", head + f"a@example.com,Ann,{tags},,,\n".encode() * 40
    for spot in range(6):
        for name, text in texts(FEW_UNITS, (100_000,)):
            cells = ["a@example.com", "Ann", "", "", "", ""]
            cells[spot] = '"' + text.replace('"', '""') + '"'
            yield f"cell {spot} {name}", head + ",".join(cells).encode() + b"\n"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">'
    for unit in (
        b"<g>",
        b"<path d='M0 0'/>",
        b"<!--",
        b"<",
        b"&amp;",
        b"&a;",
        b"<g a='b' ",
        b" a1='b'",
    ):
        yield f"a drawing of {unit!r}", svg + unit * (65_000 // len(unit))
    yield "a picture that grows", _png(1024, 1024, bytes(4 * 2 * 1024 * 1024))
    yield "a picture that grows beyond its size", _png(1, 1, bytes(60_000_000))
    yield "many parts of a picture", b"\x89PNG\r\n\x1a\n" + _chunk(b"IDAT", b"") * 5_000


def _png(width: int, height: int, pixels: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _lists(
    value: Any, spot: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if isinstance(value, list):
        yield spot, value or [0]
    for name, each in inner:
        yield from _lists(each, (*spot, name))


def examples(document: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The example of each operation's body, by method and path."""
    found = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            content = (
                described.get("requestBody", {}).get("content", {}).get("application/json", {})
            )
            shown = [content["example"]] if "example" in content else []
            shown += [each["value"] for each in content.get("examples", {}).values()]
            found[method.upper(), path] = shown[0] if shown else {}
    return found


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_endpoint_is_kept_by_what_stands_in_a_request(
    make_service: ServiceFactory, make_tenant: Any, part: int
) -> None:
    place = await furnish(make_service, make_tenant)
    endpoints = place.service.endpoints
    shown = examples(openapi(endpoints, "http://msgsvc.test"))
    client = Stranger(place.service.app, headers={"authorization": f"Bearer {place.tenant.key}"})
    slow: list[str] = []
    failed: list[str] = []
    with measured_steps() as steps:
        # What is deleted is asked for no more.
        for endpoint in sorted(endpoints[part::PARTS], key=lambda each: each.method == "DELETE"):
            operation = Operation(place, endpoint, shown[endpoint.method, endpoint.path], client)
            for name, send in operation.sendings():
                seconds, reply = await steps.of(send)
                if seconds > most_s():
                    slow.append(f"{operation} {name}: {seconds:.3f} s, {reply.status}")
                if reply.status >= 500 and reply.status != 503:
                    failed.append(f"{operation} {name}: {reply}")

    assert slow == []
    assert failed == []
