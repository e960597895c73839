"""Forms of a page, filled in with texts that try to be more than text, and what is answered to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx2

from msgsvc_dashboard.frame.browser import CSRF_FIELD

#: Fields in which people write.
WRITTEN = {
    "text",
    "search",
    "email",
    "url",
    "tel",
    "number",
    "textarea",
    "datetime-local",
    "color",
    "time",
}

#: Kept as the page has it: without it nothing of a form is read.
KEPT = (CSRF_FIELD, "_token")


@dataclass(frozen=True, slots=True)
class Form:
    """`written` are the names of the fields in which people write, `values` what the others hold."""

    action: str
    values: dict[str, str] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def filled(self, texts: Sequence[str]) -> dict[str, str]:
        """With the texts in turn in the fields in which people write."""
        written = {name: texts[at % len(texts)] for at, name in enumerate(self.written)}
        return {**self.values, **written}

    def forged(self, text: str) -> dict[str, str]:
        """With the text in every field, be it hidden or a choice."""
        names = {*self.values, *self.written} - {*KEPT}
        return {**self.values, **dict.fromkeys(names, text)}

    async def post(self, client: httpx2.AsyncClient, values: dict[str, str]) -> httpx2.Response:
        """Sends it; the names of its files are what is written in its first field."""
        name = next((values[each] for each in self.written), "x").replace("/", "")[:100]
        files = dict.fromkeys(self.files, (name, b"x", "text/plain"))
        return await client.post(self.action, data=values, files=files or None)


def forms_of(html: str, url: str) -> list[Form]:
    """Those that post and in which something is written, each also by the other addresses to which it can
    be sent."""
    reader = _Reader(url)
    reader.feed(html)
    return [form for form in reader.found() if form.written]


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._forms: list[Form] = []
        self._others: dict[int, list[str]] = {}
        self._asked: list[str] = []
        self._open = False

    def found(self) -> Iterator[Form]:
        for at, form in enumerate(self._forms):
            yield form
            for action in self._others.get(at, ()):
                yield replace(form, action=action)
        # Parts that are asked for while somebody writes take the fields of the longest form.
        longest = max(self._forms, key=lambda form: len(form.written), default=None)
        for action in self._asked if longest else ():
            yield replace(longest, action=action)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "hx-post" in given:
            self._asked.append(urljoin(self._url, given["hx-post"]))
        if tag == "form":
            self._open = given.get("method", "").lower() == "post"
            if self._open:
                self._forms.append(Form(urljoin(self._url, given.get("action", ""))))
            return
        name = given.get("name", "")
        if not self._open or "form" in given:
            return
        if "formaction" in given:
            action = urljoin(self._url, given["formaction"])
            self._others.setdefault(len(self._forms) - 1, []).append(action)
        elif name:
            self._add(name, given.get("type", "text") if tag == "input" else tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False

    def _add(self, name: str, kind: str, given: dict[str, str]) -> None:
        form = self._forms[-1]
        if kind == "file":
            form = replace(form, files=(*form.files, name))
        # What nobody gets to by Tab is there for those who fill in everything.
        elif kind in WRITTEN and given.get("tabindex") != "-1":
            form = replace(form, written=(*form.written, name))
        elif kind not in {"radio", "checkbox"} or "checked" in given:
            form.values.setdefault(name, given.get("value", ""))
        self._forms[-1] = form
