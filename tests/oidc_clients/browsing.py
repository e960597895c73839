"""A browser without scripts, for people who fill in forms."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import urljoin, urlsplit

import httpx2

#: Redirects and forms of one sign-in, against providers that go in circles.
MAX_STEPS = 20


def browser(cookies: httpx2.Cookies | None = None, base_url: str = "") -> httpx2.AsyncClient:
    """A browser's connections. Loopback addresses are secure contexts for browsers, so cookies marked
    `Secure` go there over plain HTTP."""
    client = httpx2.AsyncClient(cookies=cookies, base_url=base_url)
    client.cookies.jar.set_policy(DefaultCookiePolicy(secure_protocols=("https", "http")))
    return client


@dataclass(slots=True)
class Form:
    """A form of a page, with the values that it has when nobody touches it."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    #: Values of buttons by name. Only that of a pressed one is sent.
    buttons: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.found: list[Form] = []
        self._by_id: dict[str, Form] = {}
        self._open: Form | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            action = urljoin(self._url, values.get("action", ""))
            self._open = Form(action, values.get("method", "get").lower())
            self.found.append(self._open)
            self._by_id[values.get("id", "")] = self._open
        elif tag == "button" and "name" in values:
            owner = self._by_id.get(values["form"]) if "form" in values else self._open
            if owner is not None:
                owner.buttons[values["name"]] = values.get("value", "")
        elif tag == "input" and self._open is not None and "name" in values:
            self._open.fields[values["name"]] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def forms_of(page: httpx2.Response) -> list[Form]:
    """The forms of a page, in its order."""
    parser = _Forms(str(page.url))
    parser.feed(page.text)
    return parser.found


def is_at(url: str, issuer: str) -> bool:
    """Whether a URL is the issuer's."""
    here, there = urlsplit(url), urlsplit(issuer)
    return (here.scheme, here.netloc) == (there.scheme, there.netloc)


@dataclass(slots=True)
class Walk:
    """Goes through the pages of one issuer, and stops where they lead elsewhere or are without a form."""

    client: httpx2.AsyncClient
    issuer: str
    #: What the person enters, by the field's name.
    entries: Mapping[str, str]
    #: The names of buttons that the person presses where there is a choice.
    presses: Collection[str] = ()

    async def go(self, url: str) -> tuple[str, dict[str, str] | None]:
        """The URL outside that the browser is led to, with the form that it posts there; or that of the last
        page."""
        page = await self.client.get(url)
        pressed = False
        for _ in range(MAX_STEPS):
            if page.is_redirect:
                target = urljoin(str(page.url), page.headers["location"])
                if not is_at(target, self.issuer):
                    return target, None
                page = await self.client.get(target)
                continue
            assert page.status_code == 200, f"{page.url}: {page.status_code} {page.text}"
            forms = forms_of(page)
            if not forms or pressed:
                return str(page.url), None
            if not is_at(forms[0].action, self.issuer):
                return forms[0].action, forms[0].fields
            # What follows a button of the person's choice is the end, even if it could be tried again.
            pressed = any(name in self.presses for name in forms[0].buttons)
            page = await self._submit(forms[0])
        raise AssertionError(f"no end after {MAX_STEPS} pages, last {page.url}")

    async def _submit(self, form: Form) -> httpx2.Response:
        assert form.method == "post", form
        filled = {name: self.entries.get(name, value) for name, value in form.fields.items()}
        filled |= {name: value for name, value in form.buttons.items() if name in self.presses}
        return await self.client.post(form.action, data=filled)
