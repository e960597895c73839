"""No form and no query of the dashboard keeps the event loop, fails, or is shown as markup.

Forms, their fields and the parameters of links are read from the pages, so a new page is covered without an
edit. Buttons are pressed at the end, those that delete something last.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from itertools import count
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from markupsafe import escape

from msgsvc_core.dashboard import Page
from msgsvc_dashboard.frame.browser import CSRF_FIELD, SESSION_COOKIE, csrf_token
from msgsvc_devkit.dashboard import Visitor
from msgsvc_devkit.fixtures import ServiceFactory
from tests.dashboard.walking import at, pages_of, parameters
from tests.faults.fuzzing import Reply
from tests.hostile.asking import FORM, Stranger
from tests.hostile.loop_steps import Steps, measured_steps, most_s
from tests.hostile.page_forms import FormReader, PageForm, questions
from tests.hostile.place import Place, furnish
from tests.hostile.texts import BOUNDARY, multipart, text_of, urlencoded

pytestmark = pytest.mark.slow

#: What shows itself where it is taken for markup or for an attribute.
PROBE = "\"'><hostile-tag hostile-name=1>"

#: Short values: each is in every field at once, and in some fields alone.
SHORT: Mapping[str, str] = {
    "markup": PROBE,
    "bidi": "\u202egpj.exe\u2066\u200f",
    "NUL": "a\0b",
    "half a pair": "a\ud800b",
    "a number beyond 64 bits": "9223372036854775808",
    "a long number": "9" * 400,
    "a negative number": "-9223372036854775809",
    "a number beyond floats": "1e999",
    "no number": "NaN",
    "other digits": "\u0661\u0662\u0663",
    "superscript digits": "\u00b2\u00b3",
    "no date": "2026-02-30T25:61",
    "the last date": "9999-12-31T23:59",
    "the first date": "0001-01-01T00:00",
    "a time": "24:60",
    "an address that runs": "javascript:alert(1)",
    "another host": "//hostile.example/",
    "no host": "https://[::",
    "a port beyond": "https://shop.example:99999/",
    "a header": "a\r\nhostile-header: 1",
    "a path": "../../../etc/passwd",
    "a pattern": "(a+)+$",
    "no pattern": "(?P<a>[",
    "JSON": '{"a": [1e999, "\\ud800", "\\u0000", 9223372036854775808]}',
    "lines": "a\n\r\x0b\x0c\u2028b",
    "nothing": "",
}

#: Those for fields that hold numbers or times.
BY_KIND = {
    "number": tuple(name for name in SHORT if "number" in name or "digits" in name),
    **dict.fromkeys(
        ("date", "datetime-local", "time"), ("no date", "the last date", "the first date", "a time")
    ),
}

#: Repeated to a length, for what takes more than linear time.
UNITS = (
    "\u0301",
    "[",
    '{"a":',
    "{{a}}",
    "zq{{a}}",
    "**a",
    "<a ",
    "a@a.",
    "*/1 ",
    "a,",
    "9",
    " ",
    "\n",
)

#: Characters of a repeated text: as many as a message has, and what no field is meant to take.
SIZES = (4_000, 100_000)

#: Characters of all fields of a form, or of a question: half of what is taken.
MOST_FORM, MOST_QUERY = 80_000, 3_000

#: Short texts by the kind of field, with which the rest of a form is taken.
PLAUSIBLE = {
    "email": "ann@shop.example",
    "url": "https://shop.example/",
    "number": "5",
    "date": "2026-02-03",
    "datetime-local": "2026-02-03T09:00",
    "time": "09:00",
    "color": "#336699",
    "tel": "+12025550123",
}

#: Pages that take away what others need, by a word of their path.
ENDS = re.compile(
    r"delete|remove|erase|revoke|discard|close|cancel|sign-?out|leave|disconnect|unlink|stop|reset"
)

#: The names of numbered fields are alike.
_NUMBER = re.compile(r"\d+")

Send = Callable[[], Awaitable[Reply]]


class Signed:
    """Somebody who is signed in, and signs in again when one of the forms has ended that."""

    def __init__(self, place: Place, visitor: Visitor) -> None:
        self._place = place
        self._visitor = visitor
        self._client = Stranger(place.service.app)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply:
        raw = urlencoded(query)[:30_000] if query else urlsplit(path).query.encode()
        return await self._ask("GET", urlsplit(path).path, query=raw)

    async def post(self, form: PageForm, values: Mapping[str, str]) -> Reply:
        def body() -> tuple[bytes, bytes]:
            token = csrf_token(self._place.service.secrets, self._visitor.session_id)
            fields = {**values, CSRF_FIELD: token}
            if not form.files:
                return urlencoded(fields), FORM
            name = next((values[each] for each in form.written), "a").translate(_UNQUOTED)[:200]
            files = dict.fromkeys(form.files, (name, b"\x89PNG\r\n\x1a\n"))
            return multipart(fields, files), f"multipart/form-data; boundary={BOUNDARY}".encode()

        parts = urlsplit(form.action)
        return await self._ask("POST", parts.path, query=parts.query.encode(), form=body)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: bytes = b"",
        form: Callable[[], tuple[bytes, bytes]] | None = None,
    ) -> Reply:
        for attempt in count(1):
            body, kind = form() if form is not None else (b"", None)
            cookie = self._visitor.client.cookies.get(SESSION_COOKIE)
            self._client.cookies = {SESSION_COOKIE: cookie or ""}
            reply = await self._client.ask(method, path, query=query, body=body, content_type=kind)
            if attempt > 1 or "/dashboard/sign-in" not in reply.headers.get("location", ""):
                break
            await self._visitor.sign_in()
        return reply


#: What ends the name of a file in a header.
_UNQUOTED = str.maketrans("", "", '"\r\n')


class Shown(HTMLParser):
    """Names what is in a page through somebody's text alone."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag.startswith("hostile"):
            self.found.append(f"the element {tag}")
        for name, value in attrs:
            if name.startswith("hostile"):
                self.found.append(f"the attribute {name} of {tag}")
            is_address = name in {"href", "src", "action", "formaction", "hx-get", "hx-post"}
            if is_address and (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"{name}={value}")


def faults(reply: Reply) -> list[str]:
    """What is wrong with an answer, whatever was asked."""
    found = [f"answers {reply.status}: {reply.body[:300]!r}"] if reply.status >= 500 else []
    for name, value in reply.headers.items():
        if name.startswith("hostile") or re.search(r"[\0-\x08\x0a-\x1f]", value):
            found.append(f"the header {name}: {value[:80]!r}")
        if name in {"location", "hx-redirect"} and "hostile.example" in urlsplit(value).netloc:
            found.append(f"leads to {value}")
    is_page = reply.headers.get("content-type", "").startswith("text/html")
    if is_page and (b"hostile" in reply.body or b"javascript:" in reply.body):
        found += Shown(reply.body.decode()).found
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A page at an address, and who may open it."""

    page: Page
    url: str
    who: Signed


class Feeder:
    """Opens every page, learns its forms and questions, and fills them in. `found` says what is wrong."""

    def __init__(self, place: Place, steps: Steps) -> None:
        owner, operator = Signed(place, place.owner), Signed(place, place.operator)
        self._steps = steps
        self._project_id = place.ids["project_id"]
        self._ids = place.ids
        self._pages = [
            Asked(
                page,
                at(page, self._project_id, place.ids).url,
                operator if page.access == "installation:operate" else owner,
            )
            for page in pages_of(place.service)
        ]
        self._forms: dict[tuple[str, tuple[str, ...]], tuple[PageForm, Signed]] = {}
        self._questions: dict[str, set[str]] = {}
        self._turn = count()
        self._unseen: list[tuple[PageForm, Signed]] = []
        self.found: list[str] = []

    async def read(self) -> None:
        """Learns what the pages ask for."""
        for each in self._pages:
            if each.page.method == "GET":
                await self._learn(each.url, await each.who.get(each.url), each.who)
        reached = {urlsplit(form.action).path for form, _ in self._forms.values()}
        # What no page offers as the project is gets the fields of all others.
        written = {
            name: kind for form, _ in self._forms.values() for name, kind in form.written.items()
        }
        chosen = {name for form, _ in self._forms.values() for name in form.chosen}
        for each in self._pages:
            if each.page.method != "GET" and each.url not in reached:
                form = PageForm("post", each.url, {}, written, chosen)
                self._unseen.append((form, each.who))

    async def _learn(self, url: str, reply: Reply, who: Signed) -> None:
        if not reply.headers.get("content-type", "").startswith("text/html"):
            return
        reader = FormReader(reply.body.decode(), url)
        for path, names in questions(reader.asked).items():
            self._questions.setdefault(path, set()).update(names)
        for form in reader.forms:
            path = urlsplit(form.action).path
            if not path.startswith("/dashboard/"):
                continue
            if form.method == "get":
                self._questions.setdefault(path, set()).update(form.written, form.chosen)
            else:
                self._forms.setdefault((form.action, (*form.written,)), (form, who))

    async def questions(self) -> None:
        """Every parameter of every page, and what stands in its path."""
        everything = set().union(*self._questions.values())
        for each in self._pages:
            if each.page.method != "GET":
                continue
            own = self._questions.get(each.url, set())
            for name in sorted(own):
                for text_name, text in self._texts(2, MOST_QUERY):
                    await self._get(each, f"?{name} {text_name}", {name: text})
            for text_name, text in self._texts(2, MOST_QUERY // len(everything)):
                await self._get(each, f"?* {text_name}", dict.fromkeys(everything, text))
        for each in self._pages:
            for text_name, text in self._texts(2, 1_000) if parameters(each.page) else ():
                url = at(each.page, self._project_id, _instead(self._ids, text)).url
                name = f"{each.page.method} {each.page.path} of {text_name}"
                if each.page.method == "GET":
                    await self._send(name, partial(each.who.get, url))
                else:
                    await self._send(name, partial(each.who.post, PageForm("post", url), {}))

    async def _get(self, each: Asked, name: str, query: Mapping[str, str]) -> None:
        await self._send(f"GET {each.page.path}{name}", partial(each.who.get, each.url, query))

    async def fill_in(self) -> None:
        """Every form in which people write, with hostile texts in all of its fields and in each alone."""
        forms = [(form, who) for form, who in self._forms.values() if form.written]
        for form, who in sorted(forms, key=lambda each: bool(ENDS.search(each[0].action))):
            size = MOST_FORM // len(form.written)
            for name, text in (("markup", PROBE), *self._texts(3, size)):
                await self._post(who, form, f"all {name}", dict.fromkeys(form.written, text))
            plausible = _plausible(form)
            for field in _one_of_each(form.written):
                suited = [(each, SHORT[each]) for each in BY_KIND.get(form.written[field], ())]
                for name, text in (*suited, *self._texts(1, MOST_FORM)):
                    await self._post(who, form, f"{field} {name}", {**plausible, field: text})
            choices = dict.fromkeys(form.chosen, PROBE)
            await self._post(who, form, "every choice", {**plausible, **choices})
        for form, who in self._unseen:
            for name, text in self._texts(4, MOST_FORM // len(form.written)):
                await self._post(who, form, f"all {name}", dict.fromkeys(form.written, text))

    async def press(self) -> None:
        """Every form as its page has it; what ends something comes last."""

        def order(each: tuple[PageForm, Signed]) -> tuple[bool, bool]:
            action = each[0].action
            return bool(ENDS.search(action)), "/account" in action

        for form, who in sorted(self._forms.values(), key=order):
            await self._post(
                who, form, "choices", {**form.sent, **dict.fromkeys(form.chosen, PROBE)}
            )
            await self._post(who, form, "as it is", form.sent)

    async def look(self) -> None:
        """Every page again, with all that was taken."""
        for each in self._pages:
            if each.page.method == "GET":
                await self._send(f"GET {each.page.path} again", partial(each.who.get, each.url))

    def _texts(self, many: int, most: int) -> Iterator[tuple[str, str]]:
        """Some of the texts, in turn, so that in the end all were asked everywhere."""
        short = [*SHORT.items()]
        for _ in range(many):
            turn = next(self._turn)
            if turn % 3:
                yield short[turn % len(short)]
                continue
            unit, size = UNITS[turn // 3 % len(UNITS)], SIZES[turn // 3 % len(SIZES)]
            yield f"{unit!r} x {min(size, most)}", text_of(unit, min(size, most))

    async def _post(
        self, who: Signed, form: PageForm, name: str, changed: Mapping[str, str]
    ) -> None:
        values = {**form.sent, **changed}
        path = _NUMBER.sub("0", form.action)
        reply = await self._send(f"POST {path} {name}", partial(who.post, form, values))
        to = reply.headers.get("location", "")
        if to.startswith("/dashboard/projects/"):
            await self._send(f"{to} after {path} {name}", partial(who.get, to))

    async def _send(self, name: str, send: Send) -> Reply:
        seconds, reply = await self._steps.of(send)
        if seconds > most_s():
            self.found.append(f"{name}: {seconds:.3f} s, {reply.status}")
        self.found += [f"{name}: {fault}" for fault in faults(reply)]
        return reply


def _instead(ids: Mapping[str, str], text: str) -> dict[str, str]:
    """A text in place of every resource."""
    return dict.fromkeys(ids, quote(text.encode("utf-8", "surrogatepass"), safe=""))


def _one_of_each(names: Mapping[str, str]) -> list[str]:
    """One of those that differ by their number only."""
    return list({_NUMBER.sub("0", name): name for name in reversed(names)}.values())


def _plausible(form: PageForm) -> dict[str, str]:
    """What is accepted in required fields and in the first text, where the page has nothing."""
    texts = [name for name, kind in form.written.items() if kind == "textarea"]
    wanted = {*form.required, *texts[:1]}
    return {
        name: PLAUSIBLE.get(kind, "Hello")
        for name, kind in form.written.items()
        if name in wanted and not form.sent[name]
    }


def test_what_a_page_shows_as_markup_is_found() -> None:
    html = f'<p>{PROBE}</p><input value="{PROBE}"><a href="javascript:alert(1)">'
    page = Reply(200, {"content-type": "text/html"}, html.encode())
    shown = Reply(200, {"content-type": "text/html"}, str(escape(html)).encode())
    header = Reply(303, {"location": "//hostile.example/", "x": "a\r\nhostile-header: 1"}, b"")

    assert len(faults(page)) == 5
    assert len(faults(header)) == 2
    assert len(faults(Reply(500, {}, b""))) == 1
    assert faults(shown) == []


async def test_no_form_or_question_of_the_dashboard_is_harmed_by_what_stands_in_it(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    place = await furnish(make_service, make_tenant)
    with measured_steps() as steps:
        feeder = Feeder(place, steps)
        await feeder.read()
        await feeder.questions()
        await feeder.fill_in()
        await feeder.look()
        await feeder.press()
    await place.owner.client.aclose()
    await place.operator.client.aclose()

    assert feeder.found == []
