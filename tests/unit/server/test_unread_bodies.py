"""An answer that is out before its request is in: it arrives, and what still comes is dropped."""

import pytest

from tests.unit.server.conftest import DoorFactory

SIZE = 4 << 20

HEAD = b"POST /unread HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % SIZE


async def test_a_peer_that_wants_to_close_gets_its_answer_and_may_send_the_rest(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    client = await door.connect(HEAD)

    status, headers, _ = await client.answer()
    ended = await client.reader.read()
    await client.send(bytes(SIZE - 1))
    await door.settle()
    before = door.open
    await client.send(b"x")
    await door.until(lambda: not door.open)

    assert (status, headers["connection"]) == (200, "close")
    assert ended == b""
    assert before == 1


async def test_old_http_without_kept_connections_gets_its_answer_too(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    client = await door.connect(b"POST /unread HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % SIZE)

    status, _, _ = await client.answer()
    await client.send(bytes(SIZE))
    await door.until(lambda: not door.open)

    assert status == 200
    assert await client.is_closed()


async def test_a_body_that_does_not_end_after_its_answer_is_cut(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(HEAD)
    await client.answer()

    await door.pass_time(19)
    before = door.open
    await client.send(bytes(1000))
    await door.pass_time(3)

    assert before == 1
    await door.until(lambda: not door.open)
    assert door.counted("connections_cut_total", reason="body") == 1


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_nothing_behind_the_last_request_is_served(
    make_door: DoorFactory, version: bytes
) -> None:
    served: list[str] = []

    async def app(scope, receive, send):  # type: ignore[no-untyped-def] # as ASGI has it
        served.append(scope["path"])
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    door = await make_door(app)
    head = (
        b"POST /%%s HTTP/%b\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n" % version
    )
    client = await door.connect(head % b"first")
    await client.answer()
    client.push(b"body" + head % b"second" + b"body")
    await door.until(lambda: not door.open)

    assert served == ["/first"]
