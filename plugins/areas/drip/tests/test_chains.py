"""Chains by the API: made, shown, changed, listed, and what is refused."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_devkit.fixtures import ServiceFactory

from .conftest import HOUR, WITH_DRIP, Shop, refusal, steps_of

BODY: dict[str, Any] = {
    "name": "Welcome",
    "trigger": {"on": "event", "value": "cart.abandoned"},
    "steps": [
        {
            "delay": {"minutes": 30},
            "message": {"text": {"en": "Hi", "ru": "Привет"}, "silent": True},
            "when": {"tags_any": ["vip"], "attribute": {"name": "plan", "equals": "pro"}},
        },
        {"delay": {"days": 1}, "message": {"text": "Bye"}, "at_local_time": "10:00"},
    ],
    "timezone": "Europe/Berlin",
    "stop_on": ["order.paid"],
    "reentry": "after_completion",
    "status": "paused",
}


async def test_chain_is_shown_as_it_was_given(shop: Shop) -> None:
    made = await shop.call("/drips", **BODY)
    shown = await shop.call(f"/drips/{made['drip_id']}", "GET")

    assert made == shown
    assert {name: shown[name] for name in BODY} == BODY
    assert shown["drip_id"].startswith("drp_")
    assert (shown["version"], shown["created_at"]) == (1, "2026-01-15T12:00:00.000Z")


async def test_change_keeps_what_is_left_out(shop: Shop) -> None:
    drip_id = (await shop.call("/drips", **BODY))["drip_id"]
    changed = await shop.call(f"/drips/{drip_id}", "PATCH", steps=steps_of("new"))
    again = await shop.call(f"/drips/{drip_id}", "PATCH", steps=steps_of("new"))

    assert changed["steps"] == steps_of("new")
    assert [changed[name] for name in BODY if name != "steps"] == [
        BODY[name] for name in BODY if name != "steps"
    ]
    # What is the same already is no new version.
    assert (changed["version"], again["version"]) == (2, 2)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_changes_at_once_are_versions_one_after_another(shop: Shop) -> None:
    drip_id = (await shop.call("/drips", **BODY))["drip_id"]
    changes = [
        shop.call(f"/drips/{drip_id}", "PATCH", steps=steps_of(f"new {number}"))
        for number in range(5)
    ]

    assert sorted(each["version"] for each in await asyncio.gather(*changes)) == [2, 3, 4, 5, 6]


async def test_chain_whose_template_is_gone_can_be_renamed_and_not_given_the_same_steps_anew(
    shop: Shop,
) -> None:
    await shop.call("/templates", key="hello", text="Hello")
    drip_id = await shop.chain(steps=[{"delay": {"hours": 1}, "message": {"template": "hello"}}])
    await shop.call("/templates/hello", "DELETE")
    renamed = await shop.call(f"/drips/{drip_id}", "PATCH", name="Old", trigger={"on": "manual"})
    answer = await shop.client.patch(f"/v1/drips/{drip_id}", json={"timezone": "Europe/Berlin"})

    assert (renamed["name"], renamed["version"]) == ("Old", 1)
    assert refusal(answer) == (404, "not_found")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "zone", ["localtime", "posixrules", "right/UTC", "Factory", "europe/berlin"]
)
async def test_zone_that_is_another_on_each_machine_is_refused(shop: Shop, zone: str) -> None:
    answer = await shop.client.post("/v1/drips", json={**BODY, "timezone": zone})

    assert refusal(answer) == (400, "validation_failed")


@pytest.mark.shared_service
@pytest.mark.parametrize("name", ["", "  ", " Welcome", "two\nlines", "\u3164", "\u2800"])
async def test_name_that_nobody_can_read_is_refused(shop: Shop, name: str) -> None:
    answer = await shop.client.post("/v1/drips", json={**BODY, "name": name})

    assert refusal(answer) == (400, "validation_failed")
    assert "name" in answer.json()["error"]


@pytest.mark.both_databases
async def test_enrollment_is_found_by_its_id_and_by_the_person(
    shop: Shop, make_tenant: Any
) -> None:
    drip_id = await shop.chain("one", "two")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    enrollment_id = await shop.enroll(drip_id, ann)
    await shop.enroll(drip_id, bob)
    await shop.after(HOUR)
    [sent, _] = await shop.told("drip.step_sent")
    shown = await shop.call(f"/drips/enrollments/{enrollment_id}", "GET")
    stranger = (await make_tenant(shop.service, "Other")).client

    assert [shown] == await shop.enrollments(drip_id, subscriber_id=ann)
    assert (shown["subscriber_id"], shown["next_step"]) == (ann, 2)
    assert shown["last_message_id"] == sent["message_id"]
    assert await shop.enrollments(drip_id, subscriber_id="sub_nobody") == []
    for path in (enrollment_id, "enr_none"):
        answer = await stranger.get(f"/v1/drips/enrollments/{path}")
        assert refusal(answer) == (404, "not_found")


@pytest.mark.both_databases
async def test_chains_and_enrollments_are_listed_newest_first_by_page(shop: Shop) -> None:
    chains = [await shop.chain("one") for _ in range(3)]
    people = [await shop.person(f"P{number}") for number in range(3)]
    for who in people:
        await shop.enroll(chains[0], who)

    for path, key, wanted in (
        ("/drips", "drip_id", chains),
        (f"/drips/{chains[0]}/enrollments", "subscriber_id", people),
    ):
        first = await shop.call(f"{path}?limit=2", "GET")
        rest = await shop.call(f"{path}?limit=2&cursor={first['next_cursor']}", "GET")
        found = [one[key] for one in first["data"] + rest["data"]]
        assert (found, rest["next_cursor"]) == (wanted[::-1], None)


async def test_enrolls_by_external_id(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    ann = await shop.person(external_id="ann-1")
    enrolled = await shop.call(f"/drips/{drip_id}/enroll", external_id="ann-1")

    assert enrolled["subscriber_id"] == ann
    assert enrolled["enrollment_id"].startswith("enr_")


#: What is wrong, and where the error says it is. Tried one after the other: none of them makes anything.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"steps": []}, "steps"),
    ({"steps": steps_of("x", minutes=1, hours=1)}, "steps[0].delay"),
    ({"steps": steps_of("x", minutes=-1)}, "steps[0].delay.minutes"),
    ({"steps": steps_of("x", days=367)}, "steps[0].delay.days"),
    ({"steps": steps_of(" ")}, "steps[0].message.text"),
    ({"steps": steps_of("ok", "x" * 4001)}, "steps[1]: text"),
    ({"steps": [{"delay": {"hours": 1}, "message": {}}]}, "steps[0].message.text"),
    ({"steps": [{"delay": {"hours": 1}}]}, "steps[0].message"),
    ({"steps": [{**steps_of("x")[0], "at_local_time": "24:00"}]}, "steps[0].at_local_time"),
    ({"steps": [{**steps_of("x")[0], "when": {"lang": "de"}}]}, "steps[0].when.lang"),
    ({"steps": [{**steps_of("x")[0], "when": {"channel": "fax"}}]}, "steps[0]: channel"),
    ({"steps": [{**steps_of("x")[0], "when": {"permission": "x"}}]}, "steps[0]: permission"),
    ({"timezone": "Mars/Phobos"}, "timezone"),
    ({"timezone": "../etc/passwd"}, "timezone"),
    ({"timezone": "Europe"}, "timezone"),
    ({"stop_on": ["drip.completed"]}, "stop_on[0]"),
    ({"stop_on": ["no spaces"]}, "stop_on[0]"),
    ({"reentry": "always"}, "reentry"),
    ({"trigger": {"on": "tag"}}, "trigger.value"),
    ({"trigger": {"on": "tag", "value": "a b"}}, "trigger.value"),
    ({"trigger": {"on": "manual", "value": "x"}}, "trigger.value"),
    ({"trigger": {"on": "permission", "value": "unknown"}}, "trigger.value"),
    ({"trigger": {"on": "event", "value": "drip.completed"}}, "trigger.value"),
    ({"trigger": {"on": "event", "value": "delivery.success"}}, "trigger.value"),
    ({"trigger": {"on": "subscription", "value": "dream"}}, "trigger.value"),
    ({"colour": "red"}, "colour"),
]


async def test_wrong_field_is_named(shop: Shop) -> None:
    body = {"name": "Welcome", "trigger": {"on": "manual"}, "steps": steps_of("Hi")}
    for change, field in WRONG:
        answer = await shop.client.post("/v1/drips", json={**body, **change})

        assert refusal(answer) == (400, "validation_failed"), change
        assert answer.json()["error"].startswith(field), answer.text


async def test_template_is_looked_at_when_the_chain_is_made(shop: Shop) -> None:
    await shop.call("/templates", key="hello", text="Hi {{ first_name }}: {{ gift }}")

    async def made(template: str, **variables: str) -> httpx2.Response:
        message = {"template": template, "variables": variables}
        steps = [{"delay": {"hours": 1}, "message": message}]
        body = {"name": "x", "trigger": {"on": "manual"}, "steps": steps}
        return await shop.client.post("/v1/drips", json=body)

    missing = await made("hello")
    assert refusal(missing) == (400, "validation_failed")
    assert missing.json()["error"].startswith("steps[0]: variables.gift")
    assert refusal(await made("unknown")) == (404, "not_found")
    assert (await made("hello", gift="a cup")).status_code == 201


async def test_chain_has_at_most_50_steps(shop: Shop) -> None:
    drip_id = await shop.chain(*["x"] * 50)
    for method, path in (("POST", "/drips"), ("PATCH", f"/drips/{drip_id}")):
        body = {"steps": steps_of(*["x"] * 51)}
        if method == "POST":
            body |= {"name": "Long", "trigger": {"on": "manual"}}
        answer = await shop.client.request(method, f"/v1{path}", json=body)

        assert refusal(answer) == (400, "validation_failed")
        assert answer.json()["error"] == "steps: at most 50"


async def test_limits_are_settings(make_service: ServiceFactory, make_tenant: Any) -> None:
    service = await make_service(
        extra_plugins=WITH_DRIP["extra_plugins"],
        drip={"steps_per_chain": 1, "chains_per_project": 1},
    )
    client = (await make_tenant(service)).client
    body = {"name": "x", "trigger": {"on": "manual"}, "steps": steps_of("one")}
    too_long = await client.post("/v1/drips", json={**body, "steps": steps_of("one", "two")})
    first = await client.post("/v1/drips", json=body)
    second = await client.post("/v1/drips", json=body)

    assert refusal(too_long) == (400, "validation_failed")
    assert first.status_code == 201
    assert refusal(second) == (409, "conflict")


async def test_needs_the_scope_drips(shop: Shop, make_tenant: Any) -> None:
    other = await make_tenant(shop.service, scopes=("messages",))

    assert refusal(await other.client.get("/v1/drips")) == (403, "forbidden")
