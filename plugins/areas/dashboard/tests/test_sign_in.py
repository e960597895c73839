"""Signing in with a browser: the way in, the way out, and the ways that are none."""

from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import AccountLinks, Accounts, SecondFactor, totp
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.browsers import PASSWORD, browsing, new_account

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(**WITH_DASHBOARD)


@pytest.mark.both_databases
async def test_somebody_signs_in_sees_their_project_and_signs_out(service: Service) -> None:
    ann = await new_account(service)
    async with service.db.transaction() as tx:
        project = await service.get(Accounts).create_project(tx, ann, "Shop")
    home = f"/dashboard/projects/{project.project_id}"
    async with browsing(service) as browser:
        await browser.open("/dashboard")
        assert browser.to == "/dashboard/sign-in"
        await browser.open(f"{home}/members?role=agent")
        assert browser.to.startswith("/dashboard/sign-in?next=")

        await browser.open(browser.to)
        await browser.submit(email="ANN@shop.example", password=PASSWORD, timezone="Asia/Tomsk")
        cookies = browser.shown.headers.get_list("set-cookie")
        led_to = browser.to
        await browser.open("/dashboard")
        only = browser.to
        page = await browser.open(home)
        left = await browser.submit("/dashboard/sign-out")
        after = await browser.open(home)

    assert led_to == f"{home}/members?role=agent"
    assert only == home
    session = next(cookie for cookie in cookies if cookie.startswith("msgsvc_session="))
    assert "HttpOnly" in session
    assert "SameSite=lax" in session
    assert "Max-Age=1209600" in session
    assert page.status_code == 200
    assert (left.status_code, after.status_code) == (303, 303)
    async with service.db.read() as tx:
        assert (await service.get(Accounts).find(tx, ann.account_id)).timezone == "Asia/Tomsk"
        assert not await service.get(Accounts).sessions_of(tx, ann.account_id)


async def test_over_https_cookies_are_this_hosts_alone(make_service: ServiceFactory) -> None:
    service = await make_service(base_url="https://msgsvc.test", **WITH_DASHBOARD)
    await new_account(service)
    async with browsing(service, scheme="https") as browser:
        await browser.sign_in("ann@shop.example")
        cookies = browser.shown.headers.get_list("set-cookie")
        await browser.open("/dashboard")

    kept = [cookie for cookie in cookies if "Max-Age=0" not in cookie]
    assert len(kept) == 2
    assert all(cookie.startswith("__Host-msgsvc_") for cookie in cookies)
    assert all("; Secure" in cookie and "Path=/;" in cookie for cookie in cookies)
    assert browser.to == "/dashboard/account/projects"


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_refusal_keeps_the_email_and_the_way_and_says_how_long_to_wait(
    make_service: ServiceFactory, lang: str
) -> None:
    service = await make_service(dashboard={"tries_per_email": 1}, **WITH_DASHBOARD)
    typed = '"><img src=x onerror=alert(1)>@x.example'
    async with browsing(service, lang=lang) as browser:
        refused = await browser.sign_in(typed, "wrong", to="/dashboard/account?x=1")
        again = await browser.submit(email=typed, password="wrong")

    said = {
        "en": ("Wrong email or password.", "Please wait 15 minutes."),
        "ru": ("Неверная почта или пароль.", "Подождите 15 минут."),
    }
    assert refused.status_code == 403
    assert said[lang][0] in refused.text
    assert "<img" not in refused.text
    assert "&lt;img src=x onerror=alert(1)&gt;@x.example" in refused.text
    assert 'value="/dashboard/account?x=1"' in refused.text
    assert again.status_code == 429
    assert said[lang][1] in again.text
    assert again.headers["Retry-After"] == "900"


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example/dashboard",
        "//evil.example",
        "/\\evil.example",
        "/login",
        "/dashboardx",
    ],
)
async def test_nobody_is_led_to_another_site(service: Service, to: str) -> None:
    await new_account(service)
    async with browsing(service) as browser:
        await browser.open("/dashboard/sign-in")
        await browser.submit(email="ann@shop.example", password=PASSWORD, next=to)

    assert browser.to == "/dashboard"


async def test_another_site_signs_nobody_in_and_nobody_out(service: Service) -> None:
    await new_account(service)
    async with browsing(service) as browser, browsing(service) as other:
        await browser.open("/dashboard/sign-in")
        page = browser.shown.text
        mine = {"email": "ann@shop.example", "password": PASSWORD}
        # A form without the browser's cookie, with another browser's token, from another site.
        await other.open("/dashboard/sign-in")
        await other.sign_in("ann@shop.example")
        without = await other.http.post("/dashboard/sign-in", data=mine)
        foreign = await browser.submit(_csrf="0" * 64, **mine)
        browser.http.headers["Sec-Fetch-Site"] = "cross-site"
        await browser.open("/dashboard/sign-in")
        cross = await browser.submit(**mine)
        out = await other.http.post("/dashboard/sign-out")
        still = await other.open("/dashboard")

    assert "_csrf" in page
    assert [each.status_code for each in (without, foreign, cross, out)] == [403] * 4
    assert still.headers["location"] == "/dashboard/account/projects"


async def test_the_second_factor_is_asked_for_after_the_password(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    async with service.db.transaction() as tx:
        secret = await service.get(SecondFactor).offer(tx, ann)
        code = totp.code_at(secret, clock.now_ms() // 30_000)
        await service.get(SecondFactor).confirm(tx, ann.account_id, code)
    clock.advance(30)
    async with browsing(service) as browser:
        await browser.sign_in("ann@shop.example", to="/dashboard/account")
        asked = browser.to
        page = await browser.open(asked)
        inside = await browser.http.get("/dashboard/operator/accounts")
        wrong = await browser.submit(code="000000")
        await browser.submit(code=totp.code_at(secret, clock.now_ms() // 30_000))

    assert asked == "/dashboard/sign-in/code?next=/dashboard/account"
    assert "Enter a code" in page.text
    assert inside.status_code == 303
    assert (wrong.status_code, "The code is wrong" in wrong.text) == (403, True)
    assert browser.to == "/dashboard/account"


async def test_a_link_signs_in_once_and_a_preview_uses_nothing_up(service: Service) -> None:
    ann = await new_account(service, password=None)
    async with service.db.transaction() as tx:
        token = await service.get(AccountLinks).for_account(tx, ann.account_id, "sign_in")
        to_set = await service.get(AccountLinks).for_account(tx, ann.account_id, "password")
    url = f"/dashboard/link/{token}"
    async with browsing(service) as bot, browsing(service) as browser, browsing(service) as late:
        for _ in range(3):
            await bot.open(url)
        page = await browser.open(url)
        await late.open(url)
        await browser.submit()
        first = browser.to
        second = await late.submit()
        await browser.open(f"/dashboard/link/{to_set}")
        weak = await browser.submit(password="password123")
        await browser.submit(password=PASSWORD)
        set_to = browser.to
        await late.sign_in("ann@shop.example")

    assert service.get(AccountLinks).url(token).endswith(url)
    assert "Welcome, Ann Lee" in page.text
    assert (first, set_to, late.to) == ("/dashboard", "/dashboard", "/dashboard")
    assert second.status_code == 404
    assert (weak.status_code, "guessed first" in weak.text) == (400, True)
    async with service.db.read() as tx:
        # The new password ended the session of the first link.
        assert len(await service.get(Accounts).sessions_of(tx, ann.account_id)) == 2


async def test_nothing_secret_is_logged(service: Service, capsys: Any) -> None:
    ann = await new_account(service)
    async with service.db.transaction() as tx:
        token = await service.get(AccountLinks).for_account(tx, ann.account_id, "password")
    secrets = [PASSWORD, token]
    async with browsing(service) as browser:
        await browser.open(f"/dashboard/link/{token}")
        await browser.submit(password="short one")
        await browser.submit(password=PASSWORD)
        await browser.sign_in("ann@shop.example", PASSWORD + "!")
        await browser.http.get(f"/dashboard/link/{token}x")
        secrets += browser.http.cookies.values()
    said = "".join(capsys.readouterr())

    assert "/dashboard/link/{token}" in said
    assert len(secrets) >= 4
    assert not [secret for secret in secrets if secret in said]
