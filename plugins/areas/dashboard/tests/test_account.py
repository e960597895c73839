"""Somebody's own account by its pages, and all accounts for who runs the installation."""

import re
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import Accounts, totp
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import Visitor, stranger
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.browsers import PASSWORD, browsing, new_account
from plugins.areas.dashboard.tests.test_team import link_in


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


async def signed_in(service: Service) -> Visitor:
    ann = await new_account(service)
    visitor = Visitor(service, "", ann.account_id)
    await visitor.sign_in()
    return visitor


async def test_name_time_zone_and_password_are_changed_and_other_browsers_signed_out(
    service: Service,
) -> None:
    ann = await signed_in(service)
    profile = {"name": "Ann L.", "lang": "ru", "timezone": "Asia/Tomsk"}
    changes: dict[str, Any] = {"new_password": "another one", "new_password_again": "another one"}
    async with browsing(service) as other:
        await other.sign_in("ann@shop.example")
        saved = await ann.post("/dashboard/account/profile", profile)
        nowhere = await ann.post(
            "/dashboard/account/profile", {**profile, "timezone": "Moon/Crater", "name": "Typed"}
        )
        wrong = await ann.post("/dashboard/account/password", {**changes, "password": "wrong one!"})
        differs = await ann.post(
            "/dashboard/account/password",
            {**changes, "password": PASSWORD, "new_password_again": "no"},
        )
        changed = await ann.post("/dashboard/account/password", {**changes, "password": PASSWORD})
        await other.open("/dashboard")
        out = other.to
    page = await ann.get("/dashboard/account")
    zones = re.findall(r'<option value="([^"]*/[^"]*)">', page.text)
    log = await ann.get("/dashboard/account/log")
    await ann.client.aclose()

    assert saved.status_code == 303
    assert (nowhere.status_code, 'value="Typed"' in nowhere.text) == (400, True)
    assert (wrong.status_code, "Неверный пароль." in wrong.text) == (400, True)
    assert "another one" not in wrong.text
    assert differs.status_code == 400
    assert changed.status_code == 303
    assert out == "/dashboard/sign-in"
    assert "Ann L." in page.text
    assert re.search(r'value="Asia/Tomsk"[^>]* list="zones-timezone"', page.text)
    assert "Europe/Berlin" in zones
    assert zones == sorted(zones)
    assert page.text.count("Firefox") == 0
    assert "account.change_password" in log.text
    assert "sessions_ended: 1" in log.text


async def test_who_came_by_a_link_is_told_how_to_come_back_until_they_can(service: Service) -> None:
    async with service.db.transaction() as tx:
        boris = await service.get(Accounts).create(tx, email="boris@shop.example", name="Boris")
    visitor = Visitor(service, "", boris.account_id)
    await visitor.sign_in()
    new = {"new_password": "another one", "new_password_again": "another one"}
    told = await visitor.get("/dashboard/account/projects")
    made = await visitor.post("/dashboard/account/projects", {"name": "Shop"})
    told_inside = await visitor.client.get(made.headers["location"])
    await visitor.post("/dashboard/account/password", new)
    after = await visitor.get("/dashboard/account/projects")
    await visitor.client.aclose()

    assert "one-time link" in told.text
    assert "one-time link" in told_inside.text
    assert "one-time link" not in after.text


async def test_browsers_are_listed_and_signed_out(service: Service) -> None:
    ann = await signed_in(service)
    async with browsing(service) as one, browsing(service) as two, browsing(service) as three:
        for browser in (one, two, three):
            await browser.sign_in("ann@shop.example")
        page = await ann.get("/dashboard/account")
        newest = re.findall(r"/sessions/(ase_\w+)/end", page.text)[0]
        await ann.post(f"/dashboard/account/sessions/{newest}/end")
        stranger_of_it = await ann.post("/dashboard/account/sessions/ase_1/end")
        first = [(await each.open("/dashboard")).headers["location"] for each in (two, three)]
        await ann.post("/dashboard/account/sessions/end")
        then = [(await each.open("/dashboard")).headers["location"] for each in (one, two)]
    still = await ann.get("/dashboard/account")
    await ann.client.aclose()

    assert page.text.count('data-label="Browser"') == 4
    assert stranger_of_it.status_code == 404
    assert first == ["/dashboard/account/projects", "/dashboard/sign-in"]
    assert then == ["/dashboard/sign-in"] * 2
    assert still.status_code == 200


async def test_the_second_factor_is_set_up_and_removed_with_the_password(
    service: Service, clock: FakeClock
) -> None:
    ann = await signed_in(service)
    path = "/dashboard/account/second-factor"
    await ann.post(path)
    page = await ann.post(path)
    secret = secret_in(page.text)
    wrong = await ann.post(f"{path}/confirm", {"code": "000000", "password": PASSWORD})
    code = totp.code_at(secret, clock.now_ms() // 30_000)
    confirmed = await ann.post(f"{path}/confirm", {"code": code, "password": PASSWORD})
    codes = re.findall(r"<code>(\w{5}-\w{5})</code>", confirmed.text)
    kept = await ann.get(path)
    refused = await ann.post(f"{path}/remove", {"password": "wrong one!"})
    renewed = await ann.post(f"{path}/codes", {"password": PASSWORD})
    async with browsing(service) as browser:
        await browser.sign_in("ann@shop.example")
        await browser.open(browser.to)
        old = await browser.submit(code=codes[0])
        new = re.findall(r"<code>(\w{5}-\w{5})</code>", renewed.text)[0]
        await browser.submit(code=new)
        led_to = browser.to
    removed = await ann.post(f"{path}/remove", {"password": PASSWORD})
    guesses = [
        (await ann.post(f"{path}/remove", {"password": "a guess"})).status_code for _ in range(2)
    ]
    await ann.client.aclose()

    assert "<svg" in page.text
    assert (wrong.status_code, len(codes)) == (400, 10)
    assert secret not in kept.text
    assert refused.status_code == 400
    assert (old.status_code, led_to) == (403, "/dashboard")
    assert removed.status_code == 303
    assert guesses == [429, 429]


async def test_who_finds_a_browser_left_open_sets_up_no_second_factor(
    service: Service, clock: FakeClock
) -> None:
    ann = await signed_in(service)
    path = "/dashboard/account/second-factor"
    secret = secret_in((await ann.post(path)).text)
    left = await ann.get(path)
    code = totp.code_at(secret, clock.now_ms() // 30_000)
    unasked = await ann.post(f"{path}/confirm", {"code": code})
    guesses = [
        (await ann.post(f"{path}/confirm", {"code": code, "password": "a guess"})).status_code
        for _ in range(5)
    ]
    late = await ann.post(f"{path}/confirm", {"code": code, "password": PASSWORD})
    async with browsing(service) as browser:
        await browser.sign_in("ann@shop.example")
        led_to = browser.to
    await ann.client.aclose()

    assert secret not in left.text
    assert "Your password is wrong." in unasked.text
    assert secret not in unasked.text
    assert (guesses, late.status_code) == ([400, 400, 400, 400, 429], 429)
    assert led_to == "/dashboard"


async def test_who_has_no_password_keeps_a_second_factor_by_its_codes(
    service: Service, clock: FakeClock
) -> None:
    async with service.db.transaction() as tx:
        boris = await service.get(Accounts).create(tx, email="boris@shop.example", name="Boris")
    visitor = Visitor(service, "", boris.account_id)
    await visitor.sign_in()
    path = "/dashboard/account/second-factor"
    page = await visitor.post(path)
    code = totp.code_at(secret_in(page.text), clock.now_ms() // 30_000)
    confirmed = await visitor.post(f"{path}/confirm", {"code": code})
    codes = re.findall(r"<code>(\w{5}-\w{5})</code>", confirmed.text)
    log = await visitor.get("/dashboard/account/log")
    kept = await visitor.get(path)
    used = await visitor.post(f"{path}/codes", {"code": code})
    clock.advance(30)
    code = totp.code_at(secret_in(page.text), clock.now_ms() // 30_000)
    renewed = await visitor.post(f"{path}/codes", {"code": code})
    old = await visitor.post(f"{path}/remove", {"code": codes[0]})
    newest = re.findall(r"<code>(\w{5}-\w{5})</code>", renewed.text)
    removed = await visitor.post(f"{path}/remove", {"code": newest[0]})
    await visitor.client.aclose()

    assert 'name="password"' not in page.text + kept.text
    assert (len(codes), len(newest)) == (10, 10)
    assert "account.confirm" in log.text
    assert (used.status_code, old.status_code, removed.status_code) == (400, 400, 303)


@pytest.mark.both_databases
async def test_whoever_reads_russian_is_refused_in_russian(service: Service) -> None:
    ann = await signed_in(service)
    path = "/dashboard/account"
    await ann.post(f"{path}/profile", {"name": "Ann", "lang": "ru", "timezone": "Europe/Riga"})
    await ann.post(f"{path}/second-factor")
    wrong = await ann.post(
        f"{path}/second-factor/confirm", {"code": "000000", "password": PASSWORD}
    )
    short = await ann.post(
        f"{path}/password",
        {"password": PASSWORD, "new_password": "short", "new_password_again": "short"},
    )
    await ann.client.aclose()

    assert "Код: не тот, который сейчас показывает приложение" in wrong.text
    assert "Пароль: не меньше 10 символов" in short.text


def secret_in(html: str) -> str:
    found = re.search(r"<code>([A-Z2-7]{32})</code>", html)
    assert found is not None
    return found[1]


async def test_a_project_is_made_and_one_leads_straight_there(service: Service) -> None:
    ann = await signed_in(service)
    empty = await ann.get("/dashboard/account/projects")
    refused = await ann.post("/dashboard/account/projects", {"name": "x" * 65})
    made = await ann.post("/dashboard/account/projects", {"name": "  Book   shop "})
    inside = await ann.client.get(made.headers["location"])
    straight = await ann.get("/dashboard")
    team = await ann.get(f"{made.headers['location']}/members")
    unasked = await ann.post("/dashboard/account/messengers")
    messenger = await ann.post("/dashboard/account/messengers", {"password": PASSWORD})
    await ann.client.aclose()

    assert "You have no projects yet" in empty.text
    assert (refused.status_code, "x" * 65 in refused.text) == (400, True)
    assert inside.status_code == 200
    assert "Book shop" in inside.text
    assert straight.headers["location"] == made.headers["location"]
    assert "ann@shop.example" in team.text
    assert "Your password is wrong." in unasked.text
    assert "?start=dsh_" not in unasked.text
    assert "?start=dsh_" in messenger.text


async def test_without_a_password_a_browser_left_open_makes_no_way_in(
    service: Service, clock: FakeClock
) -> None:
    async with service.db.transaction() as tx:
        boris = await service.get(Accounts).create(tx, email="boris@shop.example", name="Boris")
    visitor = Visitor(service, "", boris.account_id)
    await visitor.sign_in()
    password = {"new_password": PASSWORD, "new_password_again": PASSWORD}
    secret = secret_in((await visitor.post("/dashboard/account/second-factor")).text)
    clock.advance(15 * 60)
    code = {"code": totp.code_at(secret, clock.now_ms() // 30_000)}
    late = [
        await visitor.post("/dashboard/account/password", password),
        await visitor.post("/dashboard/account/second-factor/confirm", code),
        await visitor.post("/dashboard/account/messengers"),
    ]
    await visitor.client.aclose()

    assert ["Sign in again first" in each.text for each in late] == [True] * 3


async def test_a_password_is_set_under_the_second_factor_by_its_code(
    service: Service, clock: FakeClock
) -> None:
    async with service.db.transaction() as tx:
        boris = await service.get(Accounts).create(tx, email="boris@shop.example", name="Boris")
    visitor = Visitor(service, "", boris.account_id)
    await visitor.sign_in()
    path = "/dashboard/account/second-factor"
    secret = secret_in((await visitor.post(path)).text)
    await visitor.post(f"{path}/confirm", {"code": totp.code_at(secret, clock.now_ms() // 30_000)})
    clock.advance(30)
    form = {"new_password": PASSWORD, "new_password_again": PASSWORD}
    unasked = await visitor.post("/dashboard/account/password", form)
    page = await visitor.get("/dashboard/account")
    code = totp.code_at(secret, clock.now_ms() // 30_000)
    owner = await visitor.post("/dashboard/account/password", {**form, "code": code})
    await visitor.client.aclose()

    assert (unasked.status_code, owner.status_code) == (400, 303)
    assert 'name="code"' in page.text


@pytest.mark.both_databases
async def test_an_operator_makes_disables_and_enables_accounts(service: Service) -> None:
    project = await service.projects.create("Shop")
    root = await stranger(service, project.project_id, is_operator=True)
    path = "/dashboard/operator/accounts"
    made = await root.post(path, {"name": "Bob", "email": "bob@x.example"})
    again = await root.post(path, {"name": "Bob 2", "email": "bob@x.example"})
    listed = await root.get(path)
    bob = re.search(rf"{path}/(acc_\w+)/disable", listed.text)
    assert bob is not None
    at = f"{path}/{bob[1]}"
    async with browsing(service) as browser:
        await browser.open(link_in(made.text))
        await browser.submit(password=PASSWORD)
        led_to = browser.to
        await root.post(f"{at}/disable")
        shut = await browser.open("/dashboard")
        refused = await browser.sign_in("bob@x.example")
        await root.post(f"{at}/enable")
        await root.post(f"{at}/operator", {"wanted": "yes"})
        await browser.sign_in("bob@x.example")
        opened = await browser.open(path)
    own = await root.post(f"{path}/{root.account_id}/disable")
    projects = await root.get("/dashboard/operator/projects")
    found = await root.get(path, query="BOB@")
    none = await root.get(path, query="nobody@")
    shop = await root.get("/dashboard/operator/projects", query="shop")
    other = await root.get("/dashboard/operator/projects", query="cafe")
    await root.client.aclose()

    assert "bob@x.example" in found.text
    assert root.account_id not in found.text
    assert "No email starts with that." in none.text
    assert project.project_id in shop.text
    assert "No name or ID starts with that." in other.text
    # A form that was refused is seen without scripts.
    assert re.search(r'aria-haspopup="dialog" data-dialog>Create an account<', listed.text)
    assert "Create an account" not in again.text
    assert re.search(r'<section class="section" id="new">.*?value="Bob 2"', again.text, re.DOTALL)
    assert (again.status_code, 'value="Bob 2"' in again.text) == (409, True)
    assert led_to == "/dashboard"
    assert shut.headers["location"] == "/dashboard/sign-in"
    assert refused.status_code == 403
    assert opened.status_code == 200
    assert own.status_code == 409
    assert project.project_id in projects.text
