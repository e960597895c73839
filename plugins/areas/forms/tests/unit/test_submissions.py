"""The rules of submissions."""

import io
from contextlib import AbstractAsyncContextManager

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.jobs import NewJob, Stopping
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_forms import jobs
from msgsvc_forms.copies import FORGET
from msgsvc_forms.models import Submission
from msgsvc_forms.service import EMPTY_SPAM, REMOVE
from msgsvc_forms.submissions import OPERATION, Submissions
from plugins.areas.forms.tests.unit.order import (
    FORM_ID,
    Till,
    add_form,
    handler_of,
    kept,
    submit,
)

#: Removes what is older than the settings say.
PURGE = "forms.purge"

DAY_S = 24 * 3600


async def test_what_is_sent_in_is_an_event_and_is_charged_once(
    core: MemoryCore, tx: Tx, till: Till
) -> None:
    sent = await submit(core, tx, await add_form(tx))

    [event] = core.emitted
    assert (event.name, event.data["submission_id"]) == ("form.submitted", sent.submission_id)
    assert event.data["answers"] == [{"key": "name", "type": "text", "value": "Ann"}]
    assert till.charged == [(OPERATION, sent.submission_id)]


async def test_the_same_sent_twice_is_what_came_first(core: MemoryCore, tx: Tx, till: Till) -> None:
    form = await add_form(tx)
    first = await submit(core, tx, form, once_key="digest")
    again = await submit(core, tx, form, once_key="digest", answers={"name": "Boris"})

    assert again == first
    assert core.event_names == ["form.submitted"]
    assert len(till.charged) == 1


async def test_the_files_of_an_answer_stay(core: MemoryCore) -> None:
    async def stored(tx: Tx) -> StoredFile:
        content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
        return await core.files.add(tx, PROJECT, filename="a.png", content=content)

    async with core.db.transaction() as tx:
        form = await add_form(tx, fields=[{"key": "photo", "type": "file", "label": "Photo?"}])
        sent, unsent = await stored(tx), await stored(tx)
        photo = {"filename": "a.png", "mime_type": "image/png", "size": 72, "type": "image"}
        await submit(core, tx, form, answers={"photo": [{"file_id": sent.file_id, **photo}]})
    core.clock.advance(30 * DAY_S)
    await core.run(NewJob("core.purge_files"))

    async with core.db.read() as tx:
        left = await core.files.get_many(tx, PROJECT, [sent.file_id, unsent.file_id])
    assert [file.file_id for file in left] == [sent.file_id]


async def test_what_was_no_spam_is_taken_as_if_it_had_just_come(
    core: MemoryCore, tx: Tx, till: Till
) -> None:
    spam = await submit(core, tx, await add_form(tx), spam="too_fast")
    before = list(core.emitted), list(till.charged)
    cleared = await core.get(Submissions).clear_spam(tx, PROJECT, FORM_ID, spam.submission_id)

    assert before == ([], [])
    assert cleared.spam is None
    assert await kept(tx) == [cleared]
    assert core.event_names == ["form.submitted"]
    assert till.charged == [(OPERATION, spam.submission_id)]


async def test_what_was_cleared_before_is_not_charged_again(
    core: MemoryCore, tx: Tx, till: Till
) -> None:
    sent = await submit(core, tx, await add_form(tx))
    with pytest.raises(Conflict):
        await core.get(Submissions).clear_spam(tx, PROJECT, FORM_ID, sent.submission_id)

    assert core.event_names == ["form.submitted"]
    assert len(till.charged) == 1


async def test_what_is_deleted_by_hand_goes_out_of_tickets_too(core: MemoryCore, tx: Tx) -> None:
    form = await add_form(tx, rules=[{"to": {"kind": "ticket"}}])
    first, second = [await submit(core, tx, form) for _ in range(2)]
    await core.get(Submissions).delete(tx, PROJECT, FORM_ID, first.submission_id)
    await core.get(Submissions).purge(tx, core.clock.now_ms() + 1, spam=False, limit=10)

    forgets = [job.payload for job in await core.jobs_named(tx, FORGET)]
    assert [(each["submission_ids"], each["tickets"]) for each in forgets] == [
        ([first.submission_id], True),
        ([second.submission_id], False),
    ]


# ---- jobs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "left"),
    [({}, ["sent 8", "sent 0", "spam 29"]), ({"submission_days": 7}, ["sent 0", "spam 29"])],
    indirect=["core"],
)
async def test_spam_is_kept_for_a_month_and_the_rest_as_long_as_the_settings_say(
    core: MemoryCore, left: list[str]
) -> None:
    async with core.db.transaction() as tx:
        form = await add_form(tx)
        for name, then_days in (("spam 31", 2), ("spam 29", 21), ("sent 8", 8), ("sent 0", 0)):
            spam = "honeypot" if name.startswith("spam") else None
            await submit(core, tx, form, answers={"name": name}, spam=spam)
            core.clock.advance(then_days * DAY_S)
    ctx = await core.run(NewJob(PURGE))

    async with core.db.read() as tx:
        found = [*await kept(tx), *await kept(tx, spam=True)]
    assert [each.ordered[0]["value"] for each in found] == left
    assert len(ctx.completed) == 1


class Steps(JobInTest):
    """Counts its transactions."""

    def __init__(self, core: MemoryCore) -> None:
        super().__init__(core.db)
        self.count = 0

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        self.count += 1
        return super().transaction()


async def test_much_that_is_old_is_removed_in_small_transactions(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CHUNK", 2)
    async with core.db.transaction() as tx:
        form = await add_form(tx)
        for _ in range(3):
            await submit(core, tx, form, spam="honeypot")
    core.clock.advance(31 * DAY_S)
    steps = Steps(core)
    await handler_of(core, PURGE)(steps, [])

    async with core.db.read() as tx:
        assert await kept(tx, spam=True) == []
    assert steps.count == 2


@pytest.mark.parametrize("name", [REMOVE, EMPTY_SPAM, PURGE])
async def test_a_runner_that_stops_removes_nothing_more(core: MemoryCore, name: str) -> None:
    ctx = JobInTest(core.db)
    ctx.is_stopping = True
    payload = {"project_id": PROJECT, "form_id": FORM_ID, "until_ms": 5}

    with pytest.raises(Stopping):
        await handler_of(core, name)(ctx, [claimed(NewJob(name, payload))])


def test_a_submission_of_a_ticket_is_known_by_a_rule_that_led_there() -> None:
    def led(kind: str, status: str) -> Submission:
        leads = to_json([{"route": 0, "id": None, "kind": kind, "status": status}])
        return Submission(PROJECT, "fsb_1", FORM_ID, 1, "web", None, "en", None, "[]", leads, 0)

    assert led("ticket", "done").is_ticket
    assert not led("ticket", "failed").is_ticket
    assert not led("subscriber", "done").is_ticket
