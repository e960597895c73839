"""Files of pages, compressed for who takes it."""

import gzip
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.pages.static_files import CompressedFiles

STYLES = "p { color: red; }\n" * 200


@pytest.fixture
def client(tmp_path: Path) -> httpx2.AsyncClient:
    (tmp_path / "page.css").write_text(STYLES)
    (tmp_path / "font.woff2").write_bytes(bytes(500))
    transport = httpx2.ASGITransport(app=CompressedFiles(directory=tmp_path))
    return httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test")


async def raw(
    client: httpx2.AsyncClient, path: str, **headers: str
) -> tuple[bytes, httpx2.Headers]:
    async with client.stream("GET", path, headers=headers) as answer:
        return b"".join([part async for part in answer.aiter_raw()]), answer.headers


async def test_a_text_is_compressed_for_who_takes_it(client: httpx2.AsyncClient) -> None:
    small, headers = await raw(client, "/page.css", **{"Accept-Encoding": "gzip, br"})
    plain, others = await raw(client, "/page.css", **{"Accept-Encoding": "identity"})

    assert gzip.decompress(small) == plain == STYLES.encode()
    assert int(headers["content-length"]) == len(small) < len(plain) / 5
    assert headers["content-type"] == others["content-type"] == "text/css; charset=utf-8"
    assert headers["vary"] == others["vary"] == "Accept-Encoding"
    assert "content-encoding" not in others


async def test_pictures_and_parts_of_files_are_as_they_are(client: httpx2.AsyncClient) -> None:
    font, headers = await raw(client, "/font.woff2", **{"Accept-Encoding": "gzip"})
    part, of_part = await raw(
        client, "/page.css", **{"Accept-Encoding": "gzip", "Range": "bytes=0-4"}
    )

    assert (font, "content-encoding" in headers) == (bytes(500), False)
    assert (part, "content-encoding" in of_part) == (STYLES.encode()[:5], False)


async def test_a_compressed_file_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    first = await client.get("/page.css")
    again = await client.get("/page.css", headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["content-encoding"] == "gzip"
    assert again.status_code == 304
    assert again.content == b""
