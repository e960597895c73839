"""What no browser sends of itself: odd bodies, and files where none belong."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.service import Service

from .conftest import NAME, Desk
from .web import HTML, Visitor, visiting

PHOTO = {"key": "photo", "type": "file", "label": "Photo", "max": 2}


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


@pytest.mark.shared_service
@pytest.mark.parametrize("accept", [HTML, "*/*"])
@pytest.mark.parametrize(
    ("charset", "name", "value"),
    [
        ("undefined", "name", "Ann"),
        ("punycode", "name", "\\ud800"),
        ("unicode_escape", "name", "\\ud800"),
        ("unicode_escape", "\\ud800", "Ann"),
    ],
)
async def test_a_charset_of_the_senders_breaks_nothing(
    desk: Desk, visitor: Visitor, accept: str, charset: str, name: str, value: str
) -> None:
    form = await desk.form()
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    body = f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--x--\r\n'

    headers = {"Accept": accept, "Content-Type": kind}
    answer = await visitor.post(form, content=body.encode(), headers=headers)

    assert answer.status_code == 400
    assert await desk.submissions(form) == []


async def test_spam_is_kept_without_files_that_no_question_takes(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(NAME, PHOTO, {**PHOTO, "key": "plans"})

    photo = ("photo", ("a.txt", b"Hello", "text/plain"))
    misplaced = ("name", ("b.txt", b"Hello", "text/plain"))
    too_many = [("plans", (f"{n}.txt", b"Hello", "text/plain")) for n in range(3)]
    answer = await visitor.post(
        form, data={form["honeypot"]: "x"}, files=[photo, misplaced, *too_many]
    )

    assert answer.status_code == 201
    [spam] = await desk.submissions(form, spam="true")
    [(key, [file])] = ((one["key"], one["value"]) for one in spam["answers"])
    assert (key, file["filename"]) == ("photo", "a.txt")
    assert (await desk.client.get(f"/v1/files/{file['file_id']}")).status_code == 200
    async with desk.service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_files") == 1
