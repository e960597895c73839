"""What the door refuses, always in the envelope."""

import json
import resource

import pytest

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import check_open_files
from tests.unit.server.conftest import Client, DoorFactory

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


async def error_of(client: Client) -> tuple[int, str, dict[str, str]]:
    """Status, code and headers of an answer that must be the envelope."""
    status, headers, body = await client.answer()
    fields = json.loads(body)
    assert set(fields) == {"error", "code", "retryable", "docs_url"}
    assert fields["docs_url"].endswith(f"/docs/errors#{fields['code']}")
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"].startswith("req_")
    return status, fields["code"], headers


async def test_beyond_the_most_connections_there_is_a_503(make_door: DoorFactory) -> None:
    door = await make_door(max_connections=10)
    for _ in range(10):
        await door.connect()
    client = await door.connect(GET)

    status, code, headers = await error_of(client)

    assert (status, code) == (503, "unavailable")
    assert headers["retry-after"] == "1"
    assert headers["connection"] == "close"
    assert await client.is_closed()
    assert door.counted("connections_refused_total", reason="full") == 1


async def test_health_is_answered_when_all_connections_are_taken(make_door: DoorFactory) -> None:
    door = await make_door(max_connections=10)
    for _ in range(10):
        await door.connect()
    client = await door.connect(HEALTH)

    status, headers, _ = await client.answer()

    assert status == 200
    assert headers["connection"] == "close"


async def test_a_connection_made_in_time_is_served_when_all_are_taken(
    make_door: DoorFactory,
) -> None:
    door = await make_door(max_connections=10)
    first, *_ = [await door.connect() for _ in range(10)]
    await door.connect()

    await first.send(GET)
    status, headers, _ = await first.answer()

    assert status == 200
    assert "connection" not in headers


async def test_a_connection_beyond_the_most_has_little_time(make_door: DoorFactory) -> None:
    door = await make_door(max_connections=10)
    for _ in range(10):
        await door.connect()
    await door.connect(b"GET")

    await door.pass_time(4)
    await door.until(lambda: door.open == 10)

    assert door.counted("connections_cut_total", reason="header") == 1


async def test_far_beyond_it_a_connection_is_refused_unheard(make_door: DoorFactory) -> None:
    door = await make_door(max_connections=10)
    for _ in range(110):
        await door.connect()
    client = await door.knock()

    status, code, _ = await error_of(client)

    assert (status, code) == (503, "unavailable")


async def test_a_place_that_frees_is_given_again(make_door: DoorFactory) -> None:
    door = await make_door(max_connections=10)
    first, *_ = [await door.connect() for _ in range(10)]
    first.writer.close()
    await door.until(lambda: door.open == 9)
    client = await door.connect(GET)

    status, _, _ = await client.answer()

    assert status == 200


@pytest.mark.parametrize("step", [100, 4000, 1_000_000])
async def test_a_head_that_is_too_large_is_refused(make_door: DoorFactory, step: int) -> None:
    door = await make_door(max_header_bytes=5000)
    client = await door.connect()
    data = b"GET / HTTP/1.1\r\nHost: a\r\nX-A: " + b"b" * 20_000 + b"\r\n\r\n"
    for start in range(0, len(data), step):
        client.push(data[start : start + step])
        await door.settle()
        if door.counted("connections_refused_total", reason="head_too_large"):
            break

    status, code, _ = await error_of(client)

    assert (status, code) == (400, "bad_request")
    assert await client.is_closed()


async def test_the_url_counts_as_part_of_the_head(make_door: DoorFactory) -> None:
    door = await make_door(max_header_bytes=5000)
    client = await door.connect(b"GET /" + b"a" * 6000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")

    status, code, _ = await error_of(client)

    assert (status, code) == (400, "bad_request")


async def test_a_body_larger_than_a_head_may_be_is_no_large_head(make_door: DoorFactory) -> None:
    door = await make_door(max_header_bytes=5000)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n"
    client = await door.connect((head + b"x" * 60_000) * 2 + b"GET / HTTP/1.1\r\nHos")

    first = await client.answer()
    second = await client.answer()
    await client.send(b"t: a\r\n\r\n")
    third = await client.answer()

    assert [answer[0] for answer in (first, second, third)] == [200, 200, 200]
    assert [answer[2] for answer in (first, second, third)] == [b"60000", b"60000", b"0"]


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "endless", [b"a" * 1000, b"X-A: b\r\n" * 100], ids=["one trailer", "many trailers"]
)
async def test_trailers_without_end_are_cut(make_door: DoorFactory, endless: bytes) -> None:
    door = await make_door(max_header_bytes=5000)
    client = await door.connect(CHUNKED + b"1\r\nx\r\n0\r\nX-A: b\r\n")

    for _ in range(20):
        client.push(endless)
        await door.settle()
    await door.until(lambda: door.open == 0)

    assert await client.is_closed()


async def test_a_body_in_chunks_of_one_byte_is_taken(make_door: DoorFactory) -> None:
    door = await make_door(max_header_bytes=1024)
    client = await door.connect(CHUNKED)
    for _ in range(30):
        await client.send(b"1\r\nx\r\n" * 500)
        await door.settle()
    await client.send(b"0\r\n\r\n")

    status, _, body = await client.answer()

    assert (status, body) == (200, b"15000")


async def test_a_trailer_is_not_among_the_headers(make_door: DoorFactory) -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]  # any ASGI application
        while (await receive()).get("more_body"):
            pass
        seen.append(scope["headers"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    door = await make_door(app)
    await door.connect(CHUNKED + b"1\r\nx\r\n0\r\nX-Api-Key: late\r\n\r\n")
    await door.until(lambda: seen)

    assert b"x-api-key" not in dict(seen[0])


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS to a plain port
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET \xff / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
async def test_what_is_not_http_gets_the_envelope(make_door: DoorFactory, data: bytes) -> None:
    door = await make_door()
    client = await door.connect(data)

    status, code, _ = await error_of(client)

    assert (status, code) == (400, "bad_request")
    assert await client.is_closed()
    assert door.counted("connections_refused_total", reason="not_http") == 1


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n",
    ],
    ids=["none", "twice", "two"],
)
async def test_a_request_names_exactly_one_host(make_door: DoorFactory, data: bytes) -> None:
    door = await make_door()
    client = await door.connect(data)

    status, code, _ = await error_of(client)

    assert (status, code) == (400, "bad_request")
    assert await client.is_closed()


async def test_http_1_0_needs_no_host(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(b"GET / HTTP/1.0\r\n\r\n")

    status, _, _ = await client.answer()

    assert status == 200


@pytest.mark.parametrize(
    "data",
    [
        CHUNKED + b"zz\r\n",
        CHUNKED + b"1\r\nxyz\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    ],
    ids=["no size", "a longer chunk", "gzip", "gzip last"],
)
async def test_a_body_that_can_not_be_read_gets_the_envelope(
    make_door: DoorFactory, data: bytes
) -> None:
    door = await make_door()
    client = await door.connect(data)

    status, code, _ = await error_of(client)

    assert (status, code) == (400, "bad_request")
    assert await client.is_closed()


async def test_garbage_behind_a_request_does_not_mix_with_its_answer(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    client = await door.connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGARBAGE\r\n\r\n")

    async def read() -> bytes:
        return await client.reader.read()

    assert await read() == b""


async def test_an_upgrade_is_answered_as_if_it_had_not_been_asked_for(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    asking = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    client = await door.connect(asking)

    status, _, _ = await client.answer()

    assert status == 200


def test_more_connections_than_files_are_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, _limits: None)

    with pytest.raises(SettingsError, match=r"4096.*at most 3596"):
        check_open_files(ServerSettings(max_connections=5000))


def test_the_default_is_lowered_to_the_files_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: asked.append(limits))

    fitting = check_open_files(ServerSettings())

    assert fitting.max_connections == 3596
    assert asked == [(4096, 4096)]


def test_the_limit_of_files_is_raised_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 500_000))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: asked.append(limits))

    check_open_files(ServerSettings(max_connections=5000))

    assert asked == [(5500, 500_000)]
