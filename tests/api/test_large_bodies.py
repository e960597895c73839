"""Bodies of 300 MB and bodies that lie, over a real server: refused while they arrive."""

import http.client
import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.process import Deployment, Server

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made = Deployment(tmp_path_factory.mktemp("bodies"))
    made.configure("plugins = []\nchannels = {}")
    return made


@pytest.fixture(scope="module")
def key(deployment: Deployment) -> str:
    return deployment.create_key()


@pytest.fixture(scope="module")
def server(deployment: Deployment, key: str) -> Iterator[Server]:
    with deployment.serving() as serving:
        yield serving


def open_send(server: Server, key: str, *headers: str) -> socket.socket:
    """A connection on which the head of a `POST /v1/send` has been sent."""
    parts = urlsplit(server.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=30)
    head = [
        "POST /v1/send HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        *headers,
    ]
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    return connection


def push(connection: socket.socket, chunk: bytes, times: int) -> int:
    """Sends `chunk` until there is an answer; returns how many bytes went out."""
    sent = 0
    for _ in range(times):
        readable, _, _ = select.select([connection], [], [], 0)
        if readable:
            break
        connection.sendall(chunk)
        sent += len(chunk)
    return sent


def answer_of(connection: socket.socket) -> tuple[int, dict[str, object]]:
    """Status and JSON of the answer on a connection."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = http.client.parse_headers(stream)
        return status, json.loads(stream.read(int(headers["Content-Length"])))


def peak_memory(server: Server) -> int:
    """The most bytes of memory that the process ever held."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def test_300_mb_of_declared_length_are_refused_at_once(server: Server, key: str) -> None:
    with open_send(server, key, f"Content-Length: {300 * MIB}") as connection:
        status, envelope = answer_of(connection)

    assert (status, envelope["code"]) == (413, "payload_too_large")


def test_300_mb_in_chunks_are_refused_while_they_arrive(server: Server, key: str) -> None:
    before = peak_memory(server)
    chunk = b"%x\r\n%s\r\n" % (MIB, b" " * MIB)
    with open_send(server, key, "Transfer-Encoding: chunked") as connection:
        sent = push(connection, chunk, 300)
        status, envelope = answer_of(connection)

    assert (status, envelope["code"]) == (413, "payload_too_large")
    assert sent < 100 * MIB
    assert peak_memory(server) - before < 20 * MIB


def test_300_mb_sent_without_looking_still_get_their_answer(server: Server, key: str) -> None:
    before = peak_memory(server)
    with open_send(server, key, f"Content-Length: {300 * MIB}") as connection:
        for _ in range(300):
            connection.sendall(b" " * MIB)
        status, envelope = answer_of(connection)

    assert (status, envelope["code"]) == (413, "payload_too_large")
    assert peak_memory(server) - before < 20 * MIB


def test_300_mb_without_a_key_do_not_fill_the_memory(server: Server) -> None:
    before = peak_memory(server)
    with open_send(server, "msk_wrong", f"Content-Length: {300 * MIB}") as connection:
        push(connection, b" " * MIB, 300)

    assert peak_memory(server) - before < 20 * MIB


def test_a_chunk_that_lies_about_its_size_gets_no_500(server: Server, key: str) -> None:
    with open_send(server, key, "Transfer-Encoding: chunked", "Connection: close") as connection:
        connection.sendall(b'5\r\n{"text": "far longer than five"}\r\n0\r\n\r\n')
        connection.shutdown(socket.SHUT_WR)
        received = connection.recv(65536)

    assert not received or received.split()[1] == b"400"


def test_a_body_that_ends_early_leaves_the_server_well(server: Server, key: str) -> None:
    with open_send(server, key, "Content-Length: 1000") as connection:
        connection.sendall(b'{"text": ')
    answer = httpx2.get(f"{server.url}/readyz")

    assert answer.status_code == 200
