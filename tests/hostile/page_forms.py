"""What a page of HTML asks its reader for: its forms with their fields, and the questions of its links."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

#: Kinds of fields in which nobody writes.
CHOSEN = frozenset({"hidden", "checkbox", "radio", "select", "submit", "button", "image", "reset"})


@dataclass(slots=True)
class PageForm:
    """`sent` holds the values that the page has, `written` the kind of each field in which people write, and
    `chosen` the names of all others."""

    method: str
    action: str
    sent: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def at(self, method: str, action: str) -> "PageForm":
        """The same fields for another address."""
        return replace(self, method=method, action=action)


class FormReader(HTMLParser):
    """The forms of a page, each also for the other addresses to which its buttons and fields send it; and the
    addresses that its links ask with a question."""

    def __init__(self, html: str, url: str) -> None:
        super().__init__()
        self._url = url
        self._forms: list[PageForm] = []
        self._by_id: dict[str, PageForm] = {}
        self._open: PageForm | None = None
        self._select: tuple[PageForm, str] | None = None
        self._others: list[tuple[PageForm | None, str, str]] = []
        self.asked: list[str] = []
        #: Fields by the id of a form that may come later.
        self._apart: list[tuple[str, str, dict[str, str]]] = []
        self.feed(html)
        self.close()
        for form_id, tag, given in self._apart:
            if form_id in self._by_id:
                self._field(self._by_id[form_id], tag, given)

    @property
    def forms(self) -> Iterator[PageForm]:
        yield from self._forms
        longest = max(self._forms, key=lambda form: len(form.written), default=None)
        for owner, method, action in self._others:
            # What stands outside a form is asked for with the fields of some.
            form = owner or longest
            yield PageForm(method, action) if form is None else form.at(method, action)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            action = urljoin(self._url, given.get("action", ""))
            self._open = PageForm(given.get("method", "get").lower(), action)
            self._forms.append(self._open)
            self._by_id[given.get("id", "")] = self._open
        elif tag == "a" and "?" in given.get("href", ""):
            self.asked.append(urljoin(self._url, given["href"]))
        elif tag == "option" and self._select is not None:
            form, name = self._select
            if "selected" in given or name not in form.sent:
                form.sent[name] = given.get("value", "")
        elif tag in {"input", "textarea", "select", "button"} and "form" in given:
            self._apart.append((given["form"], tag, given))
        elif tag in {"input", "textarea", "select", "button"} and self._open is not None:
            self._field(self._open, tag, given)
        for method in ("get", "post"):
            if f"hx-{method}" in given:
                self._others.append((self._open, method, urljoin(self._url, given[f"hx-{method}"])))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = None

    def _field(self, form: PageForm, tag: str, given: dict[str, str]) -> None:
        if "formaction" in given:
            action = urljoin(self._url, given["formaction"])
            self._others.append((form, given.get("formmethod", form.method).lower(), action))
        name = given.get("name", "")
        if not name:
            return
        kind = given.get("type", "text").lower() if tag == "input" else tag
        if kind == "file":
            form.files.add(name)
        elif kind in CHOSEN:
            form.chosen.add(name)
            if kind == "select":
                self._select = form, name
            elif kind == "hidden" or "checked" in given:
                form.sent[name] = given.get("value", "on")
        else:
            form.written[name] = kind
            form.required.update({name} if "required" in given else ())
            form.sent[name] = given.get("value", "")


def questions(addresses: list[str]) -> dict[str, set[str]]:
    """The names of query parameters, by the path that is asked with them."""
    found: dict[str, set[str]] = {}
    for address in addresses:
        parts = urlsplit(address)
        found.setdefault(parts.path, set()).update(name for name, _ in parse_qsl(parts.query, True))
    return found
