"""Where submissions lead, and what becomes of their copies."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_core.messages import Message
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from msgsvc_forms import copy_store
from msgsvc_forms.copies import AGAIN_AFTER_S, FORGET
from msgsvc_forms.models import Submission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from plugins.areas.forms.tests.unit.order import FORM_ID, Desk, add_form, new_form, submit

TO_ANNA = {"kind": "subscriber", "subscriber_id": "sub_1"}
TO_STAFF = {"kind": "tag", "tag": "staff"}
TO_TICKET = {"kind": "ticket", "priority": "high", "tags": ["form"]}


def rules(*targets: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"to": to} for to in targets]


async def led(core: MemoryCore, tx: Tx, *targets: dict[str, Any]) -> list[dict[str, Any]]:
    """What becomes of Ann's submission to a form with these rules."""
    form = await add_form(tx, rules=rules(*targets))
    leads: list[dict[str, Any]] = from_json((await submit(core, tx, form)).leads)
    return leads


async def test_a_subscriber_gets_the_answers_in_their_language(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, lang="ru")
    heading = {**TO_ANNA, "text": {"en": "New order", "ru": "Новый заказ"}}
    [lead] = await led(core, tx, heading)

    [message] = await core.messages_queued(tx)
    assert message.content.text == "Новый заказ\n\nYour name?: Ann"
    assert (lead["status"], lead["id"]) == ("done", message.message_id)


async def test_no_text_is_longer_than_its_messenger_takes(core: MemoryCore, tx: Tx) -> None:
    channel = core.recording()
    channel.capabilities = replace(channel.capabilities, max_text_length=12)
    await core.person(tx)
    await led(core, tx, TO_ANNA)

    [message] = await core.messages_queued(tx)
    assert 0 < len(message.content.text) <= 12


async def test_a_ticket_has_the_customer_whom_the_answers_name(
    core: MemoryCore, tx: Tx, desk: Desk
) -> None:
    [lead] = await led(core, tx, TO_TICKET)

    [request] = desk.opened
    assert lead["id"] == "tkt_1"
    assert request.source == "form"
    assert (request.subject, request.customer_name) == ("Order", "Ann")
    assert (request.priority, request.tags) == ("high", ("form",))


async def test_a_rule_to_the_event_alone_makes_nothing(core: MemoryCore, tx: Tx) -> None:
    [lead] = await led(core, tx, {"kind": "webhook"})

    assert (lead["status"], lead["id"]) == ("done", None)


async def test_a_way_to_the_next_question_leads_no_submission_anywhere(
    core: MemoryCore, tx: Tx
) -> None:
    assert await led(core, tx, {"kind": "next_field", "after": "name"}) == []


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (TO_STAFF, r"rules\[0\].to.tag: this project has no tag 'staff'"),
        (TO_TICKET, r"rules\[0\].to.kind: no plugin that keeps tickets"),
    ],
)
async def test_a_form_is_kept_with_rules_that_lead_somewhere(to: dict[str, Any], why: str) -> None:
    async with memory_core(plugins=["forms"]) as core, core.db.transaction() as tx:
        with pytest.raises(ValidationFailed, match=why):
            await core.get(Forms).create(tx, PROJECT, new_form(rules=rules(to)))


# ---- copies -------------------------------------------------------------------------------------


async def deleted(core: MemoryCore, *targets: dict[str, Any]) -> str:
    """Deletes a submission of Anna's to a form with these rules; returns its id."""
    async with core.db.transaction() as tx:
        sent = await submitted(core, tx, *targets)
        await core.get(Submissions).delete(tx, PROJECT, FORM_ID, sent.submission_id)
    return sent.submission_id


async def submitted(core: MemoryCore, tx: Tx, *targets: dict[str, Any]) -> Submission:
    """Anna's submission to a form with these rules."""
    anna = await core.person(tx, tags=["staff"])
    form = await add_form(tx, rules=rules(*targets))
    return await submit(core, tx, form, subscriber=anna)


async def forgets(core: MemoryCore) -> list[Job]:
    """The jobs that blank copies, in order, also those that a test has run."""
    async with core.db.read() as tx:
        return await core.jobs_named(tx, FORGET)


async def message_to_anna(core: MemoryCore) -> Message:
    async with core.db.read() as tx:
        [message] = await core.messages_queued(tx)
    return message


async def set_status(core: MemoryCore, status: str) -> None:
    """Puts the message to Anna into this status."""
    async with core.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET status = :status", {"status": status})


async def test_what_was_copied_nowhere_needs_no_job(core: MemoryCore) -> None:
    await deleted(core, {"kind": "webhook"})

    assert await forgets(core) == []


async def test_copies_are_blanked_and_looked_at_once_more(core: MemoryCore) -> None:
    await deleted(core, TO_ANNA)
    [first] = await forgets(core)
    await core.run(first)

    assert (await message_to_anna(core)).content == OutgoingMessage("")
    _, again = await forgets(core)
    assert again.payload["last"]
    assert again.run_at_ms == core.clock.now_ms() + AGAIN_AFTER_S * 1000


async def test_what_is_being_sent_is_waited_for(core: MemoryCore) -> None:
    await deleted(core, TO_ANNA)
    await set_status(core, "sending")
    for number in range(2):
        await core.run((await forgets(core))[number])
    text = (await message_to_anna(core)).content.text
    await set_status(core, "sent")
    *_, third = await forgets(core)
    await core.run(third)

    assert text.endswith("Ann")
    assert (await message_to_anna(core)).content == OutgoingMessage("")
    assert len(await forgets(core)) == 3


async def test_after_the_last_look_nothing_says_where_the_copies_were(core: MemoryCore) -> None:
    submission_id = await deleted(core, TO_ANNA)
    found = []
    for number in range(2):
        await core.run((await forgets(core))[number])
        async with core.db.read() as tx:
            found.append(len(await copy_store.find(tx, PROJECT, [submission_id])))

    assert found == [1, 0]
    assert len(await forgets(core)) == 2


async def test_a_ticket_forgets_a_submission_that_was_deleted_by_hand(
    core: MemoryCore, desk: Desk
) -> None:
    submission_id = await deleted(core, TO_TICKET)
    await core.run(*await forgets(core))

    assert desk.forgotten == [(PROJECT, "form", submission_id)]


async def test_a_ticket_remembers_a_submission_that_was_too_old(
    core: MemoryCore, desk: Desk
) -> None:
    async with core.db.transaction() as tx:
        await submitted(core, tx, TO_TICKET)
        await core.get(Submissions).purge(tx, core.clock.now_ms() + 1, spam=False, limit=10)
    await core.run(*await forgets(core))

    assert desk.forgotten == []


async def test_a_mailing_forgets_what_it_said(core: MemoryCore) -> None:
    await deleted(core, TO_STAFF)
    async with core.db.read() as tx:
        [before] = await core.mailings.list_any(tx, ended=False, limit=10)
    await core.run(*await forgets(core))

    async with core.db.read() as tx:
        [after] = await core.mailings.list_any(tx, ended=True, limit=10)
    assert (before.total, after.status) == (1, "cancelled")
    assert ("Ann" in before.content, "Ann" in after.content) == (True, False)


async def test_a_person_who_is_erased_takes_their_copies_along(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        sent = await submitted(core, tx, TO_TICKET)
    hook = core.service.plugins.hook
    for erased in hook.erase_subscriber(project_id=PROJECT, subscriber_id="sub_1"):
        await erased

    [job] = await forgets(core)
    assert (job.payload["submission_ids"], job.payload["tickets"]) == ([sent.submission_id], True)
