"""Who takes too long at the door, and who may."""

import asyncio

import pytest

from tests.unit.server.conftest import DoorFactory

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: b"])
async def test_a_head_that_does_not_end_is_cut(make_door: DoorFactory, sent: bytes) -> None:
    door = await make_door()
    client = await door.connect(sent)

    await door.pass_time(9)
    before = door.open
    await door.pass_time(3)

    assert before == 1
    assert await client.is_closed()
    assert door.counted("connections_cut_total", reason="header") == 1


async def test_a_head_that_dribbles_in_is_cut_all_the_same(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(b"GET / HTTP/1.1\r\n")

    for _ in range(12):
        await client.send(b"X-A: b\r\n")
        await door.settle()
        await door.pass_time(1)

    assert await client.is_closed()


async def test_the_head_of_a_later_request_has_the_same_deadline(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(GET)
    await client.answer()
    await client.send(b"GET / HTTP/1.1\r\n")
    await door.settle()

    await door.pass_time(12)

    assert await client.is_closed()
    assert door.counted("connections_cut_total", reason="header") == 1


async def test_a_body_that_does_not_come_is_cut(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(HEAD + b"x" * 500)

    await door.pass_time(19)
    before = door.open
    await door.pass_time(4)

    assert before == 1
    assert await client.is_closed()
    assert door.counted("connections_cut_total", reason="body") == 1


async def test_a_slow_body_may_come_in_its_time(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(HEAD)

    for _ in range(50):
        await client.send(b"x" * 2000)
        await door.settle()
        await door.pass_time(1)
    status, _, body = await client.answer()

    assert (status, body) == (200, b"100000")


async def test_a_body_that_dribbles_in_is_cut(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(HEAD)

    for _ in range(25):
        client.push(b"x" * 10)
        await door.settle()
        await door.pass_time(1)

    assert await client.is_closed()


async def test_a_body_that_nobody_reads_any_more_is_cut_however_fast_it_comes(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    head = b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"
    client = await door.connect(head)
    await client.answer()

    for _ in range(25):
        client.push(b"x" * 100_000)
        await door.settle()
        await door.pass_time(1)

    assert await client.is_closed()
    assert door.counted("connections_cut_total", reason="body") == 1


async def test_an_idle_connection_is_closed_after_keep_alive(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(GET)
    await client.answer()

    await door.pass_time(70)
    before = door.open
    await door.pass_time(8)

    assert before == 1
    assert await client.is_closed()
    assert door.counted("connections_cut_total", reason="idle") == 1


async def test_the_time_in_which_the_server_stood_still_is_not_held_against_its_peers(
    make_door: DoorFactory,
) -> None:
    door = await make_door()
    idle = await door.connect(GET)
    await idle.answer()
    await door.connect(b"GET / HTTP/1.1\r\nHo")

    door.time.now += 3600
    await door.sweep()

    assert door.open == 2
    await door.pass_time(8)
    assert door.open == 2
    await door.pass_time(3)
    assert door.open == 1
    assert door.counted("connections_cut_total", reason="header") == 1


async def test_a_byte_that_begins_no_request_does_not_end_the_watch(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(GET)
    await client.answer()
    await client.send(b"\r\n")
    await door.settle()

    await door.pass_time(80)

    assert await client.is_closed()


@pytest.mark.parametrize("then", [b"", b"GET / HTTP/1.1\r\nHo"])
async def test_who_waits_for_an_answer_is_not_cut(make_door: DoorFactory, then: bytes) -> None:
    door = await make_door()
    await door.connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" + then)

    await door.pass_time(3600)

    assert door.open == 1


async def test_a_slow_download_goes_on_as_long_as_it_moves(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    began = door.time.now
    await client.reader.readuntil(b"\r\n\r\n")

    for _ in range(16):
        await client.reader.readexactly(1 << 19)
        await door.settle()
        await door.pass_time(30)

    # What is left when the kernel has the last of it reaches the client whatever we do.
    assert door.time.now - began == 480
    assert door.counted("connections_cut_total", reason="send") == 0


async def test_who_reads_nothing_of_its_answer_is_cut(make_door: DoorFactory) -> None:
    door = await make_door()
    client = await door.connect()
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
    await client.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    await door.settle()

    await door.pass_time(59)
    before = door.open
    # On a busy machine the system's buffers may take some more meanwhile, from which on the time counts anew.
    for _ in range(10):
        await door.pass_time(5)
        await door.settle()
        if not door.open:
            break
        await door.pass_time(59)

    assert (before, door.open) == (1, 0)
    assert door.counted("connections_cut_total", reason="send") == 1


async def test_a_hundred_half_heads_don_t_hold_up_another(make_door: DoorFactory) -> None:
    door = await make_door()
    await asyncio.gather(*(door.connect(b"GET / HTTP/1.1\r\n") for _ in range(100)))
    client = await door.connect(GET)

    status, _, _ = await client.answer()
    await door.pass_time(12)
    await door.until(lambda: door.open == 1)

    assert status == 200
