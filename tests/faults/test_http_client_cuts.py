"""A connection that ends anywhere in a request or a response: nothing is sent twice, and all that may have
arrived is in doubt."""

import pytest

from msgsvc_core.http_client import CallError, ConnectionLost, NotConnected
from tests.faults.scripted_server import (
    CALL_S,
    End,
    Script,
    ScriptedServer,
    answer,
    chunked,
    client,
)

pytestmark = pytest.mark.faults

BODY = b'{"chat_id":"1","text":"once"}'

RESPONSES = {
    "length": answer(b'{"ok":true}', b"Content-Type: application/json"),
    "chunks": chunked(b'{"ok"', b":true}", trailers=b"X-Sum: 1\r\n"),
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer(b'{"ok":true}'),
}


async def request_size() -> int:
    """Bytes of the request that these tests make."""
    async with ScriptedServer(scripts=[Script([answer()])]).running() as server, client() as http:
        await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)
    return len(server.requests[0])


@pytest.mark.parametrize("end", ["closed", "reset"])
async def test_a_connection_that_ends_at_any_byte_of_a_request_leaves_it_in_doubt(end: End) -> None:
    size = await request_size()
    async with ScriptedServer().running() as server, client() as http:
        for cut in range(size + 1):
            server.scripts = [Script(end=end, read_bytes=cut)]
            with pytest.raises(ConnectionLost) as lost:
                await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)
            assert lost.value.sent

    assert server.connections == size + 1


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "fresh"])
@pytest.mark.parametrize("end", ["closed", "reset"])
@pytest.mark.parametrize("response", RESPONSES)
async def test_a_connection_that_ends_at_any_byte_of_a_response_leaves_the_request_in_doubt(
    response: str, end: End, kept: bool
) -> None:
    whole = RESPONSES[response]
    async with ScriptedServer().running() as server, client() as http:
        for cut in range(len(whole)):
            server.requests.clear()
            server.scripts = [Script([whole[:cut]], end)]
            if kept:
                server.scripts.insert(0, Script([answer()], "kept"))
                await http.request("GET", server.url, timeout_s=CALL_S)
            with pytest.raises(ConnectionLost) as lost:
                await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)
            assert lost.value.sent
            assert len(server.requests) == 1 + kept

        server.scripts = [Script([whole], end)] if end == "closed" else [Script([whole], "kept")]
        assert (await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)).status == 200


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 16, 64])
@pytest.mark.parametrize("response", RESPONSES)
async def test_a_response_in_pieces_of_any_size_is_read_whole(response: str, size: int) -> None:
    whole = RESPONSES[response]
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script(pieces, "kept"), Script(pieces, "kept")]
        for _ in range(2):
            got = await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)
            assert (got.status, got.body) == (200, b'{"ok":true}')

    assert server.connections == 1


async def test_a_server_that_does_not_listen_was_sent_nothing() -> None:
    async with ScriptedServer().running() as server:
        url = server.url
    async with client() as http:
        with pytest.raises(NotConnected) as refused:
            await http.request("POST", url, body=BODY, timeout_s=CALL_S)

    assert not refused.value.sent


async def test_a_kept_connection_that_was_closed_while_unused_is_not_used() -> None:
    async with ScriptedServer().running() as server, client() as http:
        for number in range(20):
            server.scripts = [Script([answer()], "closed")]
            await http.request("POST", server.url, body=BODY, timeout_s=CALL_S)
            await server.has_ended(number + 1)

    assert server.connections == 20


async def test_a_response_that_nobody_asked_for_is_taken_for_no_other() -> None:
    forged = answer(b"forged")
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([answer(b"first") + forged], "kept"), Script([answer(b"second")])]
        first = await http.request("GET", server.url, timeout_s=CALL_S)
        second = await http.request("GET", server.url, timeout_s=CALL_S)

    assert (first.body, second.body) == (b"first", b"second")
    assert server.connections == 2


@pytest.mark.parametrize("beyond", [b"H", b"HTTP/1.1 200 OK\r\n", b"\0", b"garbage"])
async def test_half_of_a_response_that_nobody_asked_for_ends_the_connection(beyond: bytes) -> None:
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([answer(b"first") + beyond], "kept"), Script([answer(b"2nd")])]
        first = await http.request("GET", server.url, timeout_s=CALL_S)
        second = await http.request("GET", server.url, timeout_s=CALL_S)

    assert (first.body, second.body) == (b"first", b"2nd")


async def test_a_call_that_was_given_up_leaves_no_response_behind() -> None:
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [
            Script([answer()], "kept"),
            Script([], "kept"),
            Script([answer(b"second")]),
        ]
        # Connecting has half of a call's time, which may be too short on a busy machine.
        await http.request("GET", server.url, timeout_s=CALL_S)
        with pytest.raises(CallError) as late:
            await http.request("POST", server.url, body=BODY, timeout_s=0.2)
        assert late.value.sent
        second = await http.request("GET", server.url, timeout_s=CALL_S)

    assert second.body == b"second"
    assert server.connections == 2
