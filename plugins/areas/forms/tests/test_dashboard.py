"""The pages of forms: one is built, shared, changed and deleted; what was sent in; who may do what."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.members.models import Role
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import jobs, plugin
from msgsvc_forms.submissions import Submissions

from .conftest import NAME, Desk

Enter = Callable[[Role], Awaitable[Visitor]]
MakeTenant = Callable[[Service], Awaitable[Tenant]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("forms", plugin), ("dashboard", dashboard)])


@pytest.fixture
async def enter(desk: Desk) -> AsyncIterator[Enter]:
    """`await enter("viewer")` signs somebody in who has that role."""
    entered: list[Visitor] = []

    async def sign_in(role: Role) -> Visitor:
        entered.append(await visitor(desk.service, desk.project_id, role))
        return entered[-1]

    yield sign_in
    for one in entered:
        await one.client.aclose()


def boxes_of(html: str) -> dict[str, str]:
    """What the builder's page would post."""
    found: dict[str, str] = {}
    form = html[html.index('id="builder"') : html.index("</form>", html.index('id="builder"'))]
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="(\w+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and ('type="checkbox"' not in tag or " checked" in tag):
            found[name[1]] = value[1] if value else ""
    texts = re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n([^<]*)</textarea>', form)
    found |= dict(texts)
    for name_, options in re.findall(r'<select [^>]*name="(\w+)"[^>]*>(.*?)</select>', form, re.S):
        # The one that is chosen, else the first.
        values = re.findall(r'value="([^"]*)" selected', options)
        found[name_] = (values or re.findall(r'value="([^"]*)"', options) or [""])[0]
    found.pop("_csrf", None)
    return found


async def test_a_form_is_built_without_scripts_shared_changed_and_deleted(
    desk: Desk, enter: Enter
) -> None:
    admin = await enter("admin")
    empty = await admin.get("/forms")
    boxes = boxes_of((await admin.get("/forms/new")).text)
    added = await admin.post("/forms/draft", {**boxes, "new_type": "choice", "do": "field-add"})
    boxes = boxes_of(added.text) | {"slug": "order", "f0_label_en": "Your name", "f0_required": "1"}
    boxes |= {"f1_label_en": "Size", "f1_label_ru": "Размер", "f1_options": "s | Small\nl"}
    moved = await admin.post("/forms/draft", {**boxes, "do": "field-up-1"})
    boxes = boxes_of(moved.text)
    wrong = await admin.post("/forms/new", {**boxes, "f0_options": "only one"})
    made = await admin.post("/forms/new", boxes)
    form = (await desk.client.get("/v1/forms")).json()["data"][0]
    share = await admin.get(f"/forms/{form['form_id']}/share")
    at = f"/forms/{form['form_id']}/edit"
    boxes = boxes_of((await admin.get(at)).text)
    same = await admin.post(at, boxes)
    routed = boxes_of((await admin.post("/forms/draft", {**boxes, "do": "rule-add"})).text)
    routed |= {"r0_kind": "webhook", "r0_field": "question_2", "r0_op": "eq", "r0_value": "l"}
    saved = await admin.post(at, routed)
    stale = await admin.post(at, {**boxes, "title_en": "Mine"})
    changed = (await desk.client.get(f"/v1/forms/{form['form_id']}")).json()
    listed = await admin.get("/forms")
    gone = await admin.post(f"/forms/{form['form_id']}/delete")

    assert "No forms yet" in empty.text
    assert (wrong.status_code, "Question 1, options: must be 2-50" in wrong.text) == (400, True)
    assert "only one</textarea>" in wrong.text
    assert made.status_code == 303
    assert form["slug"] == "order"
    assert form["fields"] == [
        {
            "key": "question_2",
            "type": "choice",
            "label": {"en": "Size", "ru": "Размер"},
            "options": [{"value": "s", "label": "Small"}, "l"],
        },
        {"key": "question_1", "type": "text", "label": "Your name", "required": True},
    ]
    assert form["url"] in share.text
    assert "&lt;select name=&#34;question_2&#34;&gt;" in share.text
    assert same.status_code == saved.status_code == gone.status_code == 303
    assert (stale.status_code, 'value="Mine"' in stale.text) == (409, True)
    assert (changed["version"], changed["title"]) == (2, "Contact us")
    assert changed["rules"] == [
        {"when": {"field": "question_2", "op": "eq", "value": "l"}, "to": {"kind": "webhook"}}
    ]
    assert "Contact us" in listed.text
    assert (await desk.client.get("/v1/forms")).json()["data"] == []


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_save_at_once_one_is_told_of_the_other(desk: Desk, enter: Enter) -> None:
    form = await desk.form()
    ann, boris = await enter("admin"), await enter("owner")
    at = f"/forms/{form['form_id']}/edit"
    boxes = boxes_of((await ann.get(at)).text)
    await boris.get(at)

    answers = await asyncio.gather(
        ann.post(at, {**boxes, "title_en": "Ann's"}),
        boris.post(at, {**boxes, "title_en": "Boris's"}),
    )

    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert (await desk.client.get(f"/v1/forms/{form['form_id']}")).json()["version"] == 2


async def test_every_definition_comes_out_of_the_builder_as_it_went_in(
    desk: Desk, enter: Enter
) -> None:
    fields: list[dict[str, Any]] = [
        {**NAME, "min": 2, "max": 40, "pattern": "[A-Z].*"},
        {"key": "about", "type": "text", "label": "About", "multiline": True},
        {"key": "many", "type": "number", "label": "Many", "min": 1, "max": 2.5},
        {"key": "day", "type": "date", "label": "Day", "min": "2026-01-01"},
        {"key": "mail", "type": "email", "label": "Mail"},
        {"key": "tel", "type": "phone", "label": "Phone,\nwith its country"},
        {
            "key": "some",
            "type": "multichoice",
            "label": "Some",
            "options": [
                "a",
                {"value": "b", "label": {"en": "Bee", "ru": "Бэ"}},
                "c|d",
                "c\\|d",
                {"value": "e\\", "label": "E\nor | \\n"},
                {"value": "f", "label": {"ru": "| Эф |"}},
            ],
            "max": 1,
        },
        {"key": "mark", "type": "rating", "label": "Mark", "max": 10},
        {"key": "scan", "type": "file", "label": "Scan", "max": 3},
        {"key": "ok", "type": "consent", "label": "Agreed", "required": True},
    ]
    rules: list[dict[str, Any]] = [
        {"to": {"kind": "webhook"}},
        {
            "when": {"field": "mark", "op": "lt", "value": 5},
            "to": {"kind": "next_field", "field": "ok"},
        },
        {"when": {"field": "ok", "op": "eq", "value": True}, "to": {"kind": "webhook"}},
        {"when": {"field": "tel", "op": "exists", "value": False}, "to": {"kind": "webhook"}},
    ]
    more = {"description": {"ru": "Описание"}, "allowed_origins": ["https://a.example", "*"]}
    form = await desk.form(*fields, rules=rules, thanks="Thanks", **more)
    admin = await enter("admin")
    at = f"/forms/{form['form_id']}/edit"
    boxes = boxes_of((await admin.get(at)).text)
    same = await admin.post(at, boxes)
    retitled = await admin.post(at, {**boxes, "title_en": "Renamed"})
    after = (await desk.client.get(f"/v1/forms/{form['form_id']}")).json()

    assert same.status_code == retitled.status_code == 303
    for name in ("fields", "rules", "description", "thanks", "allowed_origins"):
        assert after[name] == form[name], name
    assert (after["version"], after["title"]) == (2, "Renamed")


@pytest.mark.both_databases
async def test_spam_is_apart_until_somebody_says_that_it_is_none(
    desk: Desk, enter: Enter, clock: FakeClock
) -> None:
    form = await desk.form()
    url = f"/f/{form['form_id']}"
    await desk.client.post(url, json={"name": "Ann"})
    await desk.client.post(url, json={"name": "Bot", form["honeypot"]: "x"})
    admin, viewer = await enter("admin"), await enter("viewer")
    at = f"/forms/{form['form_id']}"
    good, spam = await admin.get(at), await admin.get(at, spam="1")
    found = re.search(rf"{at}/submissions/(fsb_\w+)", spam.text)
    assert found is not None
    one = await viewer.get(f"{at}/submissions/{found[1]}")
    refused = await viewer.post(f"{at}/submissions/{found[1]}/not-spam")
    cleared = await admin.post(f"{at}/submissions/{found[1]}/not-spam")
    again = await admin.post(f"{at}/submissions/{found[1]}/not-spam")
    told = await desk.told()
    csv = await admin.get(f"{at}/export")
    deleted = await admin.post(f"{at}/submissions/{found[1]}/delete")
    left = await admin.get(at)

    assert ("Ann" in good.text, "Bot" in good.text) == (True, False)
    assert ("Ann" in spam.text, "Bot" in spam.text) == (False, True)
    assert "Marked as spam" in one.text
    assert "not-spam" not in one.text
    assert (refused.status_code, cleared.status_code, again.status_code) == (403, 303, 409)
    assert [event["answers"][0]["value"] for event in told] == ["Ann", "Bot"]
    assert csv.headers["content-type"].startswith("text/csv")
    assert "Bot" in csv.text
    assert deleted.status_code == 303
    assert ("Ann" in left.text, "Bot" in left.text) == (True, False)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_spam_is_emptied_at_once_in_steps_and_what_comes_later_stays(
    desk: Desk, enter: Enter, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much it is: no transaction removes all of it."""
    monkeypatch.setattr(jobs, "CHUNK", 2)
    steps = []
    remove_spam = Submissions.remove_spam

    async def counted(self: Submissions, *given: Any) -> bool:
        steps.append(is_done := await remove_spam(self, *given))
        return is_done

    monkeypatch.setattr(Submissions, "remove_spam", counted)
    form = await desk.form()
    url = f"/f/{form['form_id']}"
    await desk.client.post(url, json={"name": "Ann"})
    for number in range(3):
        await desk.client.post(url, json={"name": f"Bot {number}", form["honeypot"]: "x"})
    admin, viewer = await enter("admin"), await enter("viewer")
    at = f"/forms/{form['form_id']}"

    refused = await viewer.post(f"{at}/spam/empty")
    offered = await admin.get(at, spam="1")
    emptied = await admin.post(f"{at}/spam/empty")
    clock.advance(1)
    await desk.client.post(url, json={"name": "Late", form["honeypot"]: "x"})
    await settled(desk.service)
    spam, good = await admin.get(at, spam="1"), await admin.get(at)

    assert (refused.status_code, emptied.status_code) == (403, 303)
    assert f"{at}/spam/empty" in offered.text
    assert steps == [False, True]
    assert ("Bot" in spam.text, "Late" in spam.text, "Ann" in good.text) == (False, True, True)


@pytest.mark.both_databases
async def test_forms_are_for_those_whose_role_and_project_they_are(
    desk: Desk, enter: Enter, make_tenant: MakeTenant
) -> None:
    other = await make_tenant(desk.service)
    body = {"slug": "contact", "title": "Theirs", "fields": [NAME]}
    theirs = (await other.client.post("/v1/forms", json=body)).json()["form_id"]
    mine = await desk.form()
    agent, viewer, admin = await enter("agent"), await enter("viewer"), await enter("admin")
    seen = await viewer.get(f"/forms/{mine['form_id']}/share")
    boxes = boxes_of((await admin.get("/forms/new")).text)

    assert (await agent.get("/forms")).status_code == 403
    assert (seen.status_code, "delete" in seen.text) == (200, False)
    assert (await viewer.get("/forms/new")).status_code == 403
    assert (await viewer.post("/forms/draft", boxes)).status_code == 403
    for path in ("", "/share", "/edit", "/export"):
        assert (await admin.get(f"/forms/{theirs}{path}")).status_code == 404
    assert (await admin.post(f"/forms/{theirs}/edit", boxes)).status_code == 404
    assert (await admin.post(f"/forms/{theirs}/delete")).status_code == 404


HARM = '<script>alert(1)</script>"><img src=x onerror=alert(1)>{{7*7}}\u202e'


async def test_what_people_write_is_shown_as_text(desk: Desk, enter: Enter) -> None:
    choice = {
        "key": "pick",
        "type": "choice",
        "label": HARM,
        "options": [HARM.strip("\u202e"), "b"],
    }
    form = await desk.form({**NAME, "label": HARM}, choice, title=HARM, description=HARM)
    await desk.client.post(f"/f/{form['form_id']}", json={"name": HARM})
    admin = await enter("admin")
    at = f"/forms/{form['form_id']}"
    listed = await admin.get(at)
    found = re.search(rf"{at}/submissions/(fsb_\w+)", listed.text)
    assert found is not None
    paths = ["/forms", f"{at}/share", f"{at}/edit", f"{at}/submissions/{found[1]}"]
    pages = [listed, *[await admin.get(path) for path in paths]]

    for page in pages:
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "&lt;script&gt;alert" in page.text
