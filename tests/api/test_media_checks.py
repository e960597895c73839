"""Files of messages are looked at before any platform is called: what they are, and how large."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError
from msgsvc_core.channels import Media as OutgoingMedia
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.conftest import Send
from tests.api.file_host import MP4, PDF, PNG, File, FileHost, serving
from tests.api.reading import events_named, message_of

#: Limits that a test can reach; and nobody is put off because this machine is busy.
MEDIA: dict[str, Any] = {
    "allow_cidrs": ("127.0.0.0/8",),
    "check_wait_s": 10,
    "max_image_bytes": 100_000,
    "max_video_bytes": 300_000,
    "max_document_bytes": 200_000,
}

HTML = b"<!DOCTYPE html><title>Sign in</title>"
SVG = b'<?xml version="1.0"?><!-- a --><svg xmlns="http://www.w3.org/2000/svg"></svg>'
JPEG = b"\xff\xd8\xff\xe0" + bytes(64)


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(media=MEDIA)


@pytest.fixture
async def host() -> AsyncIterator[FileHost]:
    async for host in serving():
        yield host


class Sender:
    """Sends one message with a file, and tells what became of it."""

    def __init__(self, service: Service, client: httpx2.AsyncClient, send: Send) -> None:
        self._service, self._client, self._send = service, client, send

    async def __call__(self, kind: str, url: str, **media: str) -> dict[str, Any]:
        message_id = await self._send(media={"type": kind, "url": url, **media})
        await settled(self._service)
        return await message_of(self._client, message_id)


@pytest.fixture
def send_file(service: Service, client: httpx2.AsyncClient, send: Send) -> Sender:
    return Sender(service, client, send)


FIT = {
    "a png": ("image", File(PNG)),
    "a jpeg that calls itself text": ("image", File(JPEG, headers={"Content-Type": "text/plain"})),
    "a gif": ("image", File(b"GIF89a" + bytes(64))),
    "a webp": ("image", File(b"RIFF\0\0\0\0WEBPVP8 " + bytes(64))),
    "a heic photo": ("image", File(b"\0\0\0\x18ftypheic" + bytes(64))),
    "an mp4": ("video", File(MP4)),
    "a quicktime film": ("video", File(b"\0\0\0\x14ftypqt  " + bytes(64))),
    "a webm": ("video", File(b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0\x1fwebm" + bytes(64))),
    "a pdf": ("document", File(PDF)),
    "a picture as a document": ("document", File(PNG)),
    "a file that nobody knows": ("document", File(b"\x00\x01\x02")),
    "a file of the largest size": ("image", File(PNG.ljust(100_000, b"\0"))),
    "a file whose length is not told": ("image", File(tells_length=False)),
}


@pytest.mark.parametrize(("kind", "file"), FIT.values(), ids=FIT)
async def test_a_file_that_is_what_it_should_be_is_sent(
    send_file: Sender, host: FileHost, channel: RecordingChannel, kind: str, file: File
) -> None:
    message = await send_file(kind, host.put("file.bin", file))

    assert (message["status"], message["error"]) == ("sent", None)
    assert channel.sent[-1].message.media is not None


UNFIT = {
    "an svg": ("image", File(SVG), "it is no image but image/svg+xml"),
    "a page": ("image", File(HTML), "it is no image but text/html"),
    "a page that calls itself a picture": (
        "image",
        File(HTML, headers={"Content-Type": "image/png"}),
        "it is no image but text/html",
    ),
    "a page in place of a document": (
        "document",
        File(HTML),
        "it is a page (text/html), and not named so",
    ),
    "a picture that is a page too": (
        "image",
        File(b"GIF89a/*" + b"<script>alert(1)</script>"),
        "it is a page besides being image/gif",
    ),
    "a page that looks like a film": ("video", File(b"<!--ftypisom--><html>"), "text/html"),
    "a picture as a video": ("video", File(PNG), "it is no video but image/png"),
    "a video as a picture": ("image", File(MP4), "it is no image but video/mp4"),
    "a heic photo as a video": ("video", File(b"\0\0\0\x18ftypheic"), "it is no video"),
    "text as a picture": ("image", File(b"hello"), "it is no image"),
    "an empty file": ("image", File(b""), "it is empty"),
    "an empty file of no told length": ("document", File(b"", tells_length=False), "it is empty"),
    "a byte too much": ("image", File(PNG.ljust(100_001, b"\0")), "larger than 100000 bytes"),
    "too much for a document": (
        "document",
        File(PDF.ljust(200_001, b"\0")),
        "larger than 200000 bytes",
    ),
    "too much for a video": ("video", File(MP4.ljust(300_001, b"\0")), "larger than 300000 bytes"),
    "too much that is not told": (
        "image",
        File(PNG.ljust(100_001, b"\0"), tells_length=False),
        "larger than 100000 bytes",
    ),
    "a body without an end": ("image", File(tells_length=False, endless=True), "larger than"),
    "what is gone": ("image", File(status=410), "its host answered 410"),
    "what needs a password": ("image", File(status=401), "its host answered 401"),
    "a part of it": ("image", File(status=206), "its host answered 206"),
    "a compressed bomb": (
        "document",
        File(gzip.compress(bytes(10_000_000)), headers={"Content-Encoding": "gzip"}),
        "its host sends it compressed",
    ),
}


@pytest.mark.parametrize(("kind", "file", "why"), UNFIT.values(), ids=UNFIT)
async def test_a_file_that_will_not_do_fails_its_message_before_any_platform_is_called(
    send_file: Sender,
    client: httpx2.AsyncClient,
    host: FileHost,
    channel: RecordingChannel,
    kind: str,
    file: File,
    why: str,
) -> None:
    before = len(channel.sent)
    message = await send_file(kind, host.put("file.bin", file))

    assert (message["status"], message["reason"]) == ("failed", "invalid_message")
    assert message["error"].startswith("media.url: ")
    assert why in message["error"]
    assert len(channel.sent) == before
    (data,) = await events_named(client, "delivery.failed")
    assert (data["reason"], data["retryable"]) == ("invalid_message", False)


async def test_of_a_file_without_an_end_no_more_than_the_limit_is_read(
    send_file: Sender, host: FileHost
) -> None:
    await send_file("image", host.put("x", File(tells_length=False, endless=True)))

    # What was under way in the sockets' buffers comes on top.
    assert host.written < 100_000 + 8_000_000


async def test_of_a_file_whose_length_is_told_the_beginning_is_read_alone(
    make_service: ServiceFactory, host: FileHost
) -> None:
    limits = {**MEDIA, "max_video_bytes": 50_000_000}
    service = await make_service(media=limits, jobs={"runner": "none"})
    content = MP4.ljust(50_000_000, b"\0")
    media = OutgoingMedia("video", host.put("film.mp4", File(content)))

    await service.media.inspect(media)

    assert host.written < len(content)


@pytest.mark.parametrize("named_by", ["address", "filename"])
async def test_a_page_that_is_named_so_is_a_document(
    send_file: Sender, host: FileHost, named_by: str
) -> None:
    if named_by == "address":
        message = await send_file("document", host.put("report.html", File(HTML)))
    else:
        message = await send_file("document", host.put("1", File(HTML)), filename="report.html")

    assert message["status"] == "sent"


async def test_where_a_host_sends_us_on_the_file_there_counts(
    send_file: Sender, host: FileHost
) -> None:
    host.put("real.png")
    url = host.put("moved", File(b"", 302, {"Location": f"{host.url}/real.png"}))

    assert (await send_file("image", url))["status"] == "sent"
    assert host.asked == ["moved", "real.png"]


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://192.168.0.1/x.png", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("ftp://example.com/x.png", "its host sends us on to what is no address"),
        ("/loop", "its host sends us on more than 5 times"),
    ],
)
async def test_a_host_can_not_send_us_where_we_do_not_go(
    send_file: Sender, host: FileHost, location: str, why: str
) -> None:
    url = host.put("loop", File(b"", 302, {"Location": location}))

    message = await send_file("image", url)

    assert (message["status"], message["reason"]) == ("failed", "invalid_message")
    assert why in message["error"]


async def test_a_file_in_our_own_network_is_not_asked_for(
    make_service: ServiceFactory, host: FileHost
) -> None:
    service = await make_service(media={}, jobs={"runner": "none"})

    with pytest.raises(DeliveryError, match="not public"):
        await service.media.inspect(OutgoingMedia("image", host.put("x.png")))
    assert host.asked == []


async def test_a_host_that_is_away_is_asked_again_within_the_usual_attempts(
    service: Service,
    send_file: Sender,
    client: httpx2.AsyncClient,
    host: FileHost,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    first = await send_file("image", host.put("x.png", File(status=503)))
    host.put("x.png")
    clock.advance(2)
    await settled(service)

    assert (first["status"], first["attempts"]) == ("queued", 1)
    assert first["error"] == "media.url: its host answered 503"
    message = await message_of(client, first["message_id"])
    assert (message["status"], message["attempts"], message["error"]) == ("sent", 2, None)
    assert channel.sent[-1].message.media is not None


async def test_a_host_that_stays_away_fails_the_message_as_a_platform_would(
    service: Service,
    send_file: Sender,
    client: httpx2.AsyncClient,
    host: FileHost,
    clock: FakeClock,
) -> None:
    message = await send_file("image", host.put("x.png", File(status=503)))
    attempts = service.settings.limits.delivery_attempts
    for _ in range(attempts):
        clock.advance(400)
        await settled(service)

    message = await message_of(client, message["message_id"])
    assert (message["status"], message["reason"]) == ("failed", "platform_unavailable")
    assert message["attempts"] == attempts == len(host.asked)
    (data,) = await events_named(client, "delivery.failed")
    assert (data["retryable"], data["error"]) == (True, "media.url: its host answered 503")


async def test_without_the_check_nobody_is_asked(
    make_service: ServiceFactory, host: FileHost
) -> None:
    service = await make_service(media={**MEDIA, "check": False}, jobs={"runner": "none"})

    assert (
        await service.get(MessageFiles).check_of(OutgoingMedia("image", host.put("x.png"))) is None
    )
    assert host.asked == []
