"""The hosted sign-in page under attack: cookies, headers, limits, addresses that lead nowhere."""

import re

import pytest

from msgsvc_auth import plugin
from msgsvc_devkit import RecordingChannel
from plugins.areas.auth.tests.hosted import browsing

LINK = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/back"}


@pytest.fixture
async def browser(service, link):
    async with browsing(service) as opened:
        yield opened


async def sessions(service):
    """How many were opened."""
    async with service.db.read() as tx:
        return await tx.fetch_val("SELECT COUNT(*) FROM auth_sessions")


async def test_every_answer_carries_the_headers_of_a_page_with_secrets(browser, ann):
    pages = [
        await browser.open("/login/nobody"),
        await browser.open("/login/shop"),
        await browser.status(),
        await browser.http.head("/login/shop"),
    ]
    await ann.press(await ann.open(browser.link()), "Yes")
    pages.append(await browser.reload())

    assert [page.status_code for page in pages] == [404, 200, 200, 200, 303]
    for page in pages:
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Content-Type-Options"] == "nosniff"


async def test_page_holds_no_script_or_style_of_its_own_and_nothing_of_other_hosts(browser):
    page = (await browser.open()).text

    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="([^"]+)"', page)
    assert loaded
    for address in loaded:
        assert address.startswith("/login/_static/")
        assert (await browser.http.get(address)).status_code == 200


async def test_cookie_is_kept_from_scripts_and_other_sites(browser):
    cookie = (await browser.open()).headers["Set-Cookie"]

    assert re.match(r"msgsvc-login-[0-9a-f]{16}=[0-9A-Za-z]{43}\.[0-9A-Za-z]{22}; ", cookie)
    assert {"HttpOnly", "SameSite=lax", "Path=/login/shop", "Max-Age=900"} <= set(
        cookie.split("; ")
    )
    assert "Secure" not in cookie


async def test_cookie_over_https_is_this_hosts_alone(make_service, make_tenant):
    service = await make_service(extra_plugins=[("auth", plugin)], base_url="https://msgsvc.test")
    await (await make_tenant(service)).client.post("/v1/auth/links", json=LINK)
    async with browsing(service, scheme="https") as browser:
        cookie = (await browser.open()).headers["Set-Cookie"]
        link = browser.link()
        await browser.open()

        assert browser.link() == link
    assert cookie.startswith("__Host-msgsvc-login-")
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "domain" not in cookie.lower()


@pytest.mark.parametrize("slug", ["nobody", "no", "UPPER", "a_b", "x" * 49, "-" * 3])
async def test_unknown_slug_is_a_page_that_says_so(service, link, slug):
    async with browsing(service) as browser:
        page = await browser.open(f"/login/{slug}")

    assert page.status_code == 404
    assert browser.heading == "There is no sign-in here"
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"


async def test_disabled_project_looks_as_if_it_were_not_there(browser, service, tenant):
    await browser.open()
    polled = browser.poll()
    await service.projects.set_active(tenant.project.project_id, False)

    page = await browser.open()
    unknown = await browser.open("/login/nobody")

    assert page.status_code == 404
    assert page.text == unknown.text
    assert (await browser.http.get("/login/shop/status", params=polled)).status_code == 404
    assert (await browser.http.head("/login/shop")).status_code == 404


async def test_deleted_link_takes_its_page_along(browser, client):
    await browser.open()
    polled = browser.poll()
    await client.delete("/v1/auth/links/shop")

    assert (await browser.http.get("/login/shop/status", params=polled)).status_code == 404
    assert (await browser.open()).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        {"callback_url": "https://evil.example/"},
        {"redirect_uri": "//evil.example"},
        {"state": "\r\nLocation: https://evil.example/"},
        {"state": "&callback_url=https://evil.example/"},
    ],
)
async def test_nothing_in_the_address_changes_where_the_code_goes(browser, ann, query):
    await browser.open("/login/shop", params=query)
    await ann.press(await ann.open(browser.link()), "Yes")

    location = (await browser.reload()).headers["Location"]

    assert location.startswith("https://shop.example/back?from=bot&code=")
    assert "\n" not in location


@pytest.mark.parametrize(
    "query",
    [{"state": "x" * 513}, {"channel": "nowhere"}],
)
async def test_link_that_is_wrong_begins_nothing(browser, service, query):
    page = await browser.open("/login/shop", params=query)

    assert page.status_code == 400
    assert browser.heading == "This link can't be used"
    assert await sessions(service) == 0


async def test_longest_state_is_taken(browser):
    assert (await browser.open("/login/shop", params={"state": "я" * 512})).status_code == 200


async def test_what_a_link_carries_is_text_in_the_page(browser):
    page = await browser.open("/login/shop", params={"state": '"><script>alert(1)</script>'})

    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Purpose": "prefetch"},
        {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
        {"X-Moz": "prefetch"},
    ],
)
async def test_prefetch_begins_nothing_and_is_not_kept(browser, service, headers):
    page = await browser.open(headers=headers)

    assert page.status_code == 503
    assert page.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in page.headers
    assert await sessions(service) == 0


@pytest.mark.parametrize("destination", ["iframe", "image", "empty", "object", "script"])
async def test_part_of_another_page_begins_nothing(browser, service, destination):
    page = await browser.open(headers={"Sec-Fetch-Dest": destination})

    assert page.status_code == 403
    assert await sessions(service) == 0


async def test_head_begins_nothing(browser, service):
    page = await browser.http.head("/login/shop")

    assert (page.status_code, page.content) == (200, b"")
    assert "Set-Cookie" not in page.headers
    assert await sessions(service) == 0


@pytest.mark.parametrize("wait", ["26", "-1", "x", "٣", "", "9" * 5000])
async def test_wait_that_is_no_number_of_seconds_is_refused(browser, wait):
    await browser.open()

    assert (await browser.status(wait=wait)).status_code == 400


@pytest.fixture
async def limited(make_service, make_tenant):
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        auth={"pages_per_hour_per_address": 2, "sessions_per_hour": 1},
    )
    await (await make_tenant(service)).client.post("/v1/auth/links", json=LINK)
    return service


async def test_an_address_begins_so_many_sign_ins_an_hour(limited, clock):
    async with browsing(limited) as browser:
        first = [(await browser.open(f"/login/shop?state={n}")).status_code for n in range(2)]
        refused = await browser.open("/login/shop?state=2")
        told = browser.heading
        again = await browser.open("/login/shop?state=1")
        clock.advance(3600)
        later = await browser.open("/login/shop?state=2")

    assert first == [200, 200]
    assert (refused.status_code, told) == (429, "Too many sign-ins")
    assert refused.headers["Retry-After"] == "3600"
    assert "60 min" in refused.text
    # What goes on is no new one.
    assert again.status_code == 200
    assert later.status_code == 200
    assert await sessions(limited) == 3


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        ("203.0.113.7", "203.0.113.8", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", False),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", True),
        ("::ffff:203.0.113.7", "203.0.113.7", False),
    ],
)
async def test_who_counts_as_one_address(limited, first, second, allowed):
    async with browsing(limited, address=first) as browser:
        for state in "ab":
            await browser.open(f"/login/shop?state={state}")
    async with browsing(limited, address=second) as browser:
        page = await browser.open("/login/shop?state=c")

    assert page.status_code == (200 if allowed else 429)


async def test_pages_take_no_slot_of_the_projects_sessions(limited, make_tenant):
    tenant = await make_tenant(limited, name="Shop 2")
    body = {**LINK, "slug": "shop-2"}
    await tenant.client.post("/v1/auth/links", json=body)
    async with browsing(limited) as browser:
        for state in "ab":
            assert (await browser.open(f"/login/shop-2?state={state}")).status_code == 200

    assert (await tenant.client.post("/v1/auth/session", json={})).status_code == 201


async def test_address_is_the_one_that_trusted_proxies_saw(make_service, make_tenant):
    service = await make_service(
        extra_plugins=[("auth", plugin)], server={"trusted_proxies": ["10.0.0.0/8"]}
    )
    await (await make_tenant(service)).client.post("/v1/auth/links", json=LINK)
    async with browsing(service, address="10.0.0.1") as browser:
        await browser.open(headers={"X-Forwarded-For": "1.1.1.1, 198.51.100.4"})

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT client_ip FROM auth_sessions") == "198.51.100.4"


async def test_without_a_bot_there_is_nothing_to_open(service, browser, monkeypatch):
    monkeypatch.setattr(RecordingChannel, "link", lambda _self, _payload: None)

    page = await browser.open()

    assert page.status_code == 503
    assert browser.heading == "Not possible at the moment"
    assert await sessions(service) == 0


async def test_button_script_is_for_every_site(browser):
    answer = await browser.http.get("/login/button.js", headers={"Origin": "https://shop.example"})

    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert "Sign in through a messenger" in answer.text
    assert "\\u0412\\u043e\\u0439\\u0442\\u0438" in answer.text
