"""What forms can be made of, and what is refused with the field that is wrong."""

from typing import Any

import pytest

from .conftest import NAME, Desk, refusal

AGE = {"key": "age", "type": "number", "label": "Age"}
SIZE = {"key": "size", "type": "choice", "label": "Size", "options": ["S", "M"]}


async def test_a_form_is_shown_with_its_page_links_and_codes(desk: Desk) -> None:
    made = await desk.form(NAME, SIZE, rules=[{"to": {"kind": "webhook"}}])

    shown = (await desk.client.get(f"/v1/forms/{made['form_id']}")).json()
    assert shown == made
    assert made["form_id"].startswith("frm_")
    assert made["version"] == 1
    assert made["fields"] == [NAME, SIZE]
    assert made["url"].endswith(f"/f/{made['form_id']}")
    assert made["links"]["messenger_a"] == "https://messenger_a.example/bot?start=form_contact"
    assert made["qr"]["messenger_a"].endswith("/qr/messenger_a/form_contact.svg")
    code = await desk.client.get("/qr/messenger_a/form_contact.svg")
    assert code.headers["Content-Type"] == "image/svg+xml"


async def test_each_change_makes_a_version_and_what_changes_nothing_none(desk: Desk) -> None:
    made = await desk.form(description="Write to us")

    changed = await desk.change(made, title={"en": "Write"}, description=None)
    same = await desk.change(made, title={"en": "Write"})

    assert (changed["version"], changed["title"], changed["description"]) == (
        2,
        {"en": "Write"},
        None,
    )
    assert same == changed
    assert changed["fields"] == [NAME]


async def test_a_project_has_ten_forms_and_each_slug_once(desk: Desk) -> None:
    for number in range(10):
        await desk.form(slug=f"form-{number}")

    assert refusal(await desk.try_form(slug="one-more")) == (409, "conflict")
    listed = (await desk.client.get("/v1/forms?limit=4")).json()
    assert [form["slug"] for form in listed["data"]] == ["form-9", "form-8", "form-7", "form-6"]
    last = listed["data"][0]
    assert (await desk.client.delete(f"/v1/forms/{last['form_id']}")).status_code == 204
    assert refusal(await desk.try_form(slug="form-0")) == (409, "conflict")
    assert (await desk.try_form(slug="form-9")).status_code == 201


async def test_links_of_two_projects_with_the_same_slug_lead_to_each_ones_own(
    desk: Desk, make_tenant: Any
) -> None:
    other = Desk(desk.service, await make_tenant(desk.service, "Rival"), desk.clock)

    mine, theirs = await desk.form(), await other.form()

    links = [form["links"]["messenger_a"].partition("start=")[2] for form in (mine, theirs)]
    assert links[0] == "form_contact"
    assert links[1].startswith("form_contact_")
    assert len(links[1]) <= 64


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"slug": "No"}, "slug: "),
    ({"title": ""}, "title: "),
    ({"fields": []}, "fields: "),
    ({"fields": [NAME, NAME]}, "fields: the key 'name' stands twice"),
    ({"fields": [{**NAME, "key": "Name"}]}, "fields[0].key: "),
    ({"fields": [{**NAME, "type": "colour"}]}, "fields[0].type: "),
    ({"fields": [{**NAME, "colour": 1}]}, "fields[0].colour: there is no such field"),
    ({"fields": [{**SIZE, "options": None}]}, "fields[0].options: must be 2-50"),
    ({"fields": [{**SIZE, "options": ["S", "S"]}]}, "fields[0].options: hold the same value"),
    ({"fields": [{**NAME, "options": ["S", "M"]}]}, "fields[0].options: are not for"),
    ({"fields": [{**NAME, "pattern": "(a"}]}, "fields[0].pattern: is no pattern of RE2"),
    ({"fields": [{**NAME, "pattern": r"(a)\1"}]}, "fields[0].pattern: is no pattern of RE2"),
    ({"fields": [{**NAME, "pattern": "((a{100}){100}){9}"}]}, "fields[0].pattern: is no"),
    ({"fields": [{**NAME, "pattern": "a" * 201}]}, "fields[0].pattern: "),
    ({"fields": [{**AGE, "pattern": "1"}]}, "fields[0].pattern: is not for"),
    ({"fields": [{**AGE, "min": "1"}]}, "fields[0].min: must be a number"),
    ({"fields": [{**AGE, "min": 2, "max": 1}]}, "fields[0].max: must not be less than min"),
    ({"fields": [{**NAME, "max": 4001}]}, "fields[0].max: must be a whole number of 0-4000"),
    ({"fields": [{**AGE, "multiline": True}]}, "fields[0].multiline: is not for"),
    ({"fields": [{**AGE, "type": "date", "min": "2026-02-30"}]}, "fields[0].min: must be a date"),
    ({"fields": [{**AGE, "type": "rating", "max": 11}]}, "fields[0].max: "),
    ({"fields": [{**AGE, "type": "email", "max": 11}]}, "fields[0].max: is not for"),
    ({"allowed_origins": ["https://shop.example/x"]}, "allowed_origins[0]: must be an origin"),
    ({"redirect_url": "javascript:alert(1)"}, "redirect_url: must be an http or https URL"),
    ({"min_fill_seconds": 601}, "min_fill_seconds: "),
    ({"rules": [{"to": {"kind": "webhook"}}] * 41}, "rules: at most 40"),
    ({"rules": [{"to": {"kind": "pigeon"}}]}, "rules[0].to.kind: must be one of"),
    ({"rules": [{"to": {"kind": "webhook", "url": "x"}}]}, "rules[0].to.url: there is no such"),
    ({"rules": [{"to": {"kind": "tag", "tag": "staff"}}]}, "rules[0].to.tag: this project"),
    ({"rules": [{"to": {"kind": "tag"}}]}, "rules[0].to.tag: is required"),
    ({"rules": [{"to": {"kind": "ticket"}}]}, "rules[0].to.kind: no plugin that keeps tickets"),
    ({"rules": [{"to": {"kind": "subscriber"}}]}, "rules[0].to: give either"),
    (
        {"rules": [{"to": {"kind": "webhook"}, "when": {"field": "x", "op": "exists"}}]},
        "rules[0].when.field: there is no field 'x'",
    ),
    (
        {"rules": [{"to": {"kind": "webhook"}, "when": {"field": "name", "op": "gt", "value": 1}}]},
        "rules[0].when.op: gt is not for a field of type text",
    ),
    (
        {
            "fields": [AGE],
            "rules": [
                {"to": {"kind": "webhook"}, "when": {"field": "age", "op": "eq", "value": "x"}}
            ],
        },
        "rules[0].when.value: is no answer of a field of type number",
    ),
    ({"rules": [{"to": {"kind": "next_field"}}]}, "rules[0].to.after: is required without when"),
    (
        {
            "fields": [NAME, AGE],
            "rules": [{"to": {"kind": "next_field", "after": "age", "field": "name"}}],
        },
        "rules[0].to.field: must come later than 'age'",
    ),
]


@pytest.mark.shared_service
@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
async def test_what_is_wrong_is_named(desk: Desk, given: dict[str, Any], said: str) -> None:
    answer = await desk.try_form(**given)

    code = (
        "invalid_url"
        if said.startswith(("redirect_url", "allowed_origins"))
        else "validation_failed"
    )
    assert refusal(answer) == (400, code)
    assert answer.json()["error"].startswith(said), answer.json()["error"]


async def test_a_rule_to_a_stranger_is_refused(desk: Desk) -> None:
    rules = [{"to": {"kind": "subscriber", "subscriber_id": "sub_0000000000000000000000"}}]

    answer = await desk.try_form(rules=rules)

    assert refusal(answer) == (404, "subscriber_not_found")
    assert answer.json()["error"].startswith("rules[0].to: ")
