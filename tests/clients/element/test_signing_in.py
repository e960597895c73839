"""People sign in through `<msgsvc-signin>` on a site's own page, in real Chromium."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc
from tests.clients.element.site import Site
from tests.e2e.windows import NewWindow, Scheme, picture, read_qr

pytestmark = pytest.mark.browser


async def press_link(window: Page) -> None:
    """By keyboard."""
    await window.locator("msgsvc-signin > a").focus()
    await window.keyboard.press("Enter")


async def begin(window: Page, address: str) -> str:
    """Opens the panel; returns the link of the first messenger."""
    await window.goto(address)
    await press_link(window)
    await expect(link(window)).to_be_visible()
    return await url_of(window)


def link(window: Page) -> Locator:
    return window.locator("a[data-channel=messenger_a]").first


async def url_of(window: Page) -> str:
    return str(await link(window).get_attribute("href"))


def told(window: Page) -> Locator:
    return window.get_by_role("status")


async def answer(service: AsyncMsgsvc, url: str, choice: str) -> None:
    """As somebody new, who opens the link and presses a button."""
    person = await service.person("Ann")
    await person.open(url)
    await person.press(choice)


async def choose_number(service: AsyncMsgsvc, window: Page) -> None:
    await answer(service, await url_of(window), await window.locator("[part=number]").inner_text())


async def is_signed_in(window: Page) -> None:
    await expect(window.locator("#user")).to_have_text(re.compile("^sub_"))


#: What the headers of a site's pages may forbid, as queries of its page. The first forbids most.
POLICIES = ({"strict": "1", "opener": "1"}, {"strict": "1"}, {"opener": "1"}, {})


async def begin_and_choose(
    service: AsyncMsgsvc, window: Page, address: str, name: str = ""
) -> None:
    """Signs in by keyboard, and out. Leaves a picture of the panel by that name."""
    await begin(window, address)
    await expect(told(window)).to_have_text("Waiting for your answer in the messenger…")
    assert await window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if name:
        await picture(window, name)
    await choose_number(service, window)
    await is_signed_in(window)
    await window.context.clear_cookies()


@pytest.mark.parametrize("attributes", ["", "inline"])
async def test_a_person_signs_in_by_keyboard_under_each_policy(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow, attributes: str
) -> None:
    window = await new_window(320, 720)
    for policy in POLICIES:
        await begin_and_choose(msgsvc_async, window, site.page(attributes, **policy))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_a_person_signs_in_by_keyboard_in_each_size_and_scheme(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow, width: int, scheme: Scheme
) -> None:
    window = await new_window(width, 720, scheme=scheme)
    for attributes in ("", "inline"):
        name = f"element-{attributes or 'dialog'}-{width}-{scheme}"
        address = site.page(attributes, **POLICIES[0])
        await begin_and_choose(msgsvc_async, window, address, name)


async def confirm_without_scripts(service: AsyncMsgsvc, window: Page, address: str) -> None:
    """Signs in on the hosted page, to which the link leads, and out."""
    await window.goto(address)
    # One after another from the top of the page: nothing but the link takes the focus.
    await window.keyboard.press("Tab")
    await window.keyboard.press("Enter")
    await expect(link(window)).to_be_visible()
    await answer(service, await url_of(window), "Yes")
    # The page looks by itself every five seconds.
    await window.reload()
    await is_signed_in(window)
    await window.context.clear_cookies()


async def test_without_scripts_the_link_leads_to_the_hosted_page_and_back_under_each_policy(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window(320, 720, scripts=False)
    for policy in POLICIES:
        await confirm_without_scripts(msgsvc_async, window, site.page(**policy))

    assert site.begins == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_without_scripts_the_link_leads_to_the_hosted_page_in_each_size_and_scheme(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow, width: int, scheme: Scheme
) -> None:
    window = await new_window(width, 720, scheme=scheme, scripts=False)
    await confirm_without_scripts(msgsvc_async, window, site.page(**POLICIES[0]))

    assert site.begins == 0


async def test_the_code_is_scanned_and_the_number_chosen(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow, tmp_path: Path
) -> None:
    window = await new_window()
    url = await begin(window, site.page(strict="1", opener="1"))
    scanned = await read_qr(window, tmp_path)
    await answer(msgsvc_async, scanned, await window.locator("[part=number]").inner_text())

    assert scanned == url
    await is_signed_in(window)


@pytest.mark.parametrize("width", [320, 1280])
async def test_a_double_click_on_the_link_cancels_nothing(
    site: Site, new_window: NewWindow, width: int
) -> None:
    window = await new_window(width, 720)
    for share in (40, 50, 60):
        await window.goto(site.page())
        # In the middle, where the dialog has its first buttons.
        await window.add_style_tag(
            content=f"msgsvc-signin > a {{ position: fixed; top: {share}%; left: 50% }}"
        )
        await window.locator("msgsvc-signin > a").dblclick()
        await expect(link(window)).to_be_visible()

        assert len(window.context.pages) == 1


async def test_two_tabs_sign_in_apart(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    first = await new_window()
    await begin(first, site.page())
    second = await first.context.new_page()
    await begin(second, site.page())
    await choose_number(msgsvc_async, first)

    await is_signed_in(first)
    # As when somebody looks at it again: it asks at once.
    await second.evaluate("dispatchEvent(new Event('online'))")
    await is_signed_in(second)


async def test_back_shows_the_link_again(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await begin(window, site.page())
    # As a browser that keeps the page in its memory does; this one, when driven, keeps none.
    await window.route("**/finish", lambda route: route.fulfill(status=204))
    await choose_number(msgsvc_async, window)
    await expect(told(window)).to_have_text("Confirmed. One moment…")
    await window.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")

    await expect(window.locator("dialog")).to_have_count(0)
    assert await window.evaluate("document.querySelector('msgsvc-signin').state.status") == "idle"
    await press_link(window)
    await expect(told(window)).to_have_text("Waiting for your answer in the messenger…")


async def test_another_number_ends_it_and_try_again_begins_anew(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    url = await begin(window, site.page())
    await answer(msgsvc_async, url, "Cancel")

    await expect(told(window)).to_have_text("The sign-in was cancelled in the messenger.")
    await picture(window, "element-denied")
    await window.get_by_role("button", name="Try again").click()
    await expect(told(window)).to_have_text("Waiting for your answer in the messenger…")
    assert await url_of(window) != url
    await choose_number(msgsvc_async, window)
    await is_signed_in(window)


async def test_time_runs_out_is_extended_and_begun_anew(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    site.begun["expires_in"] = 55
    url = await begin(window, site.page())
    await expect(told(window)).to_have_text("Less than a minute is left.")
    await expect(window.locator("[part=time]")).to_have_text(re.compile(r"Valid for 0:5\d"))
    await picture(window, "element-ending")
    site.begun.clear()
    await window.get_by_role("button", name="Get more time").click()
    await expect(window.locator("[part=time]")).to_have_text(re.compile(r"Valid for (10:00|9:5\d)"))
    await expect(window.get_by_role("button", name="Get more time")).to_be_hidden()
    renewed = await url_of(window)
    await link(window).focus()
    await msgsvc_async.advance(minutes=11)

    await expect(told(window)).to_have_text("The time is up.")
    await picture(window, "element-expired")
    # What had the focus is gone.
    focused = "document.querySelector('msgsvc-signin').shadowRoot.activeElement.textContent"
    assert await window.evaluate(focused) == "Sign in to Shop"
    await window.keyboard.press("Tab")
    await window.keyboard.press("Enter")
    await expect(told(window)).to_have_text("Waiting for your answer in the messenger…")
    assert len({url, renewed, await url_of(window)}) == 3
    await choose_number(msgsvc_async, window)
    await is_signed_in(window)


async def test_a_network_that_fails_in_the_middle_is_waited_for(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.route("**/signin/*?wait=*", lambda route: route.abort())
    await begin(window, site.page())
    await expect(told(window)).to_have_text("No connection. Trying again…")
    await choose_number(msgsvc_async, window)
    await window.unroute("**/signin/*?wait=*")
    # As when the phone comes back from the messenger: it asks at once.
    await window.evaluate("dispatchEvent(new Event('online'))")

    await is_signed_in(window)


async def test_a_site_that_is_down_for_a_moment_is_asked_again(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    site.refuses_status = 503
    await begin(window, site.page())
    await expect(told(window)).to_have_text("No connection. Trying again…")
    site.refuses_status = 0
    await expect(told(window)).to_have_text("Waiting for your answer in the messenger…")


async def test_a_sign_in_that_the_site_has_forgotten_can_be_begun_anew(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    site.refuses_status = 404
    await window.goto(site.page())
    await press_link(window)

    await expect(told(window)).to_have_text("The sign-in did not work.")
    await expect(window.get_by_role("button", name="Try again")).to_be_visible()


async def test_a_network_that_fails_at_first_is_told_in_the_panel(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.route("**/signin", lambda route: route.abort())
    await window.goto(site.page())
    await press_link(window)
    await expect(told(window)).to_have_text("The sign-in did not work.")
    await window.unroute("**/signin")
    await window.get_by_role("button", name="Try again").click()

    await expect(link(window)).to_be_visible()


@pytest.mark.parametrize("attributes", ["", "inline"])
async def test_cancel_returns_to_the_link_and_asks_no_more(
    site: Site, new_window: NewWindow, attributes: str
) -> None:
    window = await new_window()
    for close in ("button", "escape"):
        await begin(window, site.page(attributes))
        if close == "button" or attributes:
            await window.get_by_role("button", name="Cancel").click()
        else:
            await window.keyboard.press("Escape")
        await expect(window.locator("dialog")).to_have_count(0)

        assert await window.evaluate("document.activeElement.textContent") == "Sign in to Shop"
        assert (
            await window.evaluate("document.querySelector('msgsvc-signin').state.status") == "idle"
        )


@pytest.mark.parametrize(
    "click", [{"button": "middle"}, {"modifiers": ["Control"]}], ids=["middle", "Ctrl"]
)
async def test_a_click_for_a_new_tab_is_the_browsers(
    site: Site, new_window: NewWindow, click: dict[str, object]
) -> None:
    window = await new_window()
    await window.goto(site.page())
    async with window.context.expect_page() as opened:
        await window.locator("msgsvc-signin > a").click(**click)
    page = await opened.value
    await page.wait_for_url(re.compile("/login/shop"))

    assert site.begins == 0
    await expect(window.locator("dialog")).to_have_count(0)


@pytest.mark.parametrize("status", [404, 405, 429, 500])
async def test_a_site_that_refuses_is_asked_for_its_page(
    site: Site, new_window: NewWindow, status: int
) -> None:
    window = await new_window()
    site.refuses_begin = status
    await window.goto(site.page())
    await press_link(window)

    await window.wait_for_url(re.compile("/login/shop"))


async def test_without_a_redirect_the_form_around_is_submitted(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    site.told["redirect"] = None
    await begin(window, site.page(strict="1"))
    await choose_number(msgsvc_async, window)

    await expect(window.locator("#ordered")).to_be_visible()


async def test_a_page_hears_of_each_change_and_may_go_on_by_itself(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(site.page('csrf-token="t0ken"'))
    await window.evaluate("""() => {
      window.heard = [];
      document.addEventListener("msgsvc-signin:change", (event) => heard.push(event.detail.status));
      document.addEventListener("msgsvc-signin:completed", (event) => event.preventDefault());
    }""")
    await press_link(window)
    await expect(link(window)).to_be_visible()
    await choose_number(msgsvc_async, window)
    await expect(told(window)).to_have_text("Confirmed. One moment…")

    heard = await window.evaluate("heard")
    assert list(dict.fromkeys(heard)) == ["starting", "pending", "confirmed"]
    assert window.url == site.page('csrf-token="t0ken"')
    assert site.headers["x-csrf-token"] == "t0ken"


async def test_a_site_has_a_button_of_its_own_without_the_view(
    msgsvc_async: AsyncMsgsvc, site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(site.page(strict="1"))
    await window.evaluate("""async () => {
      const { createSignIn, qrPath } = await import("/static/msgsvc-signin.js");
      window.signIn = createSignIn({ session: "/signin" });
      window.done = new Promise((resolve) => signIn.subscribe((state) => {
        if (state.status === "confirmed") resolve(state.redirect);
      }));
      await signIn.start();
      window.size = qrPath(signIn.state.messengers[0].url).size;
    }""")
    state = await window.evaluate("signIn.state")
    await answer(msgsvc_async, state["messengers"][0]["url"], str(state["number"]))

    assert re.fullmatch(r"/signin/ses_\w+/finish", await window.evaluate("done"))
    assert [one["name"] for one in state["messengers"]] == ["Messenger_a", "Messenger_b"]
    assert await window.evaluate("size") > 20
    await expect(window.locator("dialog")).to_have_count(0)


async def test_start_messages_and_names_are_shown(site: Site, new_window: NewWindow) -> None:
    window = await new_window()
    site.begun = {
        "links": {"messenger_a": "https://a.example/1", "max": "https://b.example/2"},
        "names": {"max": "MAX"},
        "start_messages": {"max": "start K7QF2M9X"},
        "match_number": None,
    }
    await begin(window, site.page())

    await expect(window.get_by_role("link", name="Open MAX (opens in a new tab)")).to_be_visible()
    await expect(window.locator("[part=write]")).to_have_text("Write there: start K7QF2M9X")
    await expect(window.locator("[part=number]")).to_be_hidden()
    await expect(window.locator("[part=lead]")).to_have_text(
        "Open a messenger and press Yes there."
    )
    # One code at a time.
    await window.locator("summary", has_text="MAX").click()
    await expect(window.get_by_role("img", name="QR code for MAX")).to_be_visible()
    await expect(window.get_by_role("img", name="QR code for Messenger_a")).to_be_hidden()
    await picture(window, "element-two-messengers")
    attributes = ["target", "rel"]
    found = [await link(window).get_attribute(name) for name in attributes]
    assert found == ["_blank", "noopener noreferrer"]


async def test_russian_and_own_texts(site: Site, new_window: NewWindow) -> None:
    window = await new_window()
    await begin(window, site.page(lang="ru", title="Войти в Магазин"))
    await expect(told(window)).to_have_text("Ждём вашего ответа в мессенджере…")
    await expect(window.get_by_role("dialog", name="Войти в Магазин")).to_be_visible()
    await expect(told(window)).to_have_attribute("lang", "ru")
    await picture(window, "element-ru")
    await begin(window, site.page("data-lead='Öffnen' data-waiting='Wir warten'", lang="de"))
    await expect(told(window)).to_have_text("Wir warten")
    # As the page around it, and what the page does not give is not.
    assert await told(window).evaluate("it => it.matches(':lang(de)')")
    await expect(window.get_by_role("button", name="Cancel")).to_have_attribute("lang", "en")
    await begin(window, site.page(lang="de"))
    # Nobody's German: a screen reader has to know.
    await expect(told(window)).to_have_attribute("lang", "en")
