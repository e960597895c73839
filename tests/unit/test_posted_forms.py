"""Forms of pages that anybody can post to: what they hold, and that nothing else gets through."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge
from msgsvc_core.pages import posting
from msgsvc_core.pages.posting import posted_values

ROOT = Path(__file__).parents[2]

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"


def posted(content_type: str | None, *chunks: bytes) -> Request:
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": number + 1 < len(chunks)}
        for number, chunk in enumerate(chunks)
    ]

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    headers = [] if content_type is None else [(b"content-type", content_type.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


async def values(content_type: str | None, *chunks: bytes) -> Sequence[tuple[str, object]]:
    form = await posted_values(posted(content_type, *chunks), max_bytes=1000, max_values=3)
    return form.multi_items()


def part(name: str, value: bytes, more: str = "") -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + value + b"\r\n"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (URLENCODED, b"a=1&a=%C3%A9&b="),
        (f"{URLENCODED}; charset=utf-8", b"a=1&a=%C3%A9&b="),
        (None, b"a=1&a=%C3%A9&b="),
        (MULTIPART, part("a", b"1") + part("a", "é".encode()) + part("b", b"") + b"--b--\r\n"),
    ],
)
async def test_values_in_either_encoding(content_type: str | None, body: bytes) -> None:
    assert await values(content_type, body[:5], body[5:]) == [("a", "1"), ("a", "é"), ("b", "")]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--b\r\n"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        (MULTIPART, b"no part at all"),
        (MULTIPART, b"--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--\r\n"),
        (MULTIPART, b"--b\r\nbroken\r\n\r\n1\r\n--b--\r\n"),
        (MULTIPART, part("a", b"x", '; filename="a.txt"') + b"--b--\r\n"),
        (MULTIPART, part("a", b"1") * 4 + b"--b--\r\n"),
        (f"{MULTIPART}; charset=utf-16", part("a", b"1") + b"--b--\r\n"),
        (f"{MULTIPART}; charset=punycode", part("a", b"\xff") + b"--b--\r\n"),
        (f"{MULTIPART}; charset=none", part("a", b"1") + b"--b--\r\n"),
        (URLENCODED, b"a=1&a=2&a=3&a=4"),
        (URLENCODED, b"a=\xff"),
    ],
)
async def test_what_is_no_form_is_a_bad_request_or_harmless(content_type: str, body: bytes) -> None:
    found: Sequence[tuple[str, object]] = []
    with suppress(BadRequest):
        found = await values(content_type, body)

    assert all(isinstance(text, str) and text.encode() for _, text in found)


@pytest.mark.parametrize("content_type", [URLENCODED, MULTIPART])
async def test_a_form_is_bounded(content_type: str) -> None:
    with pytest.raises(PayloadTooLarge):
        await values(content_type, part("a", b"1" * 600), b"1" * 600)
    with pytest.raises(BadRequest, match="ended early"):
        request = posted(content_type)
        await posted_values(request, max_bytes=1000, max_values=3)


async def test_values_can_be_stored() -> None:
    assert await values(URLENCODED, b"a=%00%ed%a0%80") == [("a", "\ufffd\ufffd\ufffd\ufffd")]


def test_no_page_reads_a_form_without_these_bounds() -> None:
    found = [
        str(path.relative_to(ROOT))
        for folder in ("msgsvc_core", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        if "/tests/" not in str(path) and re.search(r"request\.form\(", path.read_text("utf-8"))
    ]

    assert found == []


@given(st.lists(st.sampled_from(["%41", "%", "%C3", "%A9", "+", "a", "=", "&", "%2", "é"])))
# A busy machine draws slowly.
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_a_form_that_is_decoded_in_pieces_is_the_same(pieces: list[str]) -> None:
    body = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posting, "PIECE_BYTES", 3)
        found = await posting.urlencoded_pairs(body.encode(), max_values=100)

    assert found == parse_qsl(body, keep_blank_values=True)


async def test_others_get_their_turn_while_a_large_form_is_decoded() -> None:
    turns = 0

    async def wait() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(wait())
    await posting.urlencoded_pairs(b"a=" + b"%" * 1_000_000, max_values=1)
    other.cancel()

    assert turns > 10
