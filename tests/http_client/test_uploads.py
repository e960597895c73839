"""Uploads: the bytes of a form, files that change while they are sent, and servers that don't read them."""

import asyncio
import io
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from python_multipart import parse_form

from msgsvc_core.http_client import ConnectionLost, FileUpload, HttpClient, Response, Upload
from msgsvc_devkit import until
from tests.faults.scripted_server import CALL_S, Script, ScriptedServer, answer, client
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import SOON_S

#: Bytes of a file that fills all buffers between client and server several times.
LARGE = 50 * 1024 * 1024

#: Bytes that client and server together may hold of it.
HELD = 2 * 1024 * 1024


@dataclass
class Form:
    """What a server understands of a form."""

    fields: list[tuple[str, str]] = field(default_factory=list)
    files: list[tuple[str, str, bytes]] = field(default_factory=list)


def understood(request: bytes) -> Form:
    """A form by python-multipart, which Starlette uses."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
    headers = {name.decode(): value for name, _, value in lines}
    form = Form()

    def on_field(found: Any) -> None:
        form.fields.append((found.field_name.decode(), (found.value or b"").decode()))

    def on_file(found: Any) -> None:
        found.file_object.seek(0)
        content = found.file_object.read()
        found.close()
        form.files.append((found.field_name.decode(), found.file_name.decode(), content))

    parse_form(headers, io.BytesIO(body), on_field, on_file)
    return form


async def post(http: HttpClient, url: str, upload: Upload) -> Response:
    return await http.request("POST", url, body=upload, timeout_s=CALL_S)


async def sent(upload: Upload) -> bytes:
    """The request as a server gets it."""
    async with ScriptedServer(scripts=[Script([answer()])]).running() as server, client() as http:
        assert (await post(http, server.url, upload)).status == 200
    return server.requests[0]


async def test_a_form_is_sent_as_the_standard_has_it() -> None:
    upload = Upload()
    upload.add_field("chat_id", "17")
    upload.add_file("photo", io.BytesIO(b"\r\n--x\0"), filename="a.png", content_type="image/png")
    upload.add_field("caption", "две\r\nстроки")

    head, _, body = (await sent(upload)).partition(b"\r\n\r\n")
    boundary = upload.content_type.removeprefix("multipart/form-data; boundary=").encode()

    assert b"\r\nContent-Type: " + upload.content_type.encode() in head
    assert head.endswith(b"\r\nContent-Length: %d" % upload.size)
    assert body == b"\r\n".join(
        [
            b"--" + boundary,
            b'Content-Disposition: form-data; name="chat_id"',
            b"",
            b"17",
            b"--" + boundary,
            b'Content-Disposition: form-data; name="photo"; filename="a.png"',
            b"Content-Type: image/png",
            b"",
            b"\r\n--x\0",
            b"--" + boundary,
            b'Content-Disposition: form-data; name="caption"',
            b"",
            "две\r\nстроки".encode(),
            b"--" + boundary + b"--",
            b"",
        ]
    )


async def test_a_server_understands_it() -> None:
    content = bytes(range(256)) * 2000
    upload = Upload()
    upload.add_field("chat_id", "17")
    upload.add_file("document", io.BytesIO(content), filename="отчёт.pdf")
    upload.add_file("empty", io.BytesIO(), filename="empty")

    form = understood(await sent(upload))

    assert form.fields == [("chat_id", "17")]
    assert form.files == [("document", "отчёт.pdf", content), ("empty", "empty", b"")]


@pytest.mark.parametrize(
    "name", ['say "hi".txt', "back\\slash", 'both\\"', "🚀.png", "a;b=c", "a'b", "", " ", "%22"]
)
async def test_a_name_arrives_as_it_is(name: str) -> None:
    upload = Upload()
    upload.add_field(name, "value")
    upload.add_file(name, io.BytesIO(b"content"), filename=f"f{name}")

    body = (await sent(upload)).partition(b"\r\n\r\n")[2]
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').encode()

    assert b'form-data; name="%b"\r\n' % quoted in body
    assert b'form-data; name="%b"; filename="f%b"\r\n' % (quoted, quoted) in body


@pytest.mark.parametrize("bad", ["\r", "\n", "\0", "\x1b", "\x7f", "\t"])
def test_a_control_character_in_a_name_or_type_is_refused(bad: str) -> None:
    def add_to(**options: str) -> None:
        names = {"name": "n", "filename": "f", **options}
        Upload().add_file(names.pop("name"), io.BytesIO(), **names)

    secret = f"s3cret{bad}X: y"
    attempts: list[Callable[[], None]] = [
        lambda: Upload().add_field(secret, "value"),
        lambda: add_to(name=secret),
        lambda: add_to(filename=secret),
        lambda: add_to(content_type=secret),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError, match="control characters") as refused:
            attempt()
        assert "s3cret" not in str(refused.value)


async def test_a_file_is_sent_from_where_it_stands() -> None:
    file = io.BytesIO(b"before|after")
    file.seek(7)
    upload = Upload()
    upload.add_file("document", file, filename="half.txt")

    assert file.tell() == 7
    assert understood(await sent(upload)).files == [("document", "half.txt", b"after")]


async def test_of_a_file_that_grows_only_what_was_announced_is_sent(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        file.write(b"begin")
        file.seek(0)
        upload = Upload()
        upload.add_file("document", file, filename="grows.txt")
        file.seek(5)
        file.write(b" and more")
        file.seek(0)

        assert understood(await sent(upload)).files == [("document", "grows.txt", b"begin")]


async def shorter_file(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        file.write(b"x" * 300_000)
        file.seek(0)
        upload = Upload()
        upload.add_file("document", file, filename="shrinks.txt")
        file.truncate(200_000)
        server = ScriptedServer(scripts=[Script([answer()], "kept")])
        async with server.running(), client(1) as http:
            async with asyncio.timeout(SOON_S):
                with pytest.raises(OSError, match="shorter"):
                    await post(http, server.url, upload)
                # The server waits for the rest, and learns that none will come.
                await server.has_ended(1)
                response = await http.request("GET", server.url, timeout_s=CALL_S)

    assert response.status == 200
    assert server.connections == 2


async def test_a_file_that_became_shorter_ends_the_call_and_the_connection(tmp_path: Path) -> None:
    await shorter_file(tmp_path)


class Broken(io.BytesIO):
    """A file on a disk that fails."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 0:
            raise OSError("the disk fails")
        return super().read(size)


async def test_a_file_that_cannot_be_read_ends_the_call_and_the_connection() -> None:
    upload = Upload()
    upload.add_file("document", Broken(b"x" * 300_000), filename="f")
    server = ScriptedServer(scripts=[Script([answer()], "kept")])
    async with server.running(), client(1) as http, asyncio.timeout(SOON_S):
        with pytest.raises(OSError, match="the disk fails"):
            await post(http, server.url, upload)
        await server.has_ended(1)


@dataclass
class Reader:
    """A server that reads a request by its own rules; `has_ended` once the client has closed."""

    #: Bytes of the body that are read before the answer; None for all.
    reads: int | None
    response: bytes
    closes: bool = False
    read: int = 0
    connections: int = 0
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            wanted = size if self.reads is None else self.reads
            while self.read < wanted:
                data = await reader.read(min(64 * 1024, wanted - self.read))
                if not data:
                    return
                self.read += len(data)
                # Slower than the client.
                await asyncio.sleep(0)
            writer.write(self.response)
            await writer.drain()
            if not self.closes:
                # It reads no more, and looks only whether the client is still there.
                while not writer.is_closing():
                    await asyncio.sleep(0.001)
                    if reader.at_eof() or reader.exception() is not None:
                        break
                    await reader.read(1024)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.has_ended.set()


def large_file(tmp_path: Path) -> IO[bytes]:
    """A file that takes no room on the disk."""
    file = (tmp_path / "large").open("w+b", buffering=0)
    file.truncate(LARGE)
    return file


async def refused_early(tmp_path: Path, reads: int = 0) -> int:
    """Bytes of the file that were read, of a server that does not want it."""
    refusal = answer(b'{"ok":false}', status=b"413 Content Too Large")
    server = Reader(reads, refusal)
    with large_file(tmp_path) as file:
        upload = Upload()
        upload.add_file("document", file, filename="large.bin")
        async with server.running() as url, client(1) as http, asyncio.timeout(SOON_S):
            response = await post(http, url, upload)
            await server.has_ended.wait()
        assert (response.status, response.body) == (413, b'{"ok":false}')
        return file.tell()


@pytest.mark.parametrize("reads", [0, 1_000_000])
async def test_a_server_that_refuses_early_is_sent_no_more_and_the_connection_ends(
    tmp_path: Path, reads: int
) -> None:
    tracemalloc.start()
    read = await refused_early(tmp_path, reads)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert read < LARGE // 2
    assert most < HELD


async def test_a_slow_server_is_sent_a_large_file_with_little_memory(tmp_path: Path) -> None:
    server = Reader(reads=None, response=answer())
    with large_file(tmp_path) as file:
        upload = Upload()
        upload.add_file("document", file, filename="large.bin")
        async with server.running() as url, client() as http:
            tracemalloc.start()
            response = await post(http, url, upload)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()

    assert response.status == 200
    assert server.read == upload.size > LARGE
    assert most < HELD


async def test_a_server_that_closes_within_an_upload_leaves_it_in_doubt(tmp_path: Path) -> None:
    server = Reader(reads=1_000_000, response=b"", closes=True)
    with large_file(tmp_path) as file:
        upload = Upload()
        upload.add_file("document", file, filename="large.bin")
        async with server.running() as url, client() as http, asyncio.timeout(SOON_S):
            with pytest.raises(ConnectionLost) as lost:
                await post(http, url, upload)

    assert lost.value.sent


async def test_an_upload_that_is_cancelled_is_read_no_further(tmp_path: Path) -> None:
    server = Reader(reads=1_000_000, response=b"")

    async def has_begun() -> bool:
        return server.read > 0

    with large_file(tmp_path) as file:
        upload = Upload()
        upload.add_file("document", file, filename="large.bin")
        async with server.running() as url, client() as http, asyncio.timeout(SOON_S):
            call = asyncio.create_task(post(http, url, upload))
            await until(has_begun, interval_s=0.001)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await server.has_ended.wait()

        assert file.tell() < LARGE


async def test_uploads_work_under_uvloop(tmp_path: Path, on_uvloop: OnUvloop) -> None:
    async def scenario() -> None:
        upload = Upload()
        upload.add_file("document", io.BytesIO(b"content"), filename="f")
        assert understood(await sent(upload)).files == [("document", "f", b"content")]
        await shorter_file(tmp_path)
        assert await refused_early(tmp_path) < LARGE

    await on_uvloop(scenario())


async def test_a_file_alone_is_the_whole_body_from_where_it_stands() -> None:
    file = io.BytesIO(b"before, content")
    file.seek(len(b"before, "))
    upload = FileUpload(file, "image/png")
    body = b"".join([part async for part in upload.parts()])

    assert (upload.content_type, upload.size, body) == ("image/png", 7, b"content")


def test_the_type_of_a_file_alone_can_not_hold_a_header() -> None:
    with pytest.raises(ValueError, match="control characters"):
        FileUpload(io.BytesIO(), "image/png\r\nX-Other: 1")
