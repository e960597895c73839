"""One exchange: a small answer leaves in one piece, and what is unusual goes uvicorn's way."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from msgsvc_core.server.exchange import MOST_TOGETHER, Exchange

DATE = (b"date", b"Sun, 22 Nov 2026 09:00:00 GMT")


class Wire:
    """What uvicorn asks of a transport; keeps each piece that was written."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class Answered:
    """An exchange whose application sends `messages`."""

    def __init__(self, method: str = "GET", *, keep_alive: bool = True) -> None:
        self.wire = Wire()
        self.ended = 0
        transport = cast("asyncio.Transport", self.wire)
        logger = logging.getLogger(__name__)
        self.exchange = Exchange(
            scope=cast("Any", {"method": method, "type": "http"}),
            transport=transport,
            flow=FlowControl(transport),
            logger=logger,
            access_logger=logger,
            access_log=False,
            default_headers=[DATE],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self._end,
        )

    def _end(self) -> None:
        self.ended += 1

    async def by(self, *messages: dict[str, Any]) -> list[bytes]:
        for message in messages:
            await self.exchange.send(cast("Any", message))
        return self.wire.pieces


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


async def test_a_small_answer_leaves_in_one_piece() -> None:
    answered = Answered()

    pieces = await answered.by(start(length(2), status=202), body(b"{}"))

    assert pieces == [
        b"HTTP/1.1 202 Accepted\r\ndate: Sun, 22 Nov 2026 09:00:00 GMT\r\ncontent-length: 2\r\n\r\n{}"
    ]
    assert answered.exchange.response_complete
    assert answered.ended == 1


async def test_a_stream_begins_with_its_head_at_once() -> None:
    answered = Answered()

    assert len(await answered.by(start((b"content-type", b"text/event-stream")))) == 1
    assert await answered.by(body(b"data: 1\n\n", more=True)) == [
        answered.wire.pieces[0],
        b"9\r\ndata: 1\n\n\r\n",
    ]
    assert b"transfer-encoding: chunked" in answered.wire.pieces[0]


async def test_a_body_in_parts_comes_whole() -> None:
    pieces = await Answered().by(start(length(4)), body(b"ab", more=True), body(b"cd"))

    assert b"".join(pieces).endswith(b"\r\n\r\nabcd")


async def test_a_long_body_is_not_copied_into_its_head() -> None:
    size = MOST_TOGETHER + 1

    pieces = await Answered().by(start(length(size)), body(b"x" * size))

    assert [len(piece) for piece in pieces[1:]] == [size]


@pytest.mark.parametrize(
    ("answered", "headers", "ending"),
    [
        (Answered("HEAD"), [length(2)], b"content-length: 2\r\n\r\n"),
        (Answered(keep_alive=False), [length(2)], b"connection: close\r\n\r\n{}"),
        (Answered(), [length(2), (b"connection", b"close")], b"connection: close\r\n\r\n{}"),
    ],
    ids=["head", "old client", "closing"],
)
async def test_what_is_unusual_is_as_uvicorn_has_it(
    answered: Answered, headers: Sequence[tuple[bytes, bytes]], ending: bytes
) -> None:
    pieces = await answered.by(start(*headers), body(b"{}"))

    assert b"".join(pieces).endswith(ending)
    assert answered.ended == 1


async def test_a_server_that_stops_meanwhile_closes_the_connection() -> None:
    answered = Answered()

    await answered.by(start(length(2)))
    answered.exchange.keep_alive = False
    pieces = await answered.by(body(b"{}"))

    assert b"connection: close" in pieces[0]
    assert answered.wire.is_closed


@pytest.mark.parametrize("breaking", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\0b"])
async def test_a_header_can_not_begin_another_line(breaking: bytes) -> None:
    answered = Answered()

    with pytest.raises(RuntimeError, match="Invalid HTTP header value"):
        await answered.by(start(length(2), (b"location", breaking)), body(b"{}"))

    assert answered.wire.pieces == []


@pytest.mark.parametrize("declared", [1, 3])
async def test_a_wrong_length_is_an_error(declared: int) -> None:
    with pytest.raises(RuntimeError, match="Content-Length"):
        await Answered().by(start(length(declared)), body(b"{}"))
