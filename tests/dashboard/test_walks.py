"""Lists: their counts, both orders, and pages in both directions."""

import re
from html import unescape
from itertools import product
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from msgsvc_core.db.counting import Count
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.lists.filling import Sizes, fill, id_of
from tests.api.lists.project import ids_of
from tests.api.resources import MiniAppPlugin
from tests.dashboard.walking import SETTINGS

#: More than two pages of fifty, the last of them short.
MANY = 130


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(
        extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS, jobs={"runner": "none"}
    )


def rows_of(html: str) -> list[str]:
    table = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return re.findall(r'href="[^"]*/((?:sub|msg|job|fsb|whd)_\w+)"', table)


def range_of(html: str) -> str:
    found = re.search(r'<p class="number">([^<]*)</p>', html)
    return found[1] if found else ""


def neighbour(html: str, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', html)
    return unescape(found[1]) if found else ""


async def walk(owner: Visitor, path: str, rel: str) -> list[tuple[str, list[str]]]:
    """The ranges and entries of the pages from an address on."""
    found = []
    while path:
        html = (await owner.client.get(path)).text
        found.append((range_of(html), rows_of(html)))
        last, path = path, neighbour(html, rel)
    return [*found, (last, [])]


async def test_pages_are_the_same_in_both_directions_and_orders(
    service: Service, tenant: Tenant
) -> None:
    project_id = tenant.project.project_id
    ids = await ids_of(tenant.client)
    async with service.db.transaction() as tx:
        await fill(tx, project_id, ids, Sizes(messages=9, subscribers=MANY, tickets=9, others=9))
        count = await service.subscribers.count(tx, project_id, SubscriberFilters())
    owner = await visitor(service, project_id)
    *newest, (last, _) = await walk(owner, owner.url("/subscribers"), "next")
    *back, _ = await walk(owner, last, "prev")
    *oldest, _ = await walk(owner, owner.url("/subscribers?sort=created"), "next")
    first = await owner.get("/subscribers")
    turned = await owner.get("/subscribers", sort="created")
    await owner.client.aclose()

    total = count.number
    everyone = [each for _, page in newest for each in page]
    assert [each for each, _ in newest] == [
        f"1–50 of {total}",
        f"51–100 of {total}",
        f"101–{total} of {total}",
    ]
    assert len(set(everyone)) == len(everyone) == total
    assert back == newest[::-1]
    assert [each for _, page in oldest for each in page] == everyone[::-1]
    assert 'aria-sort="descending"' in first.text
    assert 'aria-sort="ascending"' in turned.text
    assert parse_qs(urlsplit(neighbour(turned.text, "next")).query)["sort"] == ["created"]


#: Lists that aren't counted, each with more than two pages.
UNCOUNTED = (
    "/broadcasts?status=completed",
    "/forms/{form_id}?spam=1",
    "/webhooks/{webhook_id}",
    "/webhooks/{webhook_id}?event=delivery.success",
)


@pytest.mark.both_databases
@pytest.mark.parametrize("path", UNCOUNTED)
async def test_a_list_that_is_not_counted_has_both_orders_and_keeps_its_filters(
    service: Service, tenant: Tenant, path: str
) -> None:
    project_id = tenant.project.project_id
    ids = await ids_of(tenant.client)
    async with service.db.transaction() as tx:
        await fill(tx, project_id, ids, Sizes(messages=9, subscribers=MANY, tickets=9, others=MANY))
    owner = await visitor(service, project_id)
    first = await owner.client.get(owner.url(path.format(**ids)))
    turned = unescape(re.findall(r'class="sorts" href="([^"]+)"', first.text)[0])
    *newest, (last, _) = await walk(owner, owner.url(path.format(**ids)), "next")
    *back, _ = await walk(owner, last, "prev")
    *oldest, (end, _) = await walk(owner, turned, "next")
    await owner.client.aclose()

    everyone = [each for _, page in newest for each in page]
    assert [each for each, _ in newest] == ["1–50", "51–100", f"101–{len(everyone)}"]
    assert len(set(everyone)) == len(everyone) > 100
    assert back == newest[::-1]
    assert [each for _, page in oldest for each in page] == everyone[::-1]
    asked = dict(parse_qsl(urlsplit(end).query))
    assert {**dict(parse_qsl(urlsplit(path).query)), "sort": "created"}.items() <= asked.items()


#: Filters of subscribers, and whether they lead along more than one.
FILTERS: list[tuple[dict[str, str], bool]] = [
    ({}, True),
    ({"channel": "messenger_a"}, True),
    ({"status": "active"}, True),
    ({"status": "blocked", "lang": "en"}, True),
    ({"tag": "most"}, True),
    ({"tag": "most", "status": "active"}, True),
    ({"tag": "most", "permission": "news"}, True),
    ({"tag": "nobody's"}, False),
    ({"external_id": "customer-7"}, False),
]


async def test_a_count_is_that_of_the_list_and_says_when_it_looked_at_too_few(
    service: Service, tenant: Tenant
) -> None:
    project_id = tenant.project.project_id
    ids = await ids_of(tenant.client)
    async with service.db.transaction() as tx:
        await fill(tx, project_id, ids, Sizes(messages=9, subscribers=MANY, tickets=9, others=9))
        queries = [SubscriberFilters(**filters) for filters, _ in FILTERS]
        found = [
            await service.subscribers.list_after(tx, project_id, query, None, 1000)
            for query in queries
        ]
        whole = [await service.subscribers.count(tx, project_id, query) for query in queries]
        few = [await service.subscribers.count(tx, project_id, query, 1) for query in queries]

    assert whole == [Count(len(each)) for each in found]
    assert len({len(each) for each in found}) > 3
    assert [each.is_exact for each in few] == [not is_long for _, is_long in FILTERS]
    assert max(each.number for each in few) == 1


async def test_messages_are_counted_whatever_they_are_filtered_by(
    service: Service, tenant: Tenant
) -> None:
    project_id = tenant.project.project_id
    ids = await ids_of(tenant.client)
    wrong, sizes = [], set()
    async with service.db.transaction() as tx:
        await fill(tx, project_id, ids, Sizes(messages=90, subscribers=9, tickets=9, others=9))
        for status, channel, subscriber_id in product(
            (None, "sent", "failed", "queued"), (None, "messenger_a"), (None, id_of("sub", 2))
        ):
            asked = {"status": status, "channel": channel, "subscriber_id": subscriber_id}
            query = MessageQuery.model_validate({**asked, "limit": 100})
            found = await service.messages.page(tx, project_id, query)
            count = await service.messages.count(tx, project_id, query)
            oldest = await service.messages.page(tx, project_id, query, ascending=True)
            sizes.add(len(found))
            if count != Count(len(found)) or oldest != found[::-1]:
                wrong.append((asked, count, len(found), len(oldest)))

    assert not wrong
    assert len(sizes) > 4
