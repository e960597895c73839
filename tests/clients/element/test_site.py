"""What the example's server answers to several tabs, to strangers, and where the service refuses."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc
from tests.clients.element.site import Site, load_example


@pytest.fixture
async def browser(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """With cookies, as a browser has them."""
    async with httpx2.AsyncClient(base_url=site.url, verify=load_example().TLS) as client:
        yield client


async def confirm(service: AsyncMsgsvc, begun: dict[str, object]) -> None:
    person = await service.person("Ann")
    links = begun["links"]
    assert isinstance(links, dict)
    await person.open(links["messenger_a"])
    await person.press(str(begun["match_number"]))


@pytest.mark.parametrize("confirmed", ["first", "second"])
async def test_each_of_two_tabs_has_a_sign_in_of_its_own_and_one_is_enough(
    msgsvc_async: AsyncMsgsvc, browser: httpx2.AsyncClient, confirmed: str
) -> None:
    tabs = [(await browser.post("/signin")).json() for _ in range(2)]
    mine, other = tabs if confirmed == "first" else reversed(tabs)
    await confirm(msgsvc_async, mine)
    told = (await browser.get(mine["status_url"])).json()
    waits = (await browser.get(other["status_url"])).json()
    finished = await browser.get(told["redirect"])
    home = await browser.get("/")

    assert (told["status"], waits["status"]) == ("confirmed", "pending")
    assert (finished.status_code, finished.headers["location"]) == (303, "/")
    assert "sub_" in home.text
    # The other goes on with what this one has got.
    goes_on = (await browser.get(other["status_url"])).json()
    assert goes_on == {"status": "confirmed", "redirect": "/"}


async def test_the_end_leads_back_where_nothing_was_begun_or_nothing_is_confirmed(
    browser: httpx2.AsyncClient,
) -> None:
    strange = await browser.get("/signin/ses_of_nobody/finish")
    begun = (await browser.post("/signin")).json()
    early = await browser.get(f"{begun['status_url']}/finish")

    for answer in (strange, early):
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_another_browser_is_told_nothing(browser: httpx2.AsyncClient, site: Site) -> None:
    begun = (await browser.post("/signin")).json()
    async with httpx2.AsyncClient(base_url=site.url, verify=load_example().TLS) as stranger:
        assert (await stranger.get(begun["status_url"])).status_code == 404


async def test_the_cookie_holds_the_latest_of_many(browser: httpx2.AsyncClient) -> None:
    begun = [(await browser.post("/signin")).json() for _ in range(6)]
    found = [(await browser.get(one["status_url"])).status_code for one in begun]

    assert found == [404, 200, 200, 200, 200, 200]


@pytest.mark.parametrize(("refusal", "answered"), [(404, 404), (429, 429), (401, 502), (503, 502)])
async def test_what_the_element_can_tell_apart_is_passed_on(
    browser: httpx2.AsyncClient,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    refusal: int,
    answered: int,
) -> None:
    begun = (await browser.post("/signin")).json()
    monkeypatch.setenv("MSGSVC_URL", f"{site.url}/refusing/{refusal}")

    assert (await browser.get(begun["status_url"])).status_code == answered
    assert (await browser.post("/signin")).status_code == answered
