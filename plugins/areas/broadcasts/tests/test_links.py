"""Tracked links: addresses in messages, where they lead, and who is counted."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.mailings.content import read_column, to_column
from msgsvc_core.mailings.links import LinkTracking, link_id_of
from msgsvc_core.messages.templates.models import TemplateContent
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, AddPeople, add, ended, events, recipients, shown, take

pytestmark = pytest.mark.both_databases

SHOP = "https://shop.example/sale?a=1&b=2"
BASE = "https://msgsvc.example"
ADDRESS = re.compile(rf"{BASE}/l/[0-9A-Za-z]{{23,}}")


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    plugins = [*PLUGINS, ("dashboard", dashboard)]
    return await make_service(extra_plugins=plugins, limits=LIMITS, base_url=BASE)


@pytest.fixture
async def tracked(tenant: Tenant) -> Tenant:
    answer = await tenant.client.patch("/v1/project", json={"link_tracking": True})
    assert answer.json()["link_tracking"] is True
    return tenant


async def sent(client: httpx2.AsyncClient, channel: RecordingChannel, **body: Any) -> list[Any]:
    """The messages of a broadcast."""
    before = len(channel.sent)
    await ended(client, await take(client, **body))
    return [each.message for each in channel.sent[before:]]


async def click(client: httpx2.AsyncClient, address: str) -> httpx2.Response:
    """Opens a link as a person's browser does."""
    return await client.get(address, headers={"user-agent": "Mozilla/5.0 (Android 16) Firefox/140"})


async def clicks(service: Service) -> int:
    async with service.db.read() as tx:
        count: int = await tx.fetch_val("SELECT COUNT(*) FROM broadcasts_link_clicks")
    return count


async def test_links_are_tracked_where_the_project_allows_it_alone(
    tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    [before] = await sent(tenant.client, channel, text=f"Sale: {SHOP}")
    await tenant.client.patch("/v1/project", json={"link_tracking": True})
    [after] = await sent(tenant.client, channel, text=f"Sale: {SHOP}")
    answer = await tenant.client.patch("/v1/project", json={"link_tracking": False})
    [again] = await sent(tenant.client, channel, text=f"Sale: {SHOP}")

    assert before.text == again.text == f"Sale: {SHOP}"
    assert re.fullmatch(rf"Sale: {ADDRESS.pattern}", after.text)
    assert answer.json()["link_tracking"] is False


@pytest.mark.parametrize(
    ("written", "text_format", "seen"),
    [
        (f"({SHOP}), see {SHOP}.", "plain", "(URL), see URL."),
        (f"<b>{SHOP}</b>", "plain", "<b>URL</b>"),
        (f"**Sale** [here]({SHOP})!", "markdown", '<b>Sale</b> <a href="URL">here</a>!'),
        (
            f"*a* {SHOP} `{SHOP}`",
            "markdown",
            f"<i>a</i> URL <code>{SHOP.replace('&', '&amp;')}</code>",
        ),
        (
            f'<a href="{SHOP.replace("&", "&amp;")}"><b>x</b> &lt;</a>',
            "html",
            '<a href="URL"><b>x</b></a><a href="URL"> &lt;</a>',
        ),
        (f"<i>{SHOP.replace('&', '&amp;')}</i>", "html", "<i>URL</i>"),
        (
            f'<ul><li><a href="{SHOP}">x</a></li></ul><hr>{SHOP}',
            "rich",
            '• <a href="URL">x</a>\n\n———\n\nURL',
        ),
    ],
)
async def test_markup_stays_whole(
    tracked: Tenant,
    people: AddPeople,
    channel: RecordingChannel,
    written: str,
    text_format: str,
    seen: str,
) -> None:
    await people(1)
    [message] = await sent(tracked.client, channel, text=written, format=text_format)

    assert ADDRESS.sub("URL", message.text) == seen


async def test_a_click_leads_on_and_counts_once(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    people_ids = await people(2)
    button = [[{"text": "Shop", "url": "https://shop.example/all"}, {"text": "Yes", "data": "yes"}]]
    job_id = await take(tracked.client, text=f"Hi {SHOP}", buttons=button)
    await ended(tracked.client, job_id)
    first, second = channel.sent
    [address] = ADDRESS.findall(first.message.text)
    opened = [await click(tracked.client, address) for _ in range(3)]
    await click(tracked.client, second.message.buttons[0][0].url)
    await click(tracked.client, second.message.text.removeprefix("Hi "))
    report = await shown(tracked.client, job_id)
    reported = await events(tracked.client, "link.clicked")
    ledger = await recipients(tracked.client, job_id)

    assert {each.status_code for each in opened} == {302}
    assert opened[0].headers["location"] == SHOP
    assert opened[0].headers["cache-control"] == "no-store"
    assert opened[0].headers["referrer-policy"] == "no-referrer"
    assert report["links"] == [
        {"url": SHOP, "people": 2},
        {"url": "https://shop.example/all", "people": 1},
    ]
    assert (report["buttons"], len(reported)) == ([], 3)
    by_person = {each["subscriber_id"]: each["message_id"] for each in ledger}
    assert {(each["job_id"], each["subscriber_id"], each["message_id"]) for each in reported} == {
        (job_id, each, by_person[each]) for each in people_ids
    }
    assert {each["url"] for each in reported} == {SHOP, "https://shop.example/all"}


async def test_programs_that_look_ahead_are_led_on_and_not_counted(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    [message] = await sent(tracked.client, channel, text=SHOP)
    looks = [
        await tracked.client.head(message.text),
        *[
            await tracked.client.get(message.text, headers=headers)
            for headers in (
                {"sec-purpose": "prefetch;prerender"},
                {"purpose": "prefetch"},
                {"user-agent": "TelegramBot (like TwitterBot)"},
            )
        ],
    ]
    none = await clicks(service)
    await tracked.client.get(message.text, headers={"user-agent": "Mozilla/5.0 (CUBOT X18)"})

    assert {each.headers["location"] for each in looks} == {SHOP}
    assert (none, await clicks(service)) == (0, 1)


async def test_a_changed_address_leads_nowhere(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    first, second = await people(2)
    [message, _] = await sent(tracked.client, channel, text=SHOP)
    head, tail = message.text[:-8], message.text[-8:]
    other = first if second.endswith(tail) else second
    wrong = [head + other[-8:], message.text[:-1], message.text + "0", f"{BASE}/l/x", f"{BASE}/l/"]
    answers = [await tracked.client.get(each, headers={"accept": "text/html"}) for each in wrong]

    assert {each.status_code for each in answers} == {404}
    assert "<html" in answers[0].text
    assert await clicks(service) == 0


async def test_a_signed_address_of_no_link_is_no_open_redirect(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann] = await people(1)
    await sent(tracked.client, channel, text=SHOP)
    url, content = "https://evil.example", TemplateContent(text="https://evil.example")
    column = to_column(content, {}, silent=False, tracks_links=True)
    evil = LinkTracking(secrets=service.secrets, base_url=BASE)
    made = evil.message_for("job_x", ann, read_column(column), OutgoingMessage(url)).text
    answer = await click(tracked.client, made)

    assert evil.read(made.removeprefix(f"{BASE}/l/")).link_id == link_id_of("job_x", url)
    assert answer.status_code == 404


async def test_own_values_and_pages_of_this_service_are_not_tracked(
    tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    text = "https://shop.example/{{ first_name }} {{ preferences_url }} {{ page }} {{ own }}"
    values = {"page": SHOP, "own": f"{BASE}/docs"}
    [message] = await sent(tracked.client, channel, text=text, variables=values)
    own, preferences, shop, docs = message.text.split(" ")

    assert (own, docs) == ("https://shop.example/P0", f"{BASE}/docs")
    assert preferences.startswith(f"{BASE}/preferences/")
    assert ADDRESS.fullmatch(shop)


async def test_tests_and_single_messages_are_not_tracked(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann] = await people(1)
    body = {"subscriber_id": ann, "text": SHOP}
    for path in ("/v1/broadcast/test", "/v1/send"):
        assert (await tracked.client.post(path, json=body)).status_code == 202
    await settled(service)

    assert [each.message.text for each in channel.sent] == [SHOP, SHOP]


async def test_a_text_without_room_for_the_addresses_is_refused(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    most = service.settings.limits.text_length
    url = "https://s.example"
    room = most - len(f"{BASE}/l/") - 44
    body = {"audience": {"all": True}, "text": "a" * room + f" {url}"}
    refused = await tracked.client.post("/v1/broadcast", json=body)
    dry = await tracked.client.post("/v1/broadcast", json={**body, "dry_run": True})
    [message] = await sent(tracked.client, channel, text="a" * (room - 1) + f" {url}")

    assert refused.status_code == dry.status_code == 400
    assert "with the addresses of its tracked links" in refused.json()["error"]
    assert ADDRESS.search(message.text)


async def test_who_has_long_values_gets_the_links_as_they_are(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1, first_name="A" * 60)
    most = service.settings.limits.text_length
    text = "a" * (most - len(f"{BASE}/l/") - 44 - 10) + " {{ first_name }} https://s.example"
    [message] = await sent(tracked.client, channel, text=text)

    assert message.text.endswith(" https://s.example")


async def test_clicks_of_erased_people_go_and_their_links_lead_on(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann] = await people(1)
    [message] = await sent(tracked.client, channel, text=SHOP)
    await click(tracked.client, message.text)
    before = await clicks(service)
    await tracked.client.delete(f"/v1/subscribers/{ann}", params={"erase": "true"})
    await settled(service)
    after = await clicks(service)
    answer = await click(tracked.client, message.text)

    assert (before, after, await clicks(service)) == (1, 0, 0)
    assert answer.headers["location"] == SHOP
    [event] = await events(tracked.client, "link.clicked")
    assert event["subscriber_id"] == ""


async def test_clicks_are_counted_and_kept_as_long_as_recipients(
    service: Service,
    tracked: Tenant,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(2)
    first, second = await sent(tracked.client, channel, text=SHOP)
    await click(tracked.client, first.text)
    days = service.settings.limits.recipient_days

    async def is_gone() -> bool:
        return await clicks(service) == 0

    clock.advance((days + 1) * 24 * 3600)
    await until(is_gone)
    late = await click(tracked.client, second.text)

    assert late.headers["location"] == SHOP
    assert await is_gone()


async def test_another_project_sees_no_click(
    tracked: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
    service: Service,
    people: AddPeople,
    channel: RecordingChannel,
) -> None:
    other = await make_tenant(service, "Other")
    await people(1)
    job_id = await take(tracked.client, text=SHOP)
    await ended(tracked.client, job_id)
    await click(tracked.client, channel.sent[0].message.text)
    settings = (await other.client.get("/v1/project")).json()

    assert (await other.client.get(f"/v1/broadcast/{job_id}")).status_code == 404
    assert await events(other.client, "link.clicked") == []
    assert settings["link_tracking"] is False


async def test_a_resend_has_links_of_its_own(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    job_id = await take(tracked.client, text=SHOP)
    await ended(tracked.client, job_id)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_recipients SET status = 'unknown'")
    again = (await tracked.client.post(f"/v1/broadcast/{job_id}/resend-unknown")).json()["job_id"]
    await ended(tracked.client, again)
    await click(tracked.client, channel.sent[1].message.text)

    assert channel.sent[0].message.text != channel.sent[1].message.text
    assert (await shown(tracked.client, job_id))["links"] == [{"url": SHOP, "people": 0}]
    assert (await shown(tracked.client, again))["links"] == [{"url": SHOP, "people": 1}]


async def test_links_of_each_variant_are_tracked_and_count_for_it(
    tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(4)
    urls = [f"https://shop.example/{name}" for name in "ab"]
    body = {
        "audience": {"all": True},
        "variants": [{"text": f"{SHOP} {url}"} for url in urls],
        "experiment": {"share_percent": 100, "winner": "manual"},
    }
    job_id = (await tracked.client.post("/v1/broadcast", json=body)).json()["job_id"]
    await ended(tracked.client, job_id)
    for each in channel.sent:
        shop, page = each.message.text.split(" ")
        answer = await click(tracked.client, page)
        if answer.headers["location"] == urls[1]:
            await click(tracked.client, shop)
            break
    figures = (await tracked.client.get(f"/v1/broadcast/{job_id}/variants")).json()["variants"]
    links = {each["url"]: each["people"] for each in (await shown(tracked.client, job_id))["links"]}

    assert [each["clicked"] for each in figures] == [links[url] for url in urls]
    assert figures[1]["clicked"] == 1
    assert links[SHOP] == 1
    assert list(links) == [SHOP, *urls]


async def test_a_network_can_open_so_many_links(
    service: Service,
    tracked: Tenant,
    people: AddPeople,
    channel: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await people(1)
    [message] = await sent(tracked.client, channel, text=SHOP)
    monkeypatch.setattr("msgsvc_broadcasts.link_pages.MOST_OPENED", 2)
    statuses = [(await click(tracked.client, message.text)).status_code for _ in range(3)]

    assert statuses == [302, 302, 429]


async def test_hosts_in_other_scripts_are_encoded_for_the_header(
    tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    [message] = await sent(tracked.client, channel, text="https://пример.example/путь")
    answer = await click(tracked.client, message.text)

    assert answer.headers["location"] == ("https://xn--e1afmkfd.example/%D0%BF%D1%83%D1%82%D1%8C")


async def test_the_dashboard_turns_tracking_on_says_so_and_shows_clicks(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    # Without TLS the browser's cookies go to the address of the tests.
    plugins = [*PLUGINS, ("dashboard", dashboard)]
    service = await make_service(extra_plugins=plugins, limits=LIMITS)
    tenant = await make_tenant(service, "Shop")
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    await add(service, tenant, 2)
    links_at = f"{service.settings.base_url}/l/"
    browser = await visitor(service, tenant.project.project_id, "admin")
    before = (await browser.get("/broadcasts/new")).text
    saved = await browser.post("/settings", {"name": "Shop", "link_tracking": "1"})
    settings = (await browser.get("/settings")).text
    form = {"written": "text", "text": f"Sale: {SHOP}", "to": "all", "when": "now"}
    composer = (await browser.get("/broadcasts/new")).text
    review = (await browser.post("/broadcasts/review", form)).text
    job_id = await take(tenant.client, text=f"Sale: {SHOP}")
    await ended(tenant.client, job_id)
    await click(tenant.client, channel.sent[0].message.text.removeprefix("Sale: "))
    report = (await browser.get(f"/broadcasts/{job_id}")).text
    await browser.post("/settings", {"name": "Shop"})

    assert saved.status_code == 303
    assert links_at in settings
    assert "Links will be tracked" not in before
    assert "Links will be tracked" in composer
    assert "Links will be tracked" in review
    shown_url = SHOP.replace("&", "&amp;")
    assert links_at not in review
    assert shown_url in review
    assert "Opened links" in report
    told = " ".join(re.sub(r"<[^>]+>", "", report).split())
    assert f"1 {shown_url} 50%" in told
    assert (await tenant.client.get("/v1/project")).json()["link_tracking"] is False


async def test_the_address_of_a_link_with_a_label_takes_no_room(
    service: Service, tracked: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1)
    most = service.settings.limits.text_length
    text = "a" * (most - 2) + f" [b]({SHOP})"
    [message] = await sent(tracked.client, channel, text=text, format="markdown")

    assert ADDRESS.search(message.text)
    assert len(message.text) > most
