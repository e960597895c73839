"""Where submissions lead, and what becomes of their copies, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.messages.bodies import SendBody
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_forms import plugin
from msgsvc_forms.copies import AGAIN_AFTER_S, FORGET, Copies
from msgsvc_forms.models import NewSubmission, RoutingResult

from .order import SENT_IN, definition, form_of, router
from .order import copies as all_copies

TO_ANNA = {"kind": "subscriber", "subscriber_id": "sub_1"}
TO_STAFF = {"kind": "tag", "tag": "staff"}
TO_TICKET = {"kind": "ticket", "priority": "high", "tags": ["form"]}


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin)


def routes(*targets: dict[str, Any], **when: Any) -> dict[str, Any]:
    return {"routes": [{"to": to, **({"when": when} if when else {})} for to in targets]}


async def staff(core: FakeContext) -> None:
    """Has somebody have the tag `staff`."""
    await core.tags.create(FakeTx(), PROJECT, "staff")
    core.subscribers.person("sub_1", tags=["staff"])


async def led(core: FakeContext, *targets: dict[str, Any], **when: Any) -> list[RoutingResult]:
    """What becomes of Ann's submission to a form with these routes."""
    new = NewSubmission(form_of(**routes(*targets, **when)), "web", {"name": "Ann"}, "en")
    return await router(core).route(FakeTx(), new, SENT_IN)


async def test_a_subscriber_gets_the_answers_in_their_language(core: FakeContext) -> None:
    core.subscribers.person("sub_1", lang="ru")
    heading = {**TO_ANNA, "text": {"en": "New order", "ru": "Новый заказ"}}
    [lead] = await led(core, heading)

    assert core.messages.texts == ["Новый заказ\n\nYour name?: Ann"]
    assert (lead.status, lead.id) == ("done", *core.messages.by_id)


async def test_no_text_is_longer_than_its_messenger_takes(core: FakeContext) -> None:
    channel = core.channels.recording("messenger_a")
    channel.capabilities = replace(channel.capabilities, max_text_length=12)
    core.subscribers.person("sub_1")
    await led(core, TO_ANNA)

    [text] = core.messages.texts
    assert 0 < len(text) <= 12


async def test_a_tag_gets_a_mailing_in_which_braces_of_answers_mean_nothing(
    core: FakeContext,
) -> None:
    await staff(core)
    new = NewSubmission(form_of(**routes(TO_STAFF)), "web", {"name": "{{ lang }}"}, "en")
    sent = replace(SENT_IN, answers=SENT_IN.answers.replace("Ann", "{{ lang }}"))
    [lead] = await router(core).route(FakeTx(), new, sent)

    [mailing] = core.mailings.by_id.values()
    assert (lead.id, mailing.total) == (mailing.job_id, 1)
    assert "{{ lang }}" in mailing.content
    assert "form_en" in mailing.content


async def test_a_ticket_has_the_customer_whom_the_answers_name(core: FakeContext) -> None:
    [lead] = await led(core, TO_TICKET)

    [request] = core.peers.tickets.opened
    assert lead.id == "tic_1"
    assert (request.source, request.source_id) == ("form", "fsb_1")
    assert (request.subject, request.customer_name) == ("Order", "Ann")
    assert (request.priority, request.tags) == ("high", ("form",))


async def test_a_route_that_leads_nowhere_takes_nothing_from_the_others(core: FakeContext) -> None:
    core.subscribers.person("sub_1")
    core.peers.tickets.keeps_tickets = False
    gone = {"kind": "subscriber", "subscriber_id": "sub_gone"}
    leads = await led(core, gone, TO_TICKET, {"kind": "webhook"}, TO_ANNA)

    assert [lead.status for lead in leads] == ["failed", "failed", "done", "done"]
    assert "sub_gone" in (leads[0].error or "")
    assert (leads[2].id, leads[3].id) == (None, *core.messages.by_id)


@pytest.mark.parametrize(("value", "many"), [("ann", 1), ("Boris", 0)])
async def test_a_route_is_taken_where_its_condition_holds(
    core: FakeContext, value: str, many: int
) -> None:
    core.subscribers.person("sub_1")
    leads = await led(core, TO_ANNA, field="name", op="eq", value=value)

    assert len(leads) == many


async def test_a_way_to_the_next_question_leads_no_submission_anywhere(core: FakeContext) -> None:
    assert await led(core, {"kind": "next_field", "after": "name"}) == []


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (TO_STAFF, r"routes\[0\].to.tag: this project has no tag 'staff'"),
        (TO_TICKET, r"routes\[0\].to.kind: no plugin that keeps tickets"),
    ],
)
async def test_a_form_is_kept_with_routes_that_lead_somewhere(
    core: FakeContext, to: dict[str, Any], why: str
) -> None:
    core.peers.tickets.keeps_tickets = False

    with pytest.raises(ValidationFailed, match=why):
        await router(core).check(FakeTx(), PROJECT, definition(**routes(to)))


# ---- copies -------------------------------------------------------------------------------------


def copies(core: FakeContext, *found: tuple[str, str]) -> Copies:
    """With the copies of the submission `fsb_1`, by kind and id."""
    rows = [{"submission_id": "fsb_1", "copy_id": one, "kind": kind} for kind, one in found]
    core.db.replies = {
        "UPDATE forms_copies": rows,
        "DELETE FROM forms_copies": len(rows),
        "FROM forms_copies": rows,
    }
    return all_copies(core)


async def sent_to_anna(core: FakeContext) -> str:
    core.subscribers.person("sub_1")
    body = SendBody(subscriber_id="sub_1", text="Name: Ann")
    return (await core.messages.queue(FakeTx(), PROJECT, body)).message_id


async def blanked(
    core: FakeContext, to: Copies, *, tickets: bool = True, last: bool = False
) -> None:
    """Runs the job that blanks the copies of `fsb_1`."""
    async with core.db.transaction() as tx:
        await to.erase(tx, PROJECT, ["fsb_1"], tickets=tickets)
    [new] = core.jobs.named(FORGET)
    core.jobs.enqueued.clear()
    job = claimed(replace(new, payload={**new.payload, "last": last}))
    await to.blank(FakeJobContext(core.db), [job])


async def test_what_was_copied_nowhere_needs_no_job(core: FakeContext) -> None:
    nowhere = copies(core)
    async with core.db.transaction() as tx:
        await nowhere.erase(tx, PROJECT, ["fsb_1"], tickets=True)

    assert core.jobs.enqueued == []


async def test_copies_are_blanked_and_looked_at_once_more(core: FakeContext) -> None:
    message_id = await sent_to_anna(core)
    await blanked(core, copies(core, ("subscriber", message_id)))

    assert core.messages.by_id[message_id].content == OutgoingMessage("")
    [again] = core.jobs.named(FORGET)
    assert again.payload["last"]
    assert again.run_at_ms == core.clock.now_ms() + AGAIN_AFTER_S * 1000
    assert core.db.params_of("DELETE FROM forms_copies") == []


async def test_what_is_being_sent_is_waited_for(core: FakeContext) -> None:
    message_id = await sent_to_anna(core)
    core.messages.by_id[message_id] = replace(core.messages.by_id[message_id], status="sending")
    await blanked(core, copies(core, ("subscriber", message_id)), last=True)

    assert len(core.jobs.named(FORGET)) == 1
    assert core.db.params_of("DELETE FROM forms_copies") == []


async def test_after_the_last_look_nothing_says_where_the_copies_were(core: FakeContext) -> None:
    await blanked(core, copies(core, ("subscriber", await sent_to_anna(core))), last=True)

    assert core.jobs.enqueued == []
    assert len(core.db.params_of("DELETE FROM forms_copies")) == 1


@pytest.mark.parametrize("tickets", [True, False])
async def test_a_ticket_forgets_its_submission_where_that_is_said(
    core: FakeContext, tickets: bool
) -> None:
    await blanked(core, copies(core, ("ticket", "tkt_1")), tickets=tickets)

    assert core.peers.tickets.forgotten == ([(PROJECT, "form", "fsb_1")] if tickets else [])


async def test_a_mailing_forgets_what_it_said(core: FakeContext) -> None:
    await staff(core)
    [lead] = await led(core, TO_STAFF)
    await blanked(core, copies(core, ("tag", lead.id or "")))

    [mailing] = core.mailings.by_id.values()
    assert mailing.status == "cancelled"
    assert "Ann" not in mailing.content


async def test_a_person_who_is_erased_takes_their_copies_along(core: FakeContext) -> None:
    await copies(core, ("ticket", "tkt_1")).erase_person(PROJECT, "sub_1")

    [job] = core.jobs.named(FORGET)
    assert (job.payload["submission_ids"], job.payload["tickets"]) == (["fsb_1"], True)
