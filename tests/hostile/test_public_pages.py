"""No request of a stranger to a page keeps the event loop: whatever its path, query, headers and body."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY
from tests.faults.fuzzing import Reply
from tests.hostile.asking import FORM, MOST_HEAD_BYTES, Stranger, quoted
from tests.hostile.entry_points import Fed, PublicPage, fed, missing, public_pages
from tests.hostile.loop_steps import measured_steps, most_s
from tests.hostile.place import Place, furnish, parameters
from tests.hostile.texts import (
    BOUNDARY,
    FEW_UNITS,
    UNITS,
    multipart,
    odd_multiparts,
    text_of,
    texts,
    urlencoded,
)

#: Bytes of a body: the most that any page without files takes, and what pages take that take little.
LARGE, SMALL = 1_000_000, 15_000

#: The pages are asked in so many tests, for as many processes.
PARTS = 4

#: Headers that something of ours reads.
HEADERS = (
    "accept-language",
    "user-agent",
    "origin",
    "cookie",
    "accept",
    "content-type",
    "traceparent",
)

#: What stands in headers: they are read on every page.
HEADER_UNITS = ("-", "a,", ";", "a=b; ", "\u0301", '"')

#: What stands in one field after the other: of the others' refusals a page may make its answer before.
FIELD_UNITS = ("\u0301", "-", " ", "a@a.", "9", "<a ")

_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')

Sending = tuple[str, Callable[[], Awaitable[Reply]]]


class Feeder:
    """The requests of strangers to one page."""

    def __init__(self, place: Place, page: PublicPage, what: Fed, stranger: Stranger) -> None:
        self._page = page
        self._fed = what
        self._stranger = stranger
        self._place = place
        self._path = place.path(page.path)
        self._fixed = {name: value.format(**place.ids) for name, value in what.fixed.items()}

    async def open(self) -> None:
        """Gets the cookies and the hidden values of the page that comes before."""
        if not self._fed.opens:
            return
        path = self._place.path(self._fed.opens)
        reply = await self._stranger.ask("GET", path)
        if reply.status == 303:
            reply = await self._stranger.ask("GET", reply.headers["location"])
        self._stranger.keep(reply)
        self._fixed |= dict(_HIDDEN.findall(reply.body.decode()))

    def sendings(self) -> Iterator[Sending]:
        """Each with a name for reports."""
        for method in sorted(self._page.methods):
            for name, send in self._of(method):
                yield f"{method} {self._page}: {name}", send

    def _of(self, method: str) -> Iterator[Sending]:
        yield from self._paths(method)
        yield from self._headers(method)
        yield from self._queries(method)
        if method != "GET":
            yield from self._forms(method)
            yield from self._multiparts(method)
            yield from self._json(method)

    def _paths(self, method: str) -> Iterator[Sending]:
        for parameter in parameters(self._page.path):
            for name, text in texts(FEW_UNITS, (8_000,)):
                path = self._place.path(self._page.path, **{parameter: quoted(text)})
                yield f"{parameter}: {name}", self._ask(method, path)

    def _headers(self, method: str) -> Iterator[Sending]:
        for header in (*HEADERS, *self._fed.headers):
            units = UNITS if header in self._fed.headers else HEADER_UNITS
            for name, text in texts(units, (MOST_HEAD_BYTES - 2_000,)):
                raw = text.encode()[: MOST_HEAD_BYTES - 2_000]
                yield f"{header}: {name}", self._ask(method, headers=[(header.encode(), raw)])
        if "authorization" in self._fed.headers:
            for scheme in (b"Basic ", b"Bearer "):
                for unit in (b"YWFh", b"Og==", b"eyJhIjo.", b"."):
                    raw = scheme + unit * (28_000 // len(unit))
                    yield (
                        f"{scheme!r} {unit!r}",
                        self._ask(method, headers=[(b"authorization", raw)]),
                    )

    def _queries(self, method: str) -> Iterator[Sending]:
        for name, values in self._filled((*self._fed.query, "anything"), 28_000):
            yield f"?{name}", self._ask(method, query=urlencoded(values)[: MOST_HEAD_BYTES - 2_000])
        for unit in (b"a&", b"a=b&", b"%", b"=", b"+"):
            yield f"?{unit!r}", self._ask(method, query=unit * (28_000 // len(unit)))

    def _forms(self, method: str) -> Iterator[Sending]:
        for size in (LARGE // 6, SMALL // 6):
            for name, values in self._filled(self._fed.form, size):
                body = urlencoded(values)[:LARGE]
                yield name, self._ask(method, body=body, content_type=FORM)
        for unit in (b"a&", b"a=b&", b"%", b"=", b"+", b"a=%CC%81&"):
            for size in (LARGE, SMALL):
                body = unit * (size // len(unit))
                yield f"{unit!r} x {size}", self._ask(method, body=body, content_type=FORM)

    def _multiparts(self, method: str) -> Iterator[Sending]:
        declared = f"multipart/form-data; boundary={BOUNDARY}".encode()
        if self._fed.form:
            for unit in FEW_UNITS:
                for size in (LARGE // 4, SMALL // 4):
                    values = self._all(self._fed.form, unit, size)
                    body = multipart({**self._fixed, **values})
                    yield f"parts {unit!r}", self._ask(method, body=body, content_type=declared)
        for size in (LARGE, SMALL):
            for name, content_type, body in odd_multiparts(size):
                sent = content_type.encode()
                yield f"{name} x {size}", self._ask(method, body=body, content_type=sent)

    def _filled(self, fields: Sequence[str], size: int) -> Iterator[tuple[str, dict[str, str]]]:
        """Each text in all fields, and those of few units in one after the other."""
        if not fields:
            return
        for unit in UNITS:
            yield f"all {unit!r} x {size}", {**self._fixed, **self._all(fields, unit, size)}
        for field in fields:
            for name, text in texts(FIELD_UNITS, (size,)):
                yield f"{field}: {name}", {**self._fixed, field: text}

    @staticmethod
    def _all(fields: Sequence[str], unit: str, size: int) -> dict[str, str]:
        return dict.fromkeys(fields, text_of(unit, max(size // len(fields), 100)))

    def _json(self, method: str) -> Iterator[Sending]:
        if self._fed.json is None:
            return
        bearer = self._place.tokens.get(self._page.path, {}).get("bearer", "")
        headers = [(b"authorization", f"Bearer {bearer}".encode())] if bearer else []
        for name, body in json_bodies(self._fed.json):
            yield (
                f"JSON {name}",
                self._ask(method, body=body, content_type=b"application/json", headers=headers),
            )

    def _ask(self, method: str, path: str = "", **request: Any) -> Callable[[], Awaitable[Reply]]:
        return lambda: self._stranger.ask(method, path or self._path, **request)


def json_bodies(sample: Any) -> Iterator[tuple[str, bytes]]:
    """Bodies of a megabyte: shapes that take long to parse, and the sample with large values."""
    for unit in (b"{},", b"[],", b"0,", b'"",', b'{"a":0},', b"[[]],", b"1e5,", b'"\\u0041",'):
        yield f"a list of {unit!r}", b"[" + unit * (LARGE // len(unit)) + b"0]"
    for unit in (b"[", b'{"a":', b'"', b"\\", b" ", b"1", b"\xcc\x81", b'"\\ud800"'):
        yield f"{unit!r}", unit * (LARGE // len(unit))
    for many in (5_000, 30_000):
        names = b",".join(b'"%d":%d' % (number, number) for number in range(many))
        yield f"{many} names", b"{" + names + b"}"
    yield from large_values(sample)


def large_values(sample: Any) -> Iterator[tuple[str, bytes]]:
    """The sample with one value after the other replaced by one of some hundred kilobytes."""
    for spot, _ in leaves(sample):
        for name, value in _LARGE_VALUES:
            yield f"{spot}: {name}", json.dumps(with_value(sample, spot, value)).encode()


#: What is put in place of a value.
_LARGE_VALUES: Sequence[tuple[str, Any]] = (
    ("marks", text_of("\u0301", LARGE // 8)),
    ("a list", [0] * 40_000),
    ("an object", {str(number): 0 for number in range(30_000)}),
)

Spot = tuple[str | int, ...]


def leaves(value: Any, spot: Spot = ()) -> Iterator[tuple[Spot, Any]]:
    """The values that are no objects or lists, and where they are."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*spot, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*spot, index))
    else:
        yield spot, value


def with_value(value: Any, spot: Spot, new: Any) -> Any:
    """A copy with another value there."""
    if not spot:
        return new
    copied = list(value) if isinstance(value, list) else dict(value)
    copied[spot[0]] = with_value(value[spot[0]], spot[1:], new)  # type: ignore[index]  # a list or an object
    return copied


def test_everything_that_strangers_can_ask_for_is_known() -> None:
    service = Service(load_settings(env={}, secret_keys=[SECRET_KEY], oidc={"registration": True}))

    assert list(missing(public_pages(service))) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_no_page_is_kept_by_what_strangers_put_into_it(
    make_service: ServiceFactory, make_tenant: Any, part: int
) -> None:
    place = await furnish(make_service, make_tenant)
    pages = public_pages(place.service)
    slow: list[str] = []
    with measured_steps() as steps:
        for page in pages[part::PARTS]:
            for what in fed(page) or ():
                stranger = Stranger(place.service.app)
                feeder = Feeder(place, page, what, stranger)
                await feeder.open()
                # What is made at the first request of a page is not the stranger's.
                await stranger.ask("GET", place.path(page.path))
                for name, send in feeder.sendings():
                    seconds, reply = await steps.of(send)
                    if seconds > most_s():
                        slow.append(f"{name}: {seconds:.3f} s, {reply.status}")
                    assert reply.status < 500 or reply.status == 503, (name, reply)

    assert slow == []
