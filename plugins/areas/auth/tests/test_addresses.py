"""How many sessions one address may have opened for it."""

import asyncio

import pytest

from msgsvc_auth import plugin
from msgsvc_auth.clients import Client
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.service import SignIn

LIMITS = {"sessions_per_hour": 100, "sessions_per_hour_per_address": 3}


@pytest.fixture
async def service(make_service):
    """A project may open many sessions, an address three."""
    return await make_service(extra_plugins=[("auth", plugin)], auth=LIMITS)


@pytest.fixture
def open_from(client):
    """`await open_from("203.0.113.7")`: the answer to a session for that address."""

    async def open_from(ip, by=client):
        return await by.post("/v1/auth/session", json={"client": {"ip": ip}})

    return open_from


async def test_an_address_has_its_limit_and_is_told_the_wait(open_from, clock):
    for _ in range(3):
        assert (await open_from("203.0.113.7")).status_code == 201
        clock.advance(60)

    refused = await open_from("203.0.113.7")

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_project")
    assert refused.json()["retryable"] is True
    assert refused.headers["retry-after"] == "3420"
    assert (await open_from("203.0.113.8")).status_code == 201


async def test_twenty_sessions_an_hour_are_allowed_to_an_address(make_service, make_tenant):
    service = await make_service(extra_plugins=[("auth", plugin)], auth={"sessions_per_hour": 100})
    client = (await make_tenant(service)).client
    body = {"client": {"ip": "203.0.113.7"}}

    answers = [await client.post("/v1/auth/session", json=body) for _ in range(21)]

    assert [answer.status_code for answer in answers] == [201] * 20 + [429]


async def test_slot_of_an_address_frees_after_an_hour(open_from, clock):
    for _ in range(3):
        await open_from("203.0.113.7")

    clock.advance(3600)

    assert (await open_from("203.0.113.7")).status_code == 201


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:DB8:0:1::3"), "2001:db8:0:2::1"),
        (("203.0.113.7", "::ffff:203.0.113.7", "::ffff:cb00:7107"), "203.0.113.6"),
    ],
)
async def test_addresses_of_one_customer_count_as_one(open_from, same, other):
    for ip in same:
        assert (await open_from(ip)).status_code == 201

    assert (await open_from(same[0])).status_code == 429
    assert (await open_from(other)).status_code == 201


async def test_one_projects_addresses_do_not_count_for_another(service, make_tenant, open_from):
    other = await make_tenant(service, "Other")
    for _ in range(3):
        await open_from("203.0.113.7")

    assert (await open_from("203.0.113.7", by=other.client)).status_code == 201


async def test_who_is_refused_for_one_limit_takes_no_slot_of_the_other(
    make_service, make_tenant, clock
):
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        auth={"sessions_per_hour": 2, "sessions_per_hour_per_address": 1},
    )
    client = (await make_tenant(service)).client

    async def statuses(*ips):
        bodies = [{"client": {"ip": ip}} if ip else {} for ip in ips]
        answers = [await client.post("/v1/auth/session", json=body) for body in bodies]
        return [answer.status_code for answer in answers]

    # The second is refused for its address, so the project has one left for the third.
    assert await statuses("203.0.113.1", "203.0.113.1", None) == [201, 429, 201]
    clock.advance(1800)
    # Refused for the project: the address keeps its slot.
    assert await statuses("203.0.113.2") == [429]
    clock.advance(1800)
    assert await statuses("203.0.113.2") == [201]


async def test_a_flood_from_one_address_leaves_the_projects_slots_to_others(
    make_service, make_tenant, open_from
):
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        auth={"sessions_per_hour": 4, "sessions_per_hour_per_address": 3},
    )
    client = (await make_tenant(service)).client

    answers = await asyncio.gather(*(open_from("203.0.113.7", by=client) for _ in range(50)))

    assert [answer.status_code for answer in answers].count(201) == 3
    assert (await open_from("203.0.113.8", by=client)).status_code == 201


async def test_a_session_of_a_static_link_is_counted_by_its_page_and_not_here(
    service, link, open_from
):
    for _ in range(3):
        await open_from("203.0.113.7")

    async with service.db.transaction() as tx:
        found = await service.get(StaticLinks).find_started(tx, link["slug"])
        new = await service.get(SignIn).open_by_link(
            tx,
            found,
            state="s",
            lang="ru",
            client=Client.from_request("203.0.113.7", ""),
            number_matching=True,
        )

    session = new.session
    assert (session.state, session.lang, session.client_ip) == ("s", "ru", "203.0.113.7")
    assert session.callback_url == link["callback_url"]
    assert 10 <= session.match_number <= 99
