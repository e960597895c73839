"""One attempt against a real server."""

import asyncio
import base64
import gzip
import hmac
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from typing import Any

import pytest

from msgsvc_core.security import dns
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.security.signing import new_secret, verify
from msgsvc_devkit import FakeClock
from msgsvc_devkit.work import PATIENCE_S
from msgsvc_webhooks.models import Attempt, Delivery
from msgsvc_webhooks.sender import Sender
from msgsvc_webhooks.settings import WebhookSettings

SECRET, OLD_SECRET = new_secret(), new_secret()
BODY = '{"event":"event.tracked","data":{"name":"Привет, \\u0000"}}'
DELIVERY = Delivery(
    project_id="prj_1",
    delivery_id="whd_1",
    webhook_id="whe_1",
    event_id="evt_1",
    event="event.tracked",
    body=BODY,
    status="pending",
    attempts=0,
    step=0,
    created_at_ms=0,
    first_attempt_at_ms=None,
    next_attempt_at_ms=0,
    finished_at_ms=None,
)


class Sending:
    """A sender with its own settings, open while a test runs."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._open: list[Sender] = []

    async def __call__(
        self,
        url: str,
        *,
        secrets: tuple[str, ...] = (SECRET,),
        cidrs: tuple[str, ...] = ("127.0.0.0/8",),
        prefix: str = "X-Service",
        **settings: Any,
    ) -> Attempt:
        sender = Sender(
            WebhookSettings(**{"attempt_timeout_s": 5, **settings}),
            OutboundGuard(cidrs, allow_http=True),
            self.clock,
            prefix,
        )
        self._open.append(sender)
        return await sender.send(url, DELIVERY, secrets)

    async def close(self) -> None:
        for sender in self._open:
            await sender.close()


@pytest.fixture
async def send() -> AsyncIterator[Sending]:
    sending = Sending()
    yield sending
    await sending.close()


async def test_body_arrives_byte_for_byte_with_a_valid_signature(send: Sending, receiver: Any):
    attempt = await send(receiver.url)
    (request,) = receiver.received

    assert (attempt.status_code, attempt.error, attempt.answer) == (200, None, "ok")
    assert request.body == BODY.encode()
    assert verify(request.body, request.headers["X-Service-Signature"], [SECRET])


async def test_headers_carry_the_metadata(send: Sending, receiver: Any):
    await send(receiver.url)
    headers = receiver.received[0].headers

    assert headers["X-Service-Delivery-Id"] == "whd_1"
    assert headers["X-Service-Event"] == "event.tracked"
    assert headers["X-Service-Timestamp"] == str(int(send.clock.time()))
    assert headers["X-Service-Signature"].startswith(f"t={int(send.clock.time())},v1=")
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "msgsvc"


async def test_prefix_of_the_headers_is_a_setting(send: Sending, receiver: Any):
    await send(receiver.url, prefix="X-Acme")
    headers = receiver.received[0].headers

    assert verify(BODY.encode(), headers["X-Acme-Signature"], [SECRET])
    assert not [name for name in headers if name.lower().startswith("x-service")]


async def test_standard_webhooks_headers_verify_with_the_decoded_secret(
    send: Sending, receiver: Any
):
    await send(receiver.url)
    headers = receiver.received[0].headers
    signed = f"whd_1.{headers['webhook-timestamp']}.{BODY}".encode()
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()

    assert headers["webhook-id"] == "whd_1"
    assert headers["webhook-signature"] == f"v1,{expected}"


async def test_every_valid_secret_signs(send: Sending, receiver: Any):
    await send(receiver.url, secrets=(SECRET, OLD_SECRET))
    headers = receiver.received[0].headers

    assert verify(BODY.encode(), headers["X-Service-Signature"], [SECRET])
    assert verify(BODY.encode(), headers["X-Service-Signature"], [OLD_SECRET])
    assert len(headers["webhook-signature"].split()) == 2


async def test_redirect_is_a_failure_and_not_followed(send: Sending, receiver: Any):
    receiver.then(receiver.answer(307, Location="/elsewhere"))

    attempt = await send(receiver.url)

    assert attempt.status_code == 307
    assert "redirect" in str(attempt.error)
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [300, 304, 399])
async def test_an_answer_that_leads_nowhere_is_called_no_redirect(
    send: Sending, receiver: Any, status: int
):
    receiver.then(receiver.answer(status))

    attempt = await send(receiver.url)

    assert (attempt.status_code, attempt.error) == (status, None)


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [
        ("gzip", gzip.compress),
        ("X-Gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", lambda text: text),
        ("gzip", lambda text: text),
        (" gzip ", lambda text: gzip.compress(text)[:-8]),
    ],
    ids=["gzip", "x-gzip", "deflate", "not-known", "not-as-it-says", "broken-off"],
)
async def test_a_compressed_answer_is_kept_readable(
    send: Sending, receiver: Any, coding: str, compressed: Callable[[bytes], bytes]
):
    said = b'{"error": "no such order"}'
    receiver.then(receiver.answer_bytes(compressed(said), Content_Encoding=coding))

    attempt = await send(receiver.url)

    assert attempt.answer == said.decode()


async def test_of_a_compressed_answer_the_start_is_kept(send: Sending, receiver: Any):
    said = b"".join(b"%d " % number for number in range(100_000))
    receiver.then(receiver.answer_bytes(gzip.compress(said), Content_Encoding="gzip"))

    attempt = await send(receiver.url)

    assert said.decode().startswith(attempt.answer)
    assert 1000 < len(attempt.answer) <= 2048


async def test_answer_that_trickles_is_given_up_at_the_time_limit(send: Sending, receiver: Any):
    receiver.always = receiver.trickle

    # As long as a busy machine may take to begin the answer, which has no end.
    attempt = await send(receiver.url, attempt_timeout_s=2)

    assert attempt.status_code == 200
    assert attempt.error == "no complete answer within 2 s"
    assert 1950 <= attempt.duration_ms < 30_000


async def test_receiver_that_never_answers_is_given_up_at_the_time_limit(send: Sending):
    hung_up = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        hung_up.set()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        # As long as a busy machine may take to connect.
        attempt = await send(f"http://127.0.0.1:{port}/", attempt_timeout_s=2)
        await asyncio.wait_for(hung_up.wait(), PATIENCE_S)

    assert attempt.status_code is None
    assert attempt.error == "no complete answer within 2 s"


async def test_only_the_limit_of_an_endless_answer_is_read(send: Sending, receiver: Any):
    receiver.always = receiver.flood

    attempt = await send(receiver.url)

    assert (attempt.status_code, attempt.error) == (200, None)
    assert attempt.answer == "x" * 2048
    # What the sockets' buffers hold was sent too.
    assert receiver.sent_bytes < 32 * 1024 * 1024


async def test_compressed_bomb_is_not_unpacked(send: Sending, receiver: Any):
    bomb = gzip.compress(b"\0" * 64 * 1024 * 1024)
    receiver.then(receiver.answer_bytes(bomb, Content_Encoding="gzip"))

    tracemalloc.start()
    attempt = await send(receiver.url)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (attempt.status_code, attempt.error) == (200, None)
    assert peak_bytes < 8 * 1024 * 1024


async def test_journal_text_is_storable_whatever_the_receiver_sends(send: Sending, receiver: Any):
    receiver.then(receiver.answer_bytes(b"\0\xff" + "ж".encode() * 2000))

    attempt = await send(receiver.url)

    assert attempt.answer.startswith("\ufffd\ufffdж")
    assert len(attempt.answer.encode()) < 2048 + 16


@pytest.mark.parametrize("value", [b"caf\xe9", b"\xff\xfe", b"a\xed\xa0\x80b"])
async def test_an_answer_with_a_header_that_is_not_utf8_is_recorded(
    send: Sending, value: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Served-By: " + value + b"\r\n\r\nok"
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        attempt = await send(f"http://127.0.0.1:{port}/")

    assert (attempt.status_code, attempt.error) == (200, None)
    served_by = dict(attempt.response_headers)["X-Served-By"]
    assert "\ufffd" in served_by
    assert served_by.encode()


async def test_an_answer_is_recorded_even_if_what_is_kept_of_it_fails(
    send: Sending, receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UnicodeError

    monkeypatch.setattr("msgsvc_webhooks.sender.Sender._read", fail)
    attempt = await send(receiver.url)

    assert (attempt.status_code, attempt.error, attempt.answer) == (200, None, "")


async def test_closed_port_is_a_failed_attempt(send: Sending):
    # Bound and not listening: nobody else gets it meanwhile.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        attempt = await send(f"http://127.0.0.1:{bound.getsockname()[1]}/")

    assert attempt.status_code is None
    assert attempt.error == "could not connect: Connection refused"
    assert not attempt.forbidden


async def test_connection_closed_without_an_answer_is_a_failed_attempt(
    send: Sending, receiver: Any
):
    receiver.always = receiver.hang_up

    attempt = await send(receiver.url)

    assert attempt.status_code is None
    assert attempt.error == "the connection was closed before an answer came"


async def test_answer_that_breaks_off_is_a_failed_attempt(send: Sending, receiver: Any):
    receiver.always = receiver.break_off

    attempt = await send(receiver.url)

    assert (attempt.status_code, attempt.error) == (200, "the answer broke off")


async def test_answer_that_is_no_http_is_a_failed_attempt(send: Sending):
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        attempt = await send(f"http://127.0.0.1:{port}/")

    assert attempt.status_code is None
    assert "no valid HTTP" in str(attempt.error)


async def test_address_that_is_not_public_is_never_connected_to(send: Sending, receiver: Any):
    attempt = await send(receiver.url, cidrs=())

    assert attempt.forbidden
    assert attempt.error == "the address 127.0.0.1 is not public"
    assert receiver.received == []


async def test_name_that_leads_to_a_private_address_is_never_connected_to(
    send: Sending, receiver: Any, monkeypatch: pytest.MonkeyPatch
):
    def ask(_host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(dns, "query_system", ask)
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")

    attempt = await send(url, cidrs=())

    assert attempt.error == "the host can't be resolved to public addresses"
    assert receiver.received == []


async def test_cookies_of_a_receiver_are_not_kept(send: Sending, receiver: Any):
    receiver.then(receiver.answer(200, Set_Cookie="session=1; Path=/"))
    sender = Sender(WebhookSettings(), OutboundGuard(["127.0.0.0/8"], True), FakeClock())

    await sender.send(receiver.url.replace("127.0.0.1", "localhost"), DELIVERY, [SECRET])
    await sender.send(receiver.url.replace("127.0.0.1", "localhost"), DELIVERY, [SECRET])
    await sender.close()

    assert len(receiver.received) == 2
    assert "Cookie" not in receiver.received[1].headers


@pytest.mark.parametrize(
    ("header", "expected_s"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("9" * 500, 999999999999.0),
    ],
)
async def test_retry_after_in_seconds(
    send: Sending, receiver: Any, header: str, expected_s: float | None
):
    receiver.then(receiver.answer(429, Retry_After=header))

    attempt = await send(receiver.url)

    assert attempt.retry_after_s == expected_s


async def test_retry_after_as_a_date(send: Sending, receiver: Any):
    date = formatdate(send.clock.time() + 300, usegmt=True)
    receiver.then(receiver.answer(503, Retry_After=date))

    attempt = await send(receiver.url)

    assert attempt.retry_after_s == 300


async def test_what_was_sent_and_came_back_is_told_without_the_secret(
    send: Any, receiver: Any
) -> None:
    receiver.then(receiver.answer(200, "ok", X_Trace="1"))
    attempt = await send(receiver.url, secrets=(SECRET, OLD_SECRET))

    sent = dict(attempt.request_headers)
    got = receiver.received[0].headers
    assert {name: got[name] for name in sent} == sent
    assert {"X-Service-Signature", "webhook-signature", "User-Agent", "Content-Type"} <= set(sent)
    assert ("X-Trace", "1") in attempt.response_headers
    assert SECRET.removeprefix("whsec_") not in str(attempt)


async def test_of_a_refused_target_nothing_was_sent(send: Any, receiver: Any) -> None:
    attempt = await send("http://user:word@127.0.0.1/")

    assert (attempt.request_headers, attempt.response_headers) == ((), ())
