"""The ready page of a form in real Chromium, and a site's own page that sends one in.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Page, expect

from msgsvc_devkit.web_servers import stop
from tests.e2e.windows import NewWindow, Scheme, faults, picture
from tests.process import Deployment

pytestmark = pytest.mark.browser

CONFIG = """\
plugins = ["sandbox", "forms"]
[channels.messenger_a]
plugin = "sandbox"
[forms]
submissions_per_minute = 1000
submissions_per_minute_per_address = 1000
"""

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0" + b"\0" * 64

FORM: dict[str, Any] = {
    "slug": "join",
    "title": {"en": "Join the library", "ru": "Записаться в библиотеку"},
    "description": {
        "en": "It takes two minutes. We answer within a day.",
        "ru": "Это займёт две минуты. Мы ответим в течение дня.",
    },
    "min_fill_seconds": 0,
    "fields": [
        {"key": "name", "type": "text", "label": {"en": "Name", "ru": "Имя"}, "required": True},
        {"key": "phone", "type": "phone", "label": {"en": "Phone", "ru": "Телефон"}},
        {"key": "mail", "type": "email", "label": {"en": "E-mail", "ru": "Почта"}},
        {"key": "born", "type": "date", "label": {"en": "Date of birth", "ru": "Дата рождения"}},
        {
            "key": "branch",
            "type": "choice",
            "label": {"en": "Which branch?", "ru": "Какой филиал?"},
            "options": [
                {"value": "north", "label": {"en": "North", "ru": "Северный"}},
                {"value": "south", "label": {"en": "South", "ru": "Южный"}},
            ],
            "required": True,
        },
        {
            "key": "topics",
            "type": "multichoice",
            "label": {"en": "What do you read?", "ru": "Что вы читаете?"},
            "options": [
                {"value": "novels", "label": {"en": "Novels", "ru": "Романы"}},
                {"value": "poems", "label": {"en": "Poems", "ru": "Стихи"}},
                {"value": "science", "label": {"en": "Science", "ru": "Науку"}},
            ],
        },
        {
            "key": "mark",
            "type": "rating",
            "label": {"en": "How do you like our page?", "ru": "Как вам наша страница?"},
        },
        {"key": "photo", "type": "file", "label": {"en": "Photo", "ru": "Фотография"}},
        {
            "key": "about",
            "type": "text",
            "label": {"en": "Anything else?", "ru": "Что-нибудь ещё?"},
            "multiline": True,
        },
        {
            "key": "terms",
            "type": "consent",
            "label": {"en": "I agree to the rules", "ru": "Я согласен с правилами"},
            "required": True,
        },
    ],
}

#: How the page speaks: phone, branch, consent, send, what is wrong with a phone, thanks.
WORDS = {
    "en": ("Phone", "South", "I agree", "Send", "Please enter a phone number", "Thank you"),
    "ru": ("Телефон", "Южный", "Я согласен", "Отправить", "укажите номер телефона", "Спасибо"),
}


@dataclass(frozen=True)
class Library:
    """A running service with the form."""

    url: str
    key: str
    form: dict[str, Any]

    @property
    def page(self) -> str:
        return f"{self.url}/f/{self.form['form_id']}"

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(self.url, headers=headers) as api,
            api.request(method, f"/v1/forms{path}", json=body) as answer,
        ):
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def new_form(self, **changed: Any) -> "Library":
        """The same service with another form."""
        return Library(self.url, self.key, await self.call("POST", "", {**FORM, **changed}))

    async def newest(self) -> dict[str, Any]:
        """The answers that were sent in last."""
        found = await self.call("GET", f"/{self.form['form_id']}/submissions")
        return {one["key"]: one["value"] for one in found["data"][0]["answers"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service, and a key."""
    deployment = Deployment(tmp_path_factory.mktemp("forms"))
    deployment.configure(CONFIG)
    with deployment.serving() as server:
        yield server.url, deployment.create_key()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def library(served: tuple[str, str]) -> Library:
    return await Library(*served, {}).new_form()


async def fill(window: Page, lang: str, phone: str) -> None:
    """Fills in what is needed, and a phone number."""
    _, south, agree, *_ = WORDS[lang]
    await window.locator("[name=name]").fill("Ann <b>Lee</b>")
    await window.locator("[name=phone]").fill(phone)
    await window.get_by_label(south).check()
    await window.locator("[name=topics][value=poems]").check()
    await window.locator("[name=mark][value='4']").check(force=True)
    await window.get_by_label(agree).check()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_fills_it_in_mends_it_and_is_thanked(
    library: Library, new_window: NewWindow, lang: str, scripts: bool
) -> None:
    *_, send, wrong, thanks = WORDS[lang]
    window = await new_window(390, 844, lang=lang, scripts=scripts)
    await window.goto(library.page)
    await fill(window, lang, "none of yours")
    await picture(window, f"form-{lang}-filled")
    await window.get_by_role("button", name=send).click()

    await expect(window.get_by_role("alert")).to_contain_text(wrong)
    await picture(window, f"form-{lang}-faults")
    await expect(window.locator("[name=name]")).to_have_value("Ann <b>Lee</b>")
    await expect(window.locator("[name=topics][value=poems]")).to_be_checked()
    await window.locator("[name=phone]").fill("+44 20 7946 0958")
    await window.locator("[name=photo]").set_input_files(
        {"name": "me.png", "mimeType": "image/png", "buffer": PNG}
    )
    await window.get_by_role("button", name=send).click()

    await expect(window.get_by_role("heading", level=1)).to_have_text(thanks)
    await picture(window, f"form-{lang}-thanks")
    answers = await library.newest()
    [photo] = answers.pop("photo")
    assert (photo["filename"], photo["type"]) == ("me.png", "image")
    assert answers == {
        "name": "Ann <b>Lee</b>",
        "phone": "+442079460958",
        "branch": "south",
        "topics": ["poems"],
        "mark": 4,
        "terms": True,
    }


async def test_the_page_can_be_used_by_the_keyboard_alone(
    library: Library, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(library.page)
    await window.keyboard.press("Tab")
    await window.keyboard.type("Kim")
    reached = []
    for _ in range(20):
        await window.keyboard.press("Tab")
        name = await window.evaluate("document.activeElement.name || document.activeElement.type")
        reached.append(name)
        if name in {"branch", "terms"}:
            await window.keyboard.press("Space")
        if name == "mark":
            await window.keyboard.press("ArrowRight")
            outline = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
            assert await window.evaluate(outline) == "solid"
        if name == "submit":
            break
    await window.keyboard.press("Enter")

    await expect(window.get_by_role("heading", level=1)).to_have_text("Thank you")
    # Nobody comes to the field that people don't see.
    assert library.form["honeypot"] not in reached
    answers = await library.newest()
    assert (answers["name"], answers["branch"], answers["mark"]) == ("Kim", "north", 2)


async def test_a_screen_reader_hears_questions_and_faults(
    library: Library, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(library.page)

    await expect(window.get_by_role("textbox", name="Name")).to_have_count(1)
    await expect(window.get_by_role("group", name="Which branch?")).to_be_visible()
    await expect(window.get_by_role("radio", name="North")).to_have_count(1)
    await expect(window.get_by_role("group", name="How do you like our page?")).to_be_visible()
    await expect(window.get_by_role("checkbox", name="I agree to the rules")).to_have_count(1)
    await expect(window.get_by_role("textbox", name=library.form["honeypot"])).to_have_count(0)
    await fill(window, "en", "x")
    await window.get_by_role("button", name="Send").click()
    await expect(window.get_by_role("alert")).to_be_focused()
    phone = window.get_by_role("textbox", name="Phone")
    await expect(phone).to_have_attribute("aria-invalid", "true")
    await expect(phone).to_have_accessible_description(
        "Please enter a phone number with its country code."
    )


async def test_a_second_click_sends_nothing_twice(library: Library, new_window: NewWindow) -> None:
    form = await library.new_form(slug="twice")
    window = await new_window()
    await window.goto(form.page)
    await fill(window, "en", "+442079460958")

    await window.get_by_role("button", name="Send").dblclick()

    await expect(window.get_by_role("heading", level=1)).to_have_text("Thank you")
    found = await form.call("GET", f"/{form.form['form_id']}/submissions")
    assert len(found["data"]) == 1


async def every_page(library: Library, window: Page, lang: str) -> AsyncIterator[str]:
    """Opens one page of each kind after the other, and names it."""
    send = WORDS[lang][3]
    await window.goto(f"{library.page}?lang={lang}")
    yield "form"
    await fill(window, lang, "x")
    await window.get_by_role("button", name=send).click()
    await expect(window.get_by_role("alert")).to_be_visible()
    yield "form-faults"
    await window.locator("[name=phone]").fill("+442079460958")
    await window.get_by_role("button", name=send).click()
    await expect(window.locator(".sign.consumed")).to_be_visible()
    yield "form-thanks"
    await window.goto(f"{library.url}/f/frm_nobody?lang={lang}")
    yield "form-not-found"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_every_page_fits_320_pixels_and_has_no_serious_fault(
    library: Library, new_window: NewWindow, lang: str, scheme: Scheme
) -> None:
    window = await new_window(320, 640, lang=lang, scheme=scheme, bypass_csp=True)

    async for name in every_page(library, window, lang):
        await picture(window, f"{name}-{lang}-320-{scheme}")
        assert await window.evaluate("document.documentElement.scrollWidth") <= 320, name
        assert await faults(window) == [], name


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_in_a_wide_window_has_no_serious_fault(
    library: Library, new_window: NewWindow, scheme: Scheme
) -> None:
    window = await new_window(scheme=scheme, bypass_csp=True)

    async for name in every_page(library, window, "en"):
        await picture(window, f"{name}-en-desktop-{scheme}")
        assert await faults(window) == [], name


OWN_PAGE = """<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1>
<p id="said">waiting</p><script>
const form = "{page}";
const post = body => fetch(form, {{method: "POST", body: JSON.stringify(body),
  headers: {{"Content-Type": "application/json"}}}}).then(answer => answer.json());
fetch(form + "/token").then(answer => answer.json())
  .then(given => post({{_token: given.token, name: "From the shop", branch: "north", terms: true}}))
  .then(answer => {{ document.querySelector("#said").textContent = answer.submission_id; }})
  .catch(() => {{ document.querySelector("#said").textContent = "refused"; }});
</script></main>"""


@asynccontextmanager
async def shop(library: Library) -> AsyncIterator[str]:
    """A site of another origin, whose page sends the form in by its script; its address."""
    pages = {"/": "", "/done": "<title>Done</title><h1>Back in the shop</h1>"}

    async def show(request: web.Request) -> web.Response:
        text = pages[request.path] or OWN_PAGE.format(page=request.query["form"])
        return web.Response(text=text, content_type="text/html")

    app = web.Application()
    app.add_routes([web.get(path, show) for path in pages])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await stop(runner)


async def test_a_page_of_a_registered_site_sends_it_by_its_script_and_no_other_does(
    library: Library, new_window: NewWindow
) -> None:
    window = await new_window()
    async with shop(library) as address:
        allowed = await library.new_form(slug="shop", allowed_origins=[address])

        await window.goto(f"{address}/?form={allowed.page}")
        await expect(window.locator("#said")).to_contain_text("fsb_")
        await window.goto(f"{address}/?form={library.page}")
        await expect(window.locator("#said")).to_have_text("refused")

    assert (await allowed.newest())["name"] == "From the shop"


async def test_a_browser_is_led_to_the_registered_page(
    library: Library, new_window: NewWindow
) -> None:
    window = await new_window(scripts=False)
    async with shop(library) as address:
        form = await library.new_form(slug="led", redirect_url=f"{address}/done")
        await window.goto(form.page)
        await fill(window, "en", "+442079460958")

        await window.get_by_role("button", name="Send").click()

        await expect(window.get_by_role("heading", level=1)).to_have_text("Back in the shop")
