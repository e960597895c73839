"""Fills in every form of the dashboard and of public pages with texts that try to be more than text, so that
it is refused and shown again; and has public pages carry such a name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2
from markupsafe import escape
from playwright.async_api import Page, Route

from tests.e2e.filled_in import Form, forms_of
from tests.e2e.furnished import Furnished
from tests.e2e.hostile import ALL, WORST
from tests.e2e.public_shots import LOGO
from tests.payloads import NAMES, PAYLOADS
from tests.pictures.pages import PUBLIC

#: The messenger in the browser, whose pages have forms as well.
SANDBOX: Mapping[str, Any] = {
    "channels": {"sandbox_a": {"plugin": "sandbox"}},
    "plugins": ("sandbox",),
}

#: Forms that don't show again what was written: a preview of a colour, and choices, which hold no text.
NOT_SHOWN_AGAIN = {
    "/branding-preview",
    "/tickets/{id}/assign",
    "/tickets/{id}/priority",
    "/tickets/{id}/snooze",
}

#: What acts only as a whole value or at its beginning: addresses, commands, formulas, texts with line breaks.
ALONE = [
    text
    for text in PAYLOADS
    if text.startswith(("javascript:", "https:", "/", "=", "@", "\ufeff")) or "\n" in text
]

#: The others, which act wherever they are in a text, several to a text.
TOGETHER = [text for text in PAYLOADS if text not in ALONE]

#: So many of them are in a text.
SHARE = 16

#: What forms are filled in with: each of the texts, in as few forms as possible.
TEXTS = (*ALONE, *(" ".join(TOGETHER[at : at + SHARE]) for at in range(0, len(TOGETHER), SHARE)))

#: What makes nearly every field too long, and so has its form refused.
TOO_LONG = "x" * 5000

#: Counts elements that are in pages of ours through somebody's text alone, as a browser reads the page.
COUNT = """([pages, intruders]) => pages.map((html) => {
  const read = new DOMParser().parseFromString(html, "text/html");
  return read.querySelectorAll(intruders).length;
})"""

#: What every policy says, whatever pictures it allows; and what none says.
STRICT = {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"}
LOOSE = "unsafe"


class Refilling:
    """`found` says what is wrong, `lost` which forms lose what was written; so many `forms` were shown again,
    and so many `names` taken for a sender's."""

    def __init__(self, place: Furnished, page: Page, intruders: str) -> None:
        self._place = place
        self._page = page
        self._intruders = intruders
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self.found: list[str] = []
        self.lost: set[str] = set()
        self.forms = 0
        self.names = 0

    async def dashboard(self) -> None:
        """Every form of every page, filled in by who may open it."""
        for walk in self._place.walks:
            client = self._place.who(walk).client
            answer = await client.get(walk.url)
            # What was changed by a form before may be elsewhere now.
            if '<main id="main"' in answer.text:
                await self._refill(client, answer.text, walk.url)

    async def strangers(self) -> None:
        """Every form of the pages that anybody opens; and addresses that lead nowhere."""
        async with self._stranger() as client:
            for path in self._public():
                answer = await client.get(path)
                await self._refill(client, answer.text, path)
            for path in ("/f/{}", "/login/{}", "/dashboard/{}", "/preferences/{}", "/{}"):
                for text in PAYLOADS:
                    answer = await client.get(path.format(quote(text, safe="")))
                    await self._judge(path, [answer])

    async def branded(self) -> None:
        """Every text as the name of the sender, of the file of its logo, and as its colour."""
        api = self._place.tenant.client
        async with self._stranger() as client:
            for text in NAMES:
                refused = await api.patch("/v1/project/branding", json={"accent": text})
                assert refused.status_code == 400, refused.text
                logo = {"file": (f"{text}.svg".replace("/", ""), LOGO)}
                taken = await api.post("/v1/project/branding/logo", files=logo)
                assert taken.status_code < 500, taken.text
                named = await api.patch("/v1/project/branding", json={"sender_name": text})
                if named.is_success:
                    self.names += 1
                    await self._judge(text, [await client.get(path) for path in self._public()])
                    owner = self._place.owner
                    await self._judge(text, [await owner.get("/branding")])

    def _public(self) -> list[str]:
        place, project_id = self._place, self._place.tenant.project.project_id
        preferences = place.service.subscribers.preferences
        own = preferences.url(project_id, place.ids["subscriber_id"])
        ids = {**place.ids, "project_id": project_id}
        return [*(path.format(**ids) for path in PUBLIC.values()), own.removeprefix(place.url)]

    def _stranger(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self._place.service.app, client=("127.0.0.1", 1))
        headers = {"accept": "text/html"}
        return httpx2.AsyncClient(transport=transport, base_url=self._place.url, headers=headers)

    async def _refill(self, client: httpx2.AsyncClient, html: str, url: str) -> None:
        for form in forms_of(html, url):
            path = re.sub(r"/[a-z]+_\w{22}", "/{id}", form.action.partition("?")[0])
            path = re.sub("^/dashboard/projects/{id}", "", path)
            if (path, form.written) in self._seen:
                continue
            self._seen.add((path, form.written))
            await self._fill(client, form, path)

    async def _fill(self, client: httpx2.AsyncClient, form: Form, path: str) -> None:
        answers, suffix, is_shown = [], "", False
        for first in range(0, len(TEXTS), len(form.written)):
            texts = [*TEXTS[first:], *TEXTS[:first]]
            answer = await form.post(client, form.filled([text + suffix for text in texts]))
            if answer.is_redirect and not suffix:
                # It was taken, and so not shown again.
                suffix = TOO_LONG
                answer = await form.post(client, form.filled([text + suffix for text in texts]))
            is_shown = is_shown or _shows(answer.text, texts[: len(form.written)])
            answers.append(answer)
        answers.append(await form.post(client, form.forged(WORST)))
        answers.append(await form.post(client, form.filled([ALL + TOO_LONG])))
        await self._judge(path, answers)
        if is_shown:
            self.forms += 1
            await self._run(answers[-1])
        else:
            self.lost.add(path)

    async def _judge(self, where: str, answers: Sequence[httpx2.Response]) -> None:
        """Notes pages that hold an element of somebody's, or whose policy would let it run."""
        # What is no page is shown by no browser as one.
        pages = [
            each for each in answers if each.headers.get("content-type", "").startswith("text/html")
        ]
        for answer in pages:
            policy = answer.headers.get("content-security-policy", "")
            if LOOSE in policy or not {*policy.split("; ")} >= STRICT:
                self.found.append(f"{where}: its policy is {policy!r}")
        self.found += [
            f"{where}: {each.status_code}" for each in answers if each.status_code >= 500
        ]
        counts = await self._page.evaluate(COUNT, [[each.text for each in pages], self._intruders])
        self.found += [f"{where}: {count} intruders" for count in counts if count]

    async def _run(self, answer: httpx2.Response) -> None:
        """Shows it to the browser under its policy: a dialog, or a refusal by the policy, fails the test."""

        async def fulfil(route: Route) -> None:
            headers = {
                name: answer.headers[name] for name in ("content-type", "content-security-policy")
            }
            await route.fulfill(body=answer.text, headers=headers)

        if answer.headers.get("content-type", "").startswith("text/html"):
            url = f"{self._place.url}/shown-again"
            await self._page.route(url, fulfil)
            await self._page.goto(url)
            await self._page.unroute(url)


def _shows(html: str, texts: Sequence[str]) -> bool:
    lines = [line for text in texts for line in text.splitlines()]
    return any(str(escape(line)) in html for line in lines if len(line) > 8)
