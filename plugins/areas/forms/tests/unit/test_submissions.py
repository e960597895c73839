"""The rules of what is sent in, built from fakes."""

import io
from dataclasses import asdict, replace
from typing import Any

import pytest

from msgsvc_core.jobs import NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked, Conflict, NotFound
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Reply
from msgsvc_forms import plugin
from msgsvc_forms.copies import FORGET
from msgsvc_forms.jobs import CHUNK, Removal
from msgsvc_forms.models import NewSubmission, Submission
from msgsvc_forms.service import EMPTY_SPAM, REMOVE
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submissions import OPERATION

from .order import FORM, SENT_IN, form_of, submissions, tables, tx_of, with_file

ANN = NewSubmission(FORM, "web", {"name": "Ann"}, "en")


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin)


def removal(core: FakeContext, **settings: Any) -> Removal:
    return Removal(
        clock=core.clock, submissions=submissions(core), settings=FormsSettings(**settings)
    )


async def stored_file(core: FakeContext) -> str:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    return (await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content)).file_id


async def test_what_is_sent_in_is_an_event_and_is_charged_once(core: FakeContext) -> None:
    kept = await submissions(core).submit(tx_of(), ANN)

    [event], [charge] = core.events.emitted, core.billing.charges
    assert (event.name, event.data["submission_id"]) == ("form.submitted", kept.submission_id)
    assert event.data["answers"] == [{"key": "name", "type": "text", "value": "Ann"}]
    assert (charge.operation, charge.resource_id) == (OPERATION, kept.submission_id)


async def test_the_same_sent_twice_is_what_came_first(core: FakeContext) -> None:
    tx = tx_of(FORM, SENT_IN, others={"INSERT INTO forms_submissions": 0})
    there = await submissions(core).submit(tx, replace(ANN, once_key="digest"))

    assert there == SENT_IN
    assert (core.events.emitted, core.billing.charges) == ([], [])


async def test_spam_is_kept_and_nothing_follows_from_it(core: FakeContext) -> None:
    tx = tx_of()
    await submissions(core).submit(tx, replace(ANN, spam="honeypot"))

    assert tx.params_of("INSERT INTO forms_submissions")[0]["spam"] == "honeypot"
    assert (core.events.emitted, core.billing.charges) == ([], [])


async def test_a_form_that_was_deleted_meanwhile_takes_nothing(core: FakeContext) -> None:
    tx = tx_of(None)
    with pytest.raises(NotFound):
        await submissions(core).submit(tx, ANN)

    assert tx.params_of("INSERT INTO forms_submissions") == []


async def test_what_is_not_paid_for_is_refused_at_the_end(core: FakeContext) -> None:
    core.billing.refused.add(OPERATION)

    with pytest.raises(BillingBlocked):
        await submissions(core).submit(tx_of(), ANN)


async def test_the_files_of_an_answer_stay(core: FakeContext) -> None:
    file_id = await stored_file(core)
    fields = [{"key": "photo", "type": "file", "label": "Photo?"}]
    photo = {"filename": "a.png", "mime_type": "image/png", "size": 4, "type": "image"}
    given = {"photo": [{"file_id": file_id, **photo}]}
    await submissions(core).submit(
        tx_of(), NewSubmission(form_of(fields=fields), "web", given, "en")
    )

    assert core.files.kept == {file_id}


async def test_where_a_submission_went_is_kept_for_its_copies_to_be_found(
    core: FakeContext,
) -> None:
    core.subscribers.person()
    to_anna = [{"to": {"kind": "subscriber", "subscriber_id": "sub_1"}}]
    tx = tx_of()
    await submissions(core).submit(tx, replace(ANN, form=form_of(routes=to_anna)))

    [copy] = tx.rows["forms_copies"]
    assert (copy["kind"], copy["copy_id"]) == ("subscriber", *core.messages.by_id)


async def test_what_was_no_spam_is_taken_as_if_it_had_just_come(core: FakeContext) -> None:
    spam = replace(SENT_IN, spam="too_fast")
    cleared = await submissions(core).clear_spam(tx_of(FORM, spam), PROJECT, "frm_1", "fsb_1")

    assert cleared.spam is None
    assert core.events.names == ["form.submitted"]
    assert [charge.resource_id for charge in core.billing.charges] == ["fsb_1"]


async def test_what_was_cleared_before_is_not_charged_again(core: FakeContext) -> None:
    tx = tx_of(FORM, SENT_IN, others={"UPDATE forms_submissions SET spam": 0})
    with pytest.raises(Conflict):
        await submissions(core).clear_spam(tx, PROJECT, "frm_1", "fsb_1")

    assert (core.events.emitted, core.billing.charges) == ([], [])


async def test_what_is_deleted_by_hand_goes_out_of_tickets_too(core: FakeContext) -> None:
    copy = [{"submission_id": "fsb_1", "copy_id": "msg_1", "kind": "subscriber"}]
    tx = tx_of(FORM, SENT_IN, others={"FROM forms_copies": copy})
    await submissions(core).delete(tx, PROJECT, "frm_1", "fsb_1")
    await submissions(core).purge(tx, 1, spam=False, limit=10)

    assert [job.payload["tickets"] for job in core.jobs.named(FORGET)] == [True, False]


async def test_files_go_with_their_submission_but_for_those_of_a_ticket(core: FakeContext) -> None:
    gone, stays = await stored_file(core), await stored_file(core)
    ticket = to_json([{"route": 0, "kind": "ticket", "status": "done", "id": "tkt_1"}])
    old = [with_file(gone), with_file(stays, submission_id="fsb_2", leads=ticket)]
    await submissions(core).purge(tx_of(FORM, *old), 1, spam=False, limit=10)

    assert list(core.files.stored) == [stays]


# ---- jobs ---------------------------------------------------------------------------------------


def in_parts(core: FakeContext, *sizes: int) -> FakeJobContext:
    """Tables that find so many submissions, one look after another."""
    left = [[asdict(SENT_IN)] * size for size in sizes]
    found: dict[str, Reply] = {
        "DELETE FROM forms_submissions": 1,
        "FROM forms_submissions": lambda _: left.pop(0),
    }
    core.db.replies = tables(others=found)
    return FakeJobContext(core.db)


async def test_spam_is_kept_for_a_month_and_the_rest_for_good(core: FakeContext) -> None:
    ctx = in_parts(core, 0)
    await removal(core).purge(ctx, [claimed(NewJob("forms.purge"))])

    [params] = core.db.params_of("created_at_ms < :before_ms")
    assert params["before_ms"] == core.clock.now_ms() - 30 * DAY_MS
    assert len(ctx.completed) == 1


async def test_the_rest_goes_after_as_many_days_as_the_settings_say(core: FakeContext) -> None:
    await removal(core, submission_days=7).purge(in_parts(core, CHUNK, 3, 0), [])

    looks = core.db.params_of("created_at_ms < :before_ms")
    ages = [(core.clock.now_ms() - params["before_ms"]) // DAY_MS for params in looks]
    assert ages == [30, 30, 7]


@pytest.mark.parametrize("name", [REMOVE, EMPTY_SPAM])
async def test_much_is_removed_in_small_transactions(core: FakeContext, name: str) -> None:
    ctx = in_parts(core, CHUNK, CHUNK, 0)
    payload = {"project_id": PROJECT, "form_id": "frm_1", "until_ms": 5}
    run = {spec.name: spec.handler for spec in removal(core).specs}[name]
    await run(ctx, [claimed(NewJob(name, payload))])

    assert core.db.commits == 3
    assert len(core.db.params_of("DELETE FROM forms_forms")) == (1 if name == REMOVE else 0)


async def test_a_runner_that_stops_removes_nothing_more(core: FakeContext) -> None:
    ctx = in_parts(core)
    ctx.is_stopping = True
    payload = {"project_id": PROJECT, "form_id": "frm_1", "until_ms": 5}

    for run in (removal(core).remove, removal(core).empty_spam, removal(core).purge):
        with pytest.raises(Stopping):
            await run(ctx, [claimed(NewJob("any", payload))])


def test_a_submission_of_a_ticket_is_known_by_a_route_that_led_there() -> None:
    def led(**lead: Any) -> Submission:
        return replace(SENT_IN, leads=to_json([{"route": 0, "id": None, **lead}]))

    assert led(kind="ticket", status="done").is_ticket
    assert not led(kind="ticket", status="failed").is_ticket
    assert not led(kind="subscriber", status="done").is_ticket
