"""The corked transport: what is written in one turn of the loop leaves in one piece, and in order."""

import asyncio

import pytest

from msgsvc_core.server.buffered_transport import MOST_HELD, BufferedTransport


class Wire(asyncio.Transport):
    """What reaches the connection, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.end: str | None = None

    def write(self, data: bytes) -> None:  # type: ignore[override] # we write nothing but bytes
        assert self.end is None, "written after the end"
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "aborted"

    def is_closing(self) -> bool:
        return self.end is not None

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
async def corked(wire: Wire) -> BufferedTransport:
    return BufferedTransport(wire, asyncio.get_running_loop())


async def test_head_and_body_leave_in_one_piece(corked: BufferedTransport, wire: Wire) -> None:
    corked.write(b"head ")
    corked.write(b"body")
    assert wire.pieces == []
    assert corked.get_write_buffer_size() == 9

    await asyncio.sleep(0)

    assert wire.pieces == [b"head body"]
    assert corked.get_write_buffer_size() == 0


async def test_what_is_written_later_leaves_by_itself(
    corked: BufferedTransport, wire: Wire
) -> None:
    for text in (b"one", b"two"):
        corked.write(text)
        await asyncio.sleep(0)

    assert wire.pieces == [b"one", b"two"]


async def test_a_long_answer_leaves_as_it_comes(corked: BufferedTransport, wire: Wire) -> None:
    corked.write(b"x" * MOST_HELD)
    assert wire.pieces == []
    corked.write(b"y")

    assert [len(piece) for piece in wire.pieces] == [MOST_HELD + 1]


async def test_closing_sends_what_is_held_first(corked: BufferedTransport, wire: Wire) -> None:
    corked.write(b"bye")
    corked.close()
    assert wire.pieces == [b"bye"]
    assert wire.end == "closed"

    await asyncio.sleep(0)

    assert corked.is_closing()


async def test_aborting_sends_nothing_more(corked: BufferedTransport, wire: Wire) -> None:
    corked.write(b"bye")
    corked.abort()
    await asyncio.sleep(0)

    assert wire.pieces == []
    assert wire.end == "aborted"
