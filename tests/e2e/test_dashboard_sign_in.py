"""The pages for who is not signed in, in Chromium: they keep nobody out, on a phone neither."""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from msgsvc_core.members.models import AddMemberBody
from msgsvc_dashboard.accounts import Accounts, Team
from tests.e2e.furnished import furnished
from tests.e2e.windows import faults

pytestmark = pytest.mark.browser

PASSWORD = "a winter evening by the sea"


async def test_somebody_signs_in_by_link_and_password_on_a_phone(
    browser: Browser, tmp_path: Path
) -> None:
    found: list[str] = []
    async with furnished(tmp_path) as place:
        service, project_id = place.service, place.tenant.project.project_id
        async with service.db.transaction() as tx:
            body = AddMemberBody(name="Boris", email="boris@pinewood.example", role="agent")
            _, token = await service.get(Team).invite(tx, project_id, body, by="owner")
        context = await browser.new_context(
            viewport={"width": 320, "height": 640},
            color_scheme="dark",
            timezone_id="Asia/Tomsk",
            bypass_csp=True,
        )
        page = await context.new_page()

        async def look(name: str) -> None:
            found.extend(f"{name}: {fault}" for fault in await faults(page))
            width = await page.evaluate("document.documentElement.scrollWidth")
            found.extend([f"{name} is {width} wide"] if width > 320 else [])

        await page.goto(f"{place.url}/dashboard/link/{token}")
        await look("invitation")
        await page.get_by_label("Choose a password").fill(PASSWORD)
        await page.get_by_role("button", name="Join").click()
        await page.wait_for_url(f"**/projects/{project_id}")
        await context.clear_cookies()
        await page.goto(f"{place.url}/dashboard/projects/{project_id}")
        await look("password")
        await page.get_by_label("Email").fill("boris@pinewood.example")
        await page.get_by_label("Password").fill("not this one")
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await look("refusal")
        await page.get_by_role("button", name="Sign in through a messenger").click()
        await page.get_by_text("Waiting for your answer").wait_for()
        await page.get_by_text("Scan with your phone").first.click()
        await look("messenger")
        await page.get_by_role("link", name="Sign in with a password").click()
        await page.get_by_label("Email").fill("boris@pinewood.example")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await page.wait_for_url(f"**/projects/{project_id}")
        async with service.db.read() as tx:
            account = await service.get(Accounts).by_email(tx, "boris@pinewood.example")
        await context.close()

    assert not found, "\n".join(found)
    assert account.timezone == "Asia/Tomsk"
