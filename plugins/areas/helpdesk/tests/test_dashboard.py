"""The helpdesk's pages: the inbox, a ticket's whole life, who may do what, and texts that mean harm."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.members.models import Role
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_helpdesk import plugin

from .conftest import LIMITS, Person, change, messages_of, post, virtual, whole


class Broke:
    """Refuses every paid operation once it is told to."""

    def __init__(self) -> None:
        self.refuses = False

    @hookimpl
    async def charge(self, tx: Any, charge: Any) -> None:
        if self.refuses:
            raise BillingBlocked


@pytest.fixture
def broke() -> Broke:
    return Broke()


@pytest.fixture
async def service(make_service: ServiceFactory, broke: Broke) -> Service:
    plugins = [("helpdesk", plugin), ("dashboard", dashboard), ("broke", broke)]
    return await make_service(extra_plugins=plugins, limits=LIMITS)


MakeTenant = Callable[[Service], Awaitable[Tenant]]
Enter = Callable[[Role], Awaitable[Visitor]]


@pytest.fixture
async def enter(service: Service, tenant: Tenant) -> AsyncIterator[Enter]:
    """`await enter("viewer")` signs somebody in who has that role."""
    entered: list[Visitor] = []

    async def sign_in(role: Role) -> Visitor:
        entered.append(await visitor(service, tenant.project.project_id, role))
        return entered[-1]

    yield sign_in
    for one in entered:
        await one.client.aclose()


@pytest.fixture
async def mia(enter: Enter) -> Visitor:
    """An agent."""
    return await enter("agent")


def marker_of(html: str) -> str:
    found = re.search(r"tickets/list\?seen=([0-9-]+)", html)
    assert found is not None, html
    return found[1]


async def test_a_ticket_that_arrives_is_answered_noted_given_and_closed_from_its_page(
    tenant: Tenant, ann: Person, mia: Visitor
) -> None:
    empty = await mia.get("/tickets")
    await ann.ask(tenant.client, "My parcel is lost")
    arrived = await mia.get("/tickets/list", seen=marker_of(empty.text))
    same = await mia.get("/tickets/list", seen=marker_of(arrived.text))
    opened = await mia.get("/tickets/1")
    ticket_id = re.search(r"/tickets/(tkt_\w+)/reply", opened.text)
    assert ticket_id is not None
    at = f"/tickets/{ticket_id[1]}"
    refused = await mia.post(f"{at}/reply", {"text": " ", "status": "pending"})
    files = {"files": ("label.txt", b"Track: 17", "text/plain")}
    answered = await mia.post(f"{at}/reply", {"text": "It is found", "status": "open"}, files=files)
    noted = await mia.post(f"{at}/note", {"note": "Call the post"})
    await mia.post(f"{at}/assign", {"assignee_id": "me"})
    await mia.post(f"{at}/priority", {"priority": "urgent"})
    await mia.post(f"{at}/tags", {"tags": "parcel, lost"})
    await mia.post(f"{at}/snooze", {"for": "tomorrow"})
    aside = await whole(tenant.client, ticket_id[1])
    await mia.post(f"{at}/status", {"status": "closed"})
    closed = await whole(tenant.client, ticket_id[1])
    late = await mia.post(f"{at}/reply", {"text": "Too late", "status": "pending"})
    shown = await mia.get(at)

    assert "No open tickets" in empty.text
    assert "My parcel is lost" in arrived.text
    assert "New message from Ann" in arrived.text
    assert (same.status_code, same.text) == (204, "")
    assert (refused.status_code, "Write an answer" in refused.text) == (400, True)
    assert answered.status_code == noted.status_code == 303
    assert [one.message.text for one in ann.messages].count("It is found") == 1
    assert (aside["status"], aside["priority"], aside["tags"]) == (
        "snoozed",
        "urgent",
        ["lost", "parcel"],
    )
    assert closed["status"] == "closed"
    [latest, *_] = (await messages_of(tenant.client, ticket_id[1]))["data"]
    assert closed["assignee_id"] == latest["member_id"]
    assert (late.status_code, "Too late</textarea>" in late.text) == (409, True)
    assert "label.txt" in shown.text
    assert "Internal note, not visible to the customer" in shown.text


async def test_a_choice_is_saved_in_place_where_the_page_asks_for_that(
    tenant: Tenant, mia: Visitor
) -> None:
    ticket = await virtual(tenant.client, "Where is it?")
    at = f"/tickets/{ticket['ticket_id']}"
    [agent, *_] = (await tenant.client.get("/v1/tickets/agents")).json()["data"]
    in_place = {"HX-Request": "true", "HX-Target": "saved"}

    async def choose(what: str, **form: str) -> str:
        answer = await mia.post(f"{at}/{what}", form, headers=in_place)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    urgent = await choose("priority", priority="urgent")
    given = await choose("assign", assignee_id=agent["member_id"])
    nobodys = await choose("assign", assignee_id="")
    kept = await whole(tenant.client, ticket)

    assert "Saved. Priority: Urgent" in urgent
    assert 'id="marks"' in urgent
    assert f"Saved. Assignee: {agent['name']}" in given
    assert "Saved. Assignee: Unassigned" in nobodys
    assert "<main" not in nobodys
    assert (kept["priority"], kept["assignee_id"]) == ("urgent", None)


async def test_closed_tickets_are_among_the_filters_and_a_tab_only_while_they_are_shown(
    tenant: Tenant, mia: Visitor
) -> None:
    await virtual(tenant.client, "Where is it?")

    def tabs(html: str) -> list[str]:
        [nav] = re.findall(r'<nav id="ticket-tabs".*?</nav>', html, re.DOTALL)
        return re.sub(r"<[^>]+>", " ", nav).split()

    opened = await mia.get("/tickets")
    closed = await mia.get("/tickets", status="closed")

    assert tabs(opened.text) == ["Open", "1", "Pending", "Snoozed"]
    assert tabs(closed.text) == ["Open", "1", "Pending", "Snoozed", "Closed"]
    assert '<option value="closed">' in opened.text
    assert '<option value="closed" selected>' in closed.text


async def test_a_reply_that_comes_after_a_colleagues_is_held_back_once(
    service: Service, tenant: Tenant, ann: Person, mia: Visitor, enter: Enter
) -> None:
    bob = await enter("admin")
    await ann.ask(tenant.client, "Where is it?")
    page = await bob.get("/tickets/1")
    seen = re.search(r'name="seen" value="(\w+)"', page.text)
    ticket_id = re.search(r"/tickets/(tkt_\w+)/reply", page.text)
    assert seen is not None
    assert ticket_id is not None
    at = f"/tickets/{ticket_id[1]}/reply"
    await mia.post(at, {"text": "At the door", "status": "open", "seen": seen[1]})

    held = await bob.post(at, {"text": "In the mail", "status": "open", "seen": seen[1]})
    now = re.search(r'name="seen" value="(\w+)"', held.text)
    assert now is not None
    sent = await bob.post(at, {"text": "In the mail", "status": "open", "seen": now[1]})
    again = await bob.post(at, {"text": "Found it", "status": "open", "seen": now[1]})
    await settled(service)

    assert held.status_code == 409
    assert "has replied meanwhile" in held.text
    assert "At the door" in held.text
    assert "In the mail</textarea>" in held.text
    assert (sent.status_code, again.status_code) == (303, 303)
    assert [one.message.text for one in ann.messages if "mail" in one.message.text] == [
        "In the mail"
    ]


async def test_what_was_said_is_shown_anew_only_when_it_has_changed(
    tenant: Tenant, ann: Person, mia: Visitor
) -> None:
    await ann.ask(tenant.client, "First")
    page = await mia.get("/tickets/1")
    asked = re.search(r'/conversation\?seen=(\w+)"', page.text)
    assert asked is not None
    same = await mia.get("/tickets/1/conversation", seen=asked[1])
    await ann.write("Second")
    changed = await mia.get("/tickets/1/conversation", seen=asked[1])

    assert same.status_code == 204
    assert "Second" in changed.text
    assert "f-text" not in changed.text


async def test_who_has_no_credits_is_told_what_to_do_and_keeps_what_they_wrote(
    tenant: Tenant, ann: Person, mia: Visitor, broke: Broke
) -> None:
    await ann.ask(tenant.client, "Help")
    broke.refuses = True
    refused = await mia.post("/tickets/1/reply", {"text": "My long answer", "status": "pending"})
    noted = await mia.post("/tickets/1/note", {"note": "No credits"})

    assert refused.status_code == 402
    assert "Ask the project owner" in refused.text
    assert "My long answer</textarea>" in refused.text
    assert noted.status_code == 303


async def test_an_owner_who_answers_becomes_a_member_and_stays_the_same_one(
    tenant: Tenant, ann: Person, enter: Enter
) -> None:
    await ann.ask(tenant.client, "Help")
    owner = await enter("owner")
    for text in ("One", "Two"):
        await owner.post("/tickets/1/reply", {"text": text, "status": "pending"})
    members = (await tenant.client.get("/v1/members")).json()["data"]
    messages = (await messages_of(tenant.client, "1"))["data"]

    assert [(one["email"], one["role"]) for one in members] == [(members[0]["email"], "owner")]
    assert {one["member_id"] for one in messages} == {None, members[0]["member_id"]}


@pytest.mark.both_databases
async def test_lists_hold_what_their_filters_ask_for_and_go_on_by_what_was_said_last(
    tenant: Tenant, ann: Person, mia: Visitor
) -> None:
    old = await virtual(tenant.client, "Older one", name="Olga")
    for number in range(50):
        await virtual(tenant.client, f"Question {number}", name="Many")
    urgent = await virtual(tenant.client, "Burning", name="Uma", priority="urgent", tags=["fire"])
    await change(tenant.client, urgent, status="closed")
    first = await mia.get("/tickets")
    cursor = re.search(r"cursor=(\w+)", first.text)
    assert cursor is not None
    second = await mia.get("/tickets", cursor=cursor[1])
    found = await mia.get("/tickets", status="all", priority="urgent", tag="fire", who="none")
    nobodys = (await mia.get("/tickets", status="all", who="none")).text
    further = re.search(r"cursor=(\w+)", nobodys)
    assert further is not None
    rest = (await mia.get("/tickets", status="all", who="none", cursor=further[1])).text
    mine = await mia.get("/tickets", who="me")
    wrong = await mia.get("/tickets", cursor="nonsense")
    figures = await mia.get("/tickets/figures")

    assert "Older one" not in first.text
    assert ("Older one" in second.text, "Question 49" in second.text) == (True, False)
    assert ("Burning" in found.text, "Question" in found.text) == (True, False)
    assert 0 < nobodys.find("Burning") < nobodys.find("Question 49") < nobodys.find("Question 48")
    assert ("Question 0" in rest, "Older one" in rest, "Burning" in rest) == (True, True, False)
    assert "No matching tickets" in mine.text
    assert wrong.status_code == 400
    assert ">52<" in figures.text
    assert old["number"] == 1


async def test_pages_are_for_those_whose_role_and_project_they_are(
    service: Service, tenant: Tenant, make_tenant: MakeTenant, mia: Visitor, enter: Enter
) -> None:
    other_tenant = await make_tenant(service)
    mine = await virtual(tenant.client, "Ours")
    theirs = await virtual(other_tenant.client, "Secret of others")
    viewer = await enter("viewer")
    looked = await viewer.get(f"/tickets/{mine['ticket_id']}")
    refused = await viewer.post(f"/tickets/{mine['ticket_id']}/note", {"note": "Hi"})
    deleted = await mia.post(f"/tickets/{mine['ticket_id']}/delete")
    foreign = await mia.get(f"/tickets/{theirs['ticket_id']}")
    foreign_note = await mia.post(f"/tickets/{theirs['ticket_id']}/note", {"note": "Hi"})
    into = await mia.post(f"/tickets/{mine['ticket_id']}/merge", {"into": theirs["ticket_id"]})

    assert looked.status_code == 200
    assert "/reply" not in looked.text
    assert (refused.status_code, deleted.status_code) == (403, 403)
    assert (foreign.status_code, foreign_note.status_code, into.status_code) == (404, 404, 404)


async def test_canned_answers_are_written_chosen_and_deleted(
    tenant: Tenant, ann: Person, mia: Visitor, enter: Enter
) -> None:
    await ann.ask(tenant.client, "Help")
    admin = await enter("admin")
    form = {"key": "hi", "title": "Hello", "text_en": "Hello, {{ name }}!", "format": "plain"}
    missing = await admin.post("/new-canned-answer", {**form, "text_en": ""})
    made = await admin.post("/new-canned-answer", form)
    chosen = await mia.get("/tickets/1", canned="hi")
    fragment = await mia.get("/tickets/1/canned", canned="hi")
    forbidden = await mia.post("/new-canned-answer", form)
    changed = await admin.post("/canned-answers/hi", {**form, "text_ru": "Привет"})
    seen = await mia.get("/canned-answers")
    gone = await admin.post("/canned-answers/hi/delete")
    empty = await mia.get("/canned-answers")

    assert (missing.status_code, "Hello" in missing.text) == (400, True)
    assert made.status_code == changed.status_code == gone.status_code == 303
    assert "Hello, Ann!</textarea>" in chosen.text
    assert 'data-text="Hello, Ann!"' in fragment.text
    assert forbidden.status_code == 403
    assert "Hello" in seen.text
    assert "No canned answers yet" in empty.text


HARM = '<script>alert(1)</script>"><img src=x onerror=alert(1)>{{7*7}}\u202e'


@pytest.mark.both_databases
async def test_what_people_write_is_shown_as_text(
    service: Service, tenant: Tenant, mia: Visitor
) -> None:
    user = ChannelUser("666", HARM[:60], None, "en")
    mallory = Person(service, user)
    await mallory.ask(tenant.client, HARM)
    media = {"type": "document", "url": "https://files.example/a", "filename": "<script>.txt"}
    await post(tenant.client, "/v1/tickets/1/reply", text=HARM, media=media)
    await change(tenant.client, {"ticket_id": "1"}, tags=["<script>"])
    pages = [await mia.get("/tickets", status="all"), await mia.get("/tickets/1")]

    for page in pages:
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "&lt;script&gt;alert" in page.text
        assert "{{7*7}}" in page.text


@pytest.mark.both_databases
async def test_agents_see_each_other_in_a_ticket_and_what_they_have_not_read(
    tenant: Tenant, ann: Person, mia: Visitor, enter: Enter
) -> None:
    kim = await enter("admin")
    await ann.ask(tenant.client, "Where is it?")
    opened = await mia.get("/tickets/1")
    found = re.search(r"/tickets/(tkt_\w+)/present", opened.text)
    assert found is not None
    at = f"/tickets/{found[1]}"
    fresh = await kim.get("/tickets")
    beat = await mia.post(f"{at}/present", {"typing": "1"})
    listed_, beside = await kim.get("/tickets"), await kim.get(at)
    own = await mia.get(at)
    await kim.post(f"{at}/present", {})
    read = await kim.get("/tickets")

    assert beat.status_code == 204
    assert "Unread:" in fresh.text
    assert 'class="viewed"' not in fresh.text
    assert 'class="viewed"' in listed_.text
    assert "is writing…" in beside.text
    assert "is writing…" not in own.text
    assert "Unread:" not in read.text


async def test_single_keys_are_switched_off_by_each_member_for_themselves(
    tenant: Tenant, mia: Visitor, enter: Enter
) -> None:
    kim, vic = await enter("admin"), await enter("viewer")
    before = await mia.get("/tickets")
    await mia.post("/tickets/settings/mine", {"what": "shortcuts", "value": "0"})
    after, others = await mia.get("/tickets"), await kim.get("/tickets")
    refused = await mia.post("/tickets/settings", {"assignment": "round_robin"})
    viewing = await vic.get("/tickets/settings")

    assert 'data-shortcuts="write"' in before.text
    assert "data-shortcuts" not in after.text
    assert 'data-shortcuts="write"' in others.text
    assert refused.status_code == 403
    assert (viewing.status_code, "<select" in viewing.text) == (200, False)


async def test_the_settings_of_the_desk_are_changed_on_their_page(
    tenant: Tenant, mia: Visitor, enter: Enter
) -> None:
    kim = await enter("admin")
    await kim.post("/tickets/settings", {"assignment": "least_busy"})
    page = await kim.get("/tickets/settings")
    found = re.findall(r"/tickets/settings/agents/(mem_\w+)", page.text)
    for member_id in found:
        await kim.post(
            f"/tickets/settings/agents/{member_id}", {"available": "", "max_open_tickets": "3"}
        )
    wrong = await kim.post(
        f"/tickets/settings/agents/{found[0]}", {"available": "1", "max_open_tickets": "many"}
    )
    agents = (await tenant.client.get("/v1/tickets/agents")).json()["data"]
    settings = (await tenant.client.get("/v1/tickets/settings")).json()

    assert settings["assignment"] == "least_busy"
    assert {(one["available"], one["max_open_tickets"]) for one in agents} == {(False, 3)}
    assert wrong.status_code == 400


async def test_business_hours_are_written_on_their_page(
    tenant: Tenant, mia: Visitor, enter: Enter
) -> None:
    admin = await enter("admin")
    at = "/tickets/settings/hours"
    form = {
        "timezone": "Europe/Berlin",
        "monday": "9-13, 14:00–18:00",
        "sunday": "20:00-24:00",
        "holidays": "2026-12-25 Christmas Day\r\n\r\n2027-01-01",
    }
    saved = await admin.post(at, form)
    wrong = await admin.post(at, {**form, "tuesday": "nine to six"})
    backwards = await admin.post(at, {**form, "friday": "18:00-09:00"})
    forbidden = await mia.post(at, form)
    read = await mia.get(at)
    kept = (await tenant.client.get("/v1/tickets/hours")).json()

    assert saved.status_code == 303, saved.text
    assert (wrong.status_code, "nine to six" in wrong.text) == (400, True)
    assert "write hours as 09:00-18:00" in wrong.text
    assert (backwards.status_code, "must be later than opens" in backwards.text) == (400, True)
    assert forbidden.status_code == 403
    assert kept["timezone"] == "Europe/Berlin"
    assert [(one["day"], one["opens"], one["closes"]) for one in kept["openings"]] == [
        ("monday", "09:00", "13:00"),
        ("monday", "14:00", "18:00"),
        ("sunday", "20:00", "24:00"),
    ]
    assert kept["holidays"] == [
        {"date": "2026-12-25", "name": "Christmas Day"},
        {"date": "2027-01-01", "name": None},
    ]
    assert "09:00-13:00, 14:00-18:00" in read.text
    assert "Christmas Day" in read.text


@pytest.mark.both_databases
async def test_the_list_the_ticket_and_the_overview_show_what_is_due(
    tenant: Tenant, mia: Visitor, clock: FakeClock
) -> None:
    targets = {"first_response_seconds": 3600, "counted_in": "calendar"}
    await tenant.client.patch("/v1/tickets/sla", json={"normal": targets})
    ticket = await virtual(tenant.client, "Where is it?")
    soon = await mia.get("/tickets")
    clock.advance(2 * 3600)
    late = await mia.get("/tickets", due="overdue")
    today = await mia.get("/tickets", due="today")
    shown = await mia.get(f"/tickets/{ticket['ticket_id']}")
    overview = await mia.get("")

    assert "Due in 60 min" in soon.text
    assert "Overdue by 60 min" in late.text
    assert "Overdue by 60 min" in shown.text
    assert "Where is it?" not in today.text
    assert "1 overdue" in overview.text


async def test_service_levels_are_written_on_their_page(
    tenant: Tenant, mia: Visitor, enter: Enter
) -> None:
    admin = await enter("admin")
    at = "/tickets/settings/service-levels"
    form = {
        "urgent.first_response_seconds": "0:30",
        "urgent.resolution_seconds": "8",
        "urgent.counted_in": "calendar",
        "normal.next_response_seconds": "24:00",
        "warn_seconds": "0:15:30",
    }
    saved = await admin.post(at, form)
    shown = await admin.get(at)
    wrong = await admin.post(at, {**form, "low.next_response_seconds": "a day"})
    too_long = await admin.post(at, {**form, "low.next_response_seconds": "99999"})
    forbidden = await mia.post(at, form)
    read = await mia.get(at)
    kept = (await tenant.client.get("/v1/tickets/sla")).json()

    assert saved.status_code == 303, saved.text
    assert 'name="urgent.resolution_seconds" type="text" value="8:00"' in shown.text
    assert (wrong.status_code, "a day" in wrong.text) == (400, True)
    assert "write hours and minutes as 1:30" in wrong.text
    assert (too_long.status_code, 'value="99999"' in too_long.text) == (400, True)
    assert forbidden.status_code == 403
    assert kept["urgent"] == {
        "first_response_seconds": 1800,
        "next_response_seconds": None,
        "resolution_seconds": 28800,
        "counted_in": "calendar",
    }
    assert kept["normal"]["next_response_seconds"] == 86400
    assert kept["normal"]["counted_in"] == "business_hours"
    assert kept["warn_seconds"] == 930
    assert (read.status_code, "0:30" in read.text, "warn_seconds" in read.text) == (
        200,
        True,
        False,
    )
