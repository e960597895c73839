"""Where rules lead submissions, when conditions hold, and what becomes of those that lead nowhere."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.content.markup import utf16_length
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled

from .conftest import NAME, WITH_FORMS, Desk, refusal
from .web import PNG, Visitor, visiting

AGE = {"key": "age", "type": "number", "label": "Age"}
SIZE = {
    "key": "size",
    "type": "choice",
    "label": {"en": "Size", "ru": "Размер"},
    "options": [{"value": "m", "label": {"en": "Medium", "ru": "Средний"}}, "l"],
}
MAIL = {"key": "mail", "type": "email", "label": "Email"}


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


async def send(desk: Desk, visitor: Visitor, form: dict[str, Any], **sent: Any) -> dict[str, Any]:
    """What was kept of a submission, when all that it began has been done."""
    answer = await visitor.post(form, json=sent)
    assert answer.status_code == 201, answer.text
    await settled(desk.service)
    [newest, *_] = await desk.submissions(form)
    return newest


async def test_a_subscriber_reads_the_answers_in_their_language(
    desk: Desk, visitor: Visitor
) -> None:
    ann, boris = await desk.person("Ann"), await desk.person("Boris", lang="ru")
    to = [{"to": {"kind": "subscriber", "subscriber_id": who}} for who in (ann, boris)]
    form = await desk.form(NAME, SIZE, title={"en": "Order", "ru": "Заказ"}, rules=to, slug="order")

    kept = await send(desk, visitor, form, name="Cleo\nName: Eve", size="m")

    assert desk.texts("Ann") == ["Order\n\nName: Cleo Name: Eve\nSize: Medium"]
    assert desk.texts("Boris") == ["Заказ\n\nИмя: Cleo Name: Eve\nРазмер: Средний"]
    assert [(one["rule"], one["kind"], one["status"]) for one in kept["rules"]] == [
        (0, "subscriber", "completed"),
        (1, "subscriber", "completed"),
    ]
    assert kept["rules"][0]["id"].startswith("msg_")


async def test_answers_longer_than_a_message_are_cut_in_the_unit_of_the_messengers(
    desk: Desk, visitor: Visitor
) -> None:
    await desk.client.post("/v1/tags", json={"name": "staff"})
    ann = await desk.person("Ann")
    await desk.person("Boris", tags=["staff"])
    form = await desk.form(
        {**NAME, "multiline": True, "max": 4000},
        rules=[
            {"to": {"kind": "subscriber", "subscriber_id": ann}},
            {"to": {"kind": "tag", "tag": "staff"}},
        ],
    )

    kept = await send(desk, visitor, form, name="\N{SLIGHTLY SMILING FACE}" * 4000)

    assert [one["status"] for one in kept["rules"]] == ["completed", "completed"]
    for name in ("Ann", "Boris"):
        [text] = desk.texts(name)
        assert text.endswith("…")
        assert 3990 < utf16_length(text) <= 4000


async def test_no_answer_passes_for_another(desk: Desk, visitor: Visitor) -> None:
    ann = await desk.person("Ann")
    form = await desk.form(
        {**NAME, "multiline": True},
        rules=[{"to": {"kind": "subscriber", "subscriber_id": ann, "text": "A **new** one"}}],
    )

    await send(desk, visitor, form, name="Cleo\nAge: 5")

    assert desk.texts("Ann") == ["A **new** one\n\nName: Cleo\n    Age: 5"]


async def test_everybody_who_carries_the_tag_reads_the_answers(
    desk: Desk, visitor: Visitor
) -> None:
    await desk.client.post("/v1/tags", json={"name": "staff"})
    for name, lang, tags in (
        ("Ann", "en", ["staff"]),
        ("Boris", "ru", ["staff"]),
        ("Eve", "en", []),
    ):
        await desk.person(name, lang=lang, tags=tags)
    form = await desk.form(NAME, SIZE, rules=[{"to": {"kind": "tag", "tag": "staff"}}])

    kept = await send(desk, visitor, form, name="{{ first_name }} {{ x }}", size="m")

    # Braces in an answer are what somebody wrote, and no variables.
    assert desk.texts("Ann") == ["Contact\n\nName: {{ first_name }} {{ x }}\nSize: Medium"]
    assert desk.texts("Boris") == ["Contact\n\nИмя: {{ first_name }} {{ x }}\nРазмер: Средний"]
    assert desk.texts("Eve") == []
    assert kept["rules"][0]["id"].startswith("job_")


CONDITIONS: list[tuple[str, str, Any, list[dict[str, Any]]]] = [
    ("age", "eq", 18, [{"age": 18}, {"age": 18.0}]),
    ("age", "ne", 18, [{"age": 17}, {"age": 10}, {}]),
    ("age", "gt", 9, [{"age": 10}, {"age": 18}, {"age": 17}, {"age": 18.0}]),
    ("age", "lt", 18, [{"age": 17}, {"age": 10}]),
    ("age", "exists", None, [{"age": 18}, {"age": 17}, {"age": 10}, {"age": 18.0}]),
    ("age", "exists", False, [{}]),
    ("name", "eq", "ANN", [{"age": 18}, {"age": 17}, {"age": 10}, {"age": 18.0}, {}]),
    ("name", "contains", "nN", [{"age": 18}, {"age": 17}, {"age": 10}, {"age": 18.0}, {}]),
]


@pytest.mark.shared_service
@pytest.mark.parametrize(("field", "op", "value", "expected"), CONDITIONS)
async def test_a_condition_compares_typed_answers(
    desk: Desk,
    make_service: Any,
    field: str,
    op: str,
    value: Any,
    expected: list[dict[str, Any]],
) -> None:
    when = {"field": field, "op": op, **({} if value is None else {"value": value})}
    form = await desk.form(NAME, AGE, rules=[{"when": when, "to": {"kind": "webhook"}}])
    taken = []
    for number, sent in enumerate([{"age": 18}, {"age": 17}, {"age": 10}, {"age": 18.0}, {}]):
        async with visiting(desk.service, f"203.0.113.{number}") as visitor:
            kept = await send(desk, visitor, form, name="Ann", **sent)
        if kept["rules"]:
            taken.append(sent)

    assert sorted(taken, key=str) == sorted(expected, key=str)


async def test_a_rule_that_leads_nowhere_any_more_takes_nothing_from_the_others(
    desk: Desk, visitor: Visitor
) -> None:
    ann, bob = await desk.person("Ann"), await desk.person("Bob")
    to = [{"to": {"kind": "subscriber", "subscriber_id": who}} for who in (ann, bob)]
    form = await desk.form(NAME, rules=to)
    await desk.client.delete(f"/v1/subscribers/{ann}?erase=true")

    kept = await send(desk, visitor, form, name="Cleo")

    failed, done = kept["rules"]
    assert (failed["status"], failed["id"]) == ("failed", None)
    assert ann in failed["error"]
    assert done["status"] == "completed"
    assert desk.texts("Bob") == ["Contact\n\nName: Cleo"]
    assert len(await desk.told()) == 1


class Desks:
    """A plugin that keeps tickets, and says which were asked for."""

    def __init__(self) -> None:
        self.asked: list[TicketRequest] = []

    @hookimpl
    async def open_ticket(self, tx: Tx, request: TicketRequest) -> str:
        self.asked.append(request)
        return f"tkt_{len(self.asked)}"


async def test_a_ticket_is_opened_with_who_asks_and_what(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    desks = Desks()
    plugins = [*WITH_FORMS["extra_plugins"], ("desks", desks)]
    service = await make_service(extra_plugins=plugins)
    desk = Desk(service, await make_tenant(service), clock)
    to = {"kind": "ticket", "subject": {"en": "Asked"}, "priority": "high", "tags": ["web"]}
    form = await desk.form(NAME, MAIL, rules=[{"to": to}])

    async with visiting(service) as visitor:
        kept = await send(desk, visitor, form, name="Cleo", mail="cleo@shop.example")

    [asked] = desks.asked
    assert kept["rules"] == [
        {
            "rule": 0,
            "kind": "ticket",
            "status": "completed",
            "id": "tkt_1",
            "code": None,
            "error": None,
        }
    ]
    assert (asked.source, asked.source_id) == ("form", kept["submission_id"])
    assert (asked.customer_name, asked.customer_email) == ("Cleo", "cleo@shop.example")
    assert (asked.subject, asked.priority, asked.tags) == ("Asked", "high", ("web",))
    assert asked.text == "Contact\n\nName: Cleo\nEmail: cleo@shop.example"

    # The helpdesk is taken away: the submission says so, and is there.
    bare = await make_service(**WITH_FORMS, database_url=service.settings.database_url)
    async with visiting(bare) as visitor:
        kept = await send(desk, visitor, form, name="Dora")
    [lost] = kept["rules"]
    assert lost["status"] == "failed"
    assert lost["error"].startswith("no plugin that keeps tickets is loaded")


class Till:
    """A plugin that keeps accounts, and refuses when told to."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, str]] = []
        self.is_blocked = False

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        if self.is_blocked:
            raise BillingBlocked
        self.charged.append((charge.operation, charge.resource_id))


async def test_a_submission_is_charged_once_and_refused_where_nothing_is_left(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    till = Till()
    plugins = [*WITH_FORMS["extra_plugins"], ("till", till)]
    service = await make_service(extra_plugins=plugins)
    desk = Desk(service, await make_tenant(service), clock)
    form = await desk.form()
    async with visiting(service) as visitor:
        kept = await send(desk, visitor, form, name="Ann")
        await visitor.post(form, json={"name": "Bot", form["honeypot"]: "x"})
        till.is_blocked = True
        refused = await visitor.post(form, json={"name": "Bob"})
        await visitor.open(form)
        page = await visitor.send(form, name="Bob")

    assert till.charged == [("form.submission", kept["submission_id"])]
    assert refusal(refused) == (402, "billing_blocked")
    assert page.status_code == 402
    assert "Nothing was sent" in page.text
    assert len(await desk.submissions(form)) == 1


class Waiting:
    """A plugin that keeps accounts, and looks at what has been done when it is asked."""

    def __init__(self) -> None:
        self.leads: list[str] = []

    @hookimpl
    async def charge(self, tx: Tx, charge: Charge) -> None:
        leads = await tx.fetch_val(
            "SELECT leads FROM forms_submissions WHERE submission_id = :id",
            {"id": charge.resource_id},
        )
        self.leads.append(leads)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_submission_is_charged_when_its_rules_need_no_lock_any_more(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    till = Waiting()
    plugins = [*WITH_FORMS["extra_plugins"], ("till", till), ("desks", Desks())]
    service = await make_service(extra_plugins=plugins)
    desk = Desk(service, await make_tenant(service), clock)
    form = await desk.form(rules=[{"to": {"kind": "ticket"}}])
    async with visiting(service) as visitor:
        await send(desk, visitor, form, name="Ann")

    assert len(till.leads) == 1
    assert '"done"' in till.leads[0]


async def test_files_of_a_ticket_stay_when_the_submission_is_deleted(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    plugins = [*WITH_FORMS["extra_plugins"], ("desks", Desks())]
    service = await make_service(extra_plugins=plugins)
    desk = Desk(service, await make_tenant(service), clock)
    photo = {"key": "photo", "type": "file", "label": "Photo"}
    answers = []
    for slug, rules in (("asked", [{"to": {"kind": "ticket"}}]), ("told", [])):
        form = await desk.form(NAME, photo, slug=slug, rules=rules)
        async with visiting(service) as visitor:
            await visitor.post(form, data={"name": "Cleo"}, files={"photo": ("cat.png", PNG)})
        [kept] = await desk.submissions(form)
        file_id = kept["answers"][1]["value"][0]["file_id"]
        path = f"/v1/forms/{form['form_id']}/submissions/{kept['submission_id']}"
        deleted = await desk.client.delete(path)
        content = await desk.client.get(f"/v1/files/{file_id}/content")
        answers.append((deleted.status_code, content.status_code))

    assert answers == [(204, 200), (204, 404)]
