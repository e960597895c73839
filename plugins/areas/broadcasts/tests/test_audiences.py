"""Who is in an audience, and what is refused at the call."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.ids import new_id
from msgsvc_core.mailings import Audience, expansion
from msgsvc_core.mailings.audience_store import break_down
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import PLUGINS, AddPeople, add, counts, ended, give, recipients, take

#: Five people: the tags and permissions that they carry, by number.
TAGS = {"news": [0, 1, 2], "vip": [1], "old": [2, 3]}
GRANTED = {"sale": [0, 3]}

AUDIENCES: list[tuple[dict[str, Any], set[int]]] = [
    ({"all": True}, {0, 1, 2, 3, 4}),
    ({"tags_any": ["vip", "old"]}, {1, 2, 3}),
    ({"tags_all": ["news", "old"]}, {2}),
    ({"tags_all": ["news", "news"]}, {0, 1, 2}),
    ({"tags_none": ["news"]}, {3, 4}),
    ({"tags_any": ["news"], "tags_none": ["vip", "old"]}, {0}),
    ({"permission": "sale"}, {0, 3}),
    ({"permission": "sale", "tags_any": ["old"]}, {3}),
    ({"channels": ["messenger_b"]}, {4}),
    ({"channels": ["messenger_a", "messenger_b"]}, {0, 1, 2, 3, 4}),
    ({"langs": ["ru"]}, {3}),
    ({"langs": ["ru", "en"], "tags_none": ["old"]}, {0, 1, 4}),
    ({"subscriber_ids": [0, 4]}, {0, 4}),
    ({"subscriber_ids": [0, 0, 1], "tags_any": ["vip"]}, {1}),
]


@pytest.fixture
async def five(service: Service, tenant: Tenant, people: AddPeople) -> list[str]:
    """Their ids. A sixth has left, and is in no audience."""
    ids = [
        *await people(3),
        *await people(1, first=3, lang="ru"),
        *await people(1, first=4, channel="messenger_b", bot="messenger_b"),
    ]
    await people(1, first=5, status="unsubscribed")
    for tag, numbers in TAGS.items():
        await give(service, tenant, tag, [ids[number] for number in numbers])
    for key, numbers in GRANTED.items():
        await tenant.client.post("/v1/permissions", json={"key": key, "title": "Sale"})
        for number in numbers:
            path = f"/v1/subscribers/{ids[number]}/permissions/{key}"
            assert (await tenant.client.put(path)).is_success
    return ids


@pytest.mark.both_databases
async def test_an_audience_are_those_who_meet_every_filter(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, five: list[str]
) -> None:
    project_id = tenant.project.project_id
    for asked, numbers in AUDIENCES:
        audience = dict(asked)
        if "subscriber_ids" in audience:
            audience["subscriber_ids"] = [five[number] for number in audience["subscriber_ids"]]
        answer = await client.post(
            "/v1/broadcast", json={"audience": audience, "text": "Hi", "dry_run": True}
        )
        async with service.db.read() as tx:
            counted = await service.mailings.break_down(
                tx, project_id, Audience.model_validate(audience)
            )
        job_id = await take(client, audience=audience)
        done = await ended(client, job_id)
        reached = {five.index(each["subscriber_id"]) for each in await recipients(client, job_id)}

        assert reached == numbers, asked
        assert (counted.reached, counted.is_exact) == (len(numbers), True), asked
        assert counts(done) == (len(numbers), 0, 0, len(numbers))
        assert answer.json() == {"total": len(numbers), "credits": 0}
        assert "subscriber_ids" not in done["audience"]


@pytest.mark.both_databases
async def test_who_is_left_out_is_counted_by_the_first_reason(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    active = await people(6)
    blocked = await people(2, first=10, status="blocked", lang="ru")
    left = await people(3, first=20, status="unsubscribed")
    await people(4, first=30, channel="messenger_b", bot="messenger_b")
    await people(1, first=40, bot="chn_gone")
    await give(service, tenant, "vip", [*active[:2], *blocked[:1], *left])
    for key, ids in (("sale", active[:3]), ("news", active[1:5])):
        await tenant.client.post("/v1/permissions", json={"key": key, "title": "Sale"})
        for each in ids:
            await tenant.client.put(f"/v1/subscribers/{each}/permissions/{key}")

    async def broken(permission: str | None = None, **asked: Any) -> tuple[int, dict[str, int]]:
        async with service.db.read() as tx:
            found = await service.mailings.break_down(
                tx, tenant.project.project_id, Audience.model_validate(asked), permission
            )
        assert found.is_exact
        return found.reached, dict(found.left_out)

    gone = {"blocked": 2, "unsubscribed": 3, "bot": 1}
    on_a = {"channels": ["messenger_a"]}
    assert await broken(all=True) == (10, gone)
    assert await broken(**on_a) == (6, {**gone, "channel": 4})
    assert await broken("sale", **on_a) == (3, {**gone, "channel": 4, "permission": 3})
    assert await broken(tags_any=["vip"]) == (2, {"blocked": 1, "unsubscribed": 3})
    assert await broken(tags_none=["vip"]) == (8, {"blocked": 1, "bot": 1})
    assert await broken(langs=["ru"]) == (0, {"blocked": 2})
    assert await broken(subscriber_ids=[active[0], left[0]]) == (1, {"unsubscribed": 1})


async def test_counting_stops_at_its_limit_but_not_for_a_rare_tag(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    ids = await people(30)
    await give(service, tenant, "rare", ids[:2])
    await give(service, tenant, "also", ids[1:3])
    project_id = tenant.project.project_id

    async def counted(limit: int, **asked: Any) -> tuple[int, bool]:
        async with service.db.read() as tx:
            found = await break_down(
                tx, project_id, Audience.model_validate(asked), None, ["messenger_a"], limit
            )
        return found.reached, found.is_exact

    assert await counted(30, all=True) == (30, True)
    assert await counted(10, all=True) == (11, False)
    assert await counted(10, tags_any=["rare"]) == (2, True)
    assert await counted(10, tags_any=["rare", "also"]) == (3, True)
    assert await counted(10, tags_all=["rare", "also"]) == (1, True)
    assert await counted(1, tags_any=["rare", "also"]) in {(1, False), (2, False)}


async def test_who_is_named_and_can_not_be_reached_is_skipped_with_the_reason(
    client: httpx2.AsyncClient, people: AddPeople
) -> None:
    [here] = await people(1)
    [left] = await people(1, first=1, status="unsubscribed")
    [blocked] = await people(1, first=2, status="blocked")
    ids = [here, left, blocked, new_id("sub"), here]
    asked = {"audience": {"subscriber_ids": ids}, "text": "Hi"}
    dry = (await client.post("/v1/broadcast", json={**asked, "dry_run": True})).json()

    taken = (await client.post("/v1/broadcast", json=asked)).json()
    done = await ended(client, taken["job_id"])

    assert (dry["total"], taken["total"]) == (4, 4)
    assert counts(done) == (1, 0, 3, 4)
    [event] = (await client.get("/v1/events?event=broadcast.completed")).json()["data"]
    assert (event["data"]["sent"], event["data"]["skipped"], event["data"]["total"]) == (1, 3, 4)
    found = {each["subscriber_id"]: each for each in await recipients(client, taken["job_id"])}
    assert {each: found[each]["status"] for each in found} == {
        here: "sent",
        left: "skipped",
        blocked: "skipped",
    }
    assert (found[left]["reason"], found[left]["error"]) == (None, "not subscribed")
    assert found[blocked]["reason"] == "user_blocked_bot"


async def test_a_broadcast_to_nobody_who_is_there_ends_with_all_skipped(
    client: httpx2.AsyncClient, people: AddPeople
) -> None:
    ids = [*await people(1, status="unsubscribed"), new_id("sub")]

    done = await ended(client, await take(client, audience={"subscriber_ids": ids}))

    assert (done["status"], counts(done)) == ("completed", (0, 0, 2, 2))


async def test_dry_run_sends_nothing(
    client: httpx2.AsyncClient, five: list[str], channel: RecordingChannel
) -> None:
    asked = {"audience": {"all": True}, "text": "Hi", "dry_run": True}

    answer = await client.post("/v1/broadcast", json=asked)

    assert answer.status_code == 202
    assert (await client.get("/v1/broadcast")).json()["data"] == []
    assert channel.sent == []


async def test_nobody_is_a_fine_audience(client: httpx2.AsyncClient) -> None:
    done = await ended(client, await take(client))

    assert (done["status"], counts(done), done["progress"]) == ("completed", (0, 0, 0, 0), 1.0)


async def test_audience_is_fixed_at_the_start(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, clock: Any
) -> None:
    await add(service, tenant, 2)
    job_id = await take(client, send_at="2026-01-15T13:00:00Z")
    await add(service, tenant, 1, first=2)
    clock.advance(3600)
    before = await ended(client, job_id)
    clock.advance(1)
    await add(service, tenant, 1, first=3)

    assert counts(before) == (3, 0, 0, 3)
    assert len(await recipients(client, job_id)) == 3


async def test_ledger_is_written_in_bounded_steps(
    client: httpx2.AsyncClient, people: AddPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "STEP", 7)
    ids = await people(30, lang="ru")
    await people(30, first=30)

    job_id = await take(client, audience={"langs": ["ru"]})
    done = await ended(client, job_id)

    assert counts(done) == (30, 0, 0, 30)
    assert {each["subscriber_id"] for each in await recipients(client, job_id)} == set(ids)


async def test_more_recipients_than_allowed_are_refused(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(extra_plugins=PLUGINS, limits={"broadcast_recipients": 3})
    tenant = await make_tenant(service)
    asked = {"audience": {"all": True}, "text": "Hi"}
    await add(service, tenant, 3)
    taken = await tenant.client.post("/v1/broadcast", json=asked)
    await add(service, tenant, 1, first=3)

    refused = await tenant.client.post("/v1/broadcast", json=asked)
    dry = await tenant.client.post("/v1/broadcast", json={**asked, "dry_run": True})

    assert (taken.status_code, taken.json()["total"]) == (202, 3)
    for answer in (refused, dry):
        assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
        assert "more than 3 subscribers" in answer.json()["error"]


async def test_audience_that_grew_beyond_the_limit_is_cancelled_when_it_begins(
    make_service: ServiceFactory, make_tenant: Any, clock: Any
) -> None:
    service = await make_service(extra_plugins=PLUGINS, limits={"broadcast_recipients": 3})
    tenant = await make_tenant(service)
    await add(service, tenant, 3)
    job_id = await take(tenant.client, send_at="2026-01-15T12:00:10Z")
    await add(service, tenant, 1, first=3)
    clock.advance(10)

    done = await ended(tenant.client, job_id)

    assert (done["status"], counts(done)) == ("cancelled", (0, 0, 4, 4))
    assert "grown beyond 3" in done["error"]
    assert done["code"] == "audience_too_large"


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"audience": {}}, "audience"),
        ({"audience": {"all": True, "langs": ["en"]}}, "audience"),
        ({"audience": {"all": False}}, "audience.all"),
        ({"audience": {"tags_any": []}}, "audience.tags_any"),
        ({"audience": {"tags_any": ["nope"]}}, "audience.tags_any"),
        ({"audience": {"permission": "nope"}}, "audience.permission"),
        ({"audience": {"channels": ["nope"]}}, "audience.channels"),
        ({"audience": {"langs": ["de"]}}, "audience.langs"),
        ({"audience": {"subscriber_ids": ["sub_1"] * 10_001}}, "audience.subscriber_ids"),
        ({"audience": {"subscriber_ids": ["nonsense"]}}, "audience.subscriber_ids[0]: must be"),
        ({"audience": {"all": 1}}, "audience.all: must be true"),
        ({"permission": "nope"}, "permission"),
        ({"text": None}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": {}}, "text"),
        ({"text": {"en": "Hi", "ru": ""}}, "text: must hold more"),
        ({"text": {"de": "Hallo"}}, "text: must be a text, or an object of texts by en and ru"),
        ({"text": "x" * 4001}, "text"),
        ({"text": "Hi {{ first_name"}, "text"),
        ({"text": "Hi", "template": "hello"}, "text"),
        ({"send_at": "2026-01-15T11:59:59Z"}, "send_at"),
        ({"send_at": "9999-12-31T23:59:59Z"}, "send_at"),
        ({"send_at": "9999-12-31T23:59:59-23:59"}, "send_at"),
        ({"messages_per_minute": 0}, "messages_per_minute"),
        ({"subscriber_id": "sub_1"}, "subscriber_id"),
        ({"buttons": [[{"text": "b", "data": "d"}] * 4]}, "buttons"),
        ({"metadata": {"long": "x" * 5000}}, "metadata"),
    ],
)
async def test_what_is_refused(client: httpx2.AsyncClient, body: Any, part: str) -> None:
    asked = {"audience": {"all": True}, "text": "Hi", **body}

    answer = await client.post("/v1/broadcast", json=asked)
    dry = await client.post("/v1/broadcast", json={**asked, "dry_run": True})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed"), answer.text
    assert part in answer.json()["error"]
    assert dry.json() == answer.json()


@pytest.mark.shared_service
@pytest.mark.parametrize("url", ["nonsense", "ftp://shop.example/x", "https://", "https://a;b/x"])
@pytest.mark.parametrize("field", ["media", "buttons"])
async def test_a_wrong_url_is_invalid_url(client: httpx2.AsyncClient, url: str, field: str) -> None:
    shown = {"media": {"type": "image", "url": url}, "buttons": [[{"text": "Go", "url": url}]]}
    body = {"audience": {"all": True}, "text": "Hi", field: shown[field]}

    answer = await client.post("/v1/broadcast", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_url"), answer.text


async def test_a_renamed_tag_means_its_people_by_its_new_name_alone(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant, five: list[str]
) -> None:
    await client.patch("/v1/tags/news", json={"name": "letters"})
    await give(service, tenant, "news", five[4:])

    async def meant(**audience: list[str]) -> int:
        body = {"text": "Hi", "audience": audience, "dry_run": True}
        return int((await client.post("/v1/broadcast", json=body)).json()["total"])

    assert await meant(tags_any=["letters"]) == 3
    assert await meant(tags_any=["letters", "news"]) == 4
    assert await meant(tags_all=["letters", "old"]) == 1
    assert await meant(tags_none=["letters"]) == 2
    assert await meant(tags_any=["news"]) == 1
