"""What no browser sends of itself: odd bodies."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.service import Service

from .conftest import Desk
from .web import HTML, Visitor, visiting


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


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
