"""Submissions: stored, routed, reported and charged once, and deleted with their copies."""

from dataclasses import replace
from itertools import chain

from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_forms import copy_store, store
from msgsvc_forms.answers import in_order
from msgsvc_forms.copies import Copies
from msgsvc_forms.events import SUBMITTED
from msgsvc_forms.models import Form, NewSubmission, Submission, SubmissionFilters
from msgsvc_forms.service import Forms, no_form
from msgsvc_forms.submission_router import SubmissionRouter
from msgsvc_forms.summary import files_of

#: The paid operation (decision 0075: form intake).
OPERATION = "form.submission"


class Submissions:
    """Submissions of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        events: Events,
        billing: BillingGate,
        subscribers: Subscribers,
        files: Files,
        forms: Forms,
        router: SubmissionRouter,
        copies: Copies,
    ) -> None:
        self._clock = clock
        self._events = events
        self._billing = billing
        self._subscribers = subscribers
        self._files = files
        self._forms = forms
        self._router = router
        self._copies = copies

    async def submit(self, tx: Tx, new: NewSubmission) -> Submission:
        """Stores a submission, routes it and emits its event, all in `tx`, once.

        A duplicate `once_key` returns the existing submission. Spam is only stored. Raises
        `BillingBlocked`, and `NotFound` for a form that was deleted meanwhile.
        """
        form, subscriber = new.form, new.subscriber
        if not await store.lock_shared(tx, form.project_id, form.form_id):
            raise no_form(form.form_id)
        submission = Submission(
            project_id=form.project_id,
            submission_id=new_id("fsb"),
            form_id=form.form_id,
            version=form.version,
            source=new.source,
            subscriber_id=None if subscriber is None else subscriber.subscriber_id,
            lang=new.lang,
            spam=new.spam,
            answers=to_json(in_order(form.definition.fields, new.answers)),
            leads="[]",
            created_at_ms=self._clock.now_ms(),
        )
        if not await store.insert_submission(tx, submission, new.once_key, new.file_bytes):
            assert new.once_key is not None, "nothing else is unique"
            there = await store.find_by_once_key(tx, form.project_id, form.form_id, new.once_key)
            assert there is not None, "it was in the way of this one"
            return there
        await self._files.retain(tx, form.project_id, files_of(submission.ordered))
        if new.spam is not None:
            return submission
        return await self._store(tx, new, submission)

    async def _store(self, tx: Tx, new: NewSubmission, submission: Submission) -> Submission:
        project_id, submission_id = submission.project_id, submission.submission_id
        results = await self._router.route(tx, new, submission)
        submission = replace(submission, leads=to_json([one.to_column() for one in results]))
        if results:
            await store.set_leads(tx, project_id, submission_id, submission.leads)
            await copy_store.insert(tx, submission, results)
        await self._events.emit(
            tx,
            project_id,
            SUBMITTED,
            {
                "form_id": submission.form_id,
                "form_version": submission.version,
                "submission_id": submission_id,
                "answers": submission.ordered,
                "source": submission.source,
            },
            subscriber=new.subscriber,
        )
        # Last, as in sign-ins: charging locks the account, and must not then wait for a transaction that
        # holds a subscriber or ticket and is about to charge.
        await self._billing.charge(tx, Charge(project_id, OPERATION, submission_id))
        return submission

    async def find_by_once_key(self, tx: Tx, form: Form, once_key: str) -> Submission | None:
        """The submission that was made with this key."""
        return await store.find_by_once_key(tx, form.project_id, form.form_id, once_key)

    async def full_until(
        self, tx: Tx, project_id: str, since_ms: int, *, spam: bool, room: int
    ) -> int | None:
        """Unix milliseconds from which on files of the web leave no `room` of bytes; None if they do."""
        return await store.full_until(tx, project_id, since_ms, spam=spam, room=room)

    async def page(
        self,
        tx: Tx,
        project_id: str,
        form_id: str,
        filters: SubmissionFilters,
        after: str | None,
        limit: int,
        *,
        ascending: bool = False,
    ) -> list[Submission]:
        """Up to `limit`, newest or oldest first, from `after` on. Raises `NotFound` for the form."""
        await self._forms.get(tx, project_id, form_id)
        return await store.list_submissions(
            tx, project_id, form_id, filters, after, limit, ascending=ascending
        )

    async def get(self, tx: Tx, project_id: str, form_id: str, submission_id: str) -> Submission:
        """Raises `NotFound`, for another project's or form's as well."""
        await self._forms.get(tx, project_id, form_id)
        row = await store.find_submission(tx, project_id, form_id, submission_id)
        if row is None:
            raise NotFound("there is no submission {submission_id!r}", submission_id=submission_id)
        return row

    async def delete(self, tx: Tx, project_id: str, form_id: str, submission_id: str) -> None:
        """Removes a submission with its files, and its answers from what copied them, a ticket too.
        Raises `NotFound`."""
        row = await self.get(tx, project_id, form_id, submission_id)
        await self._remove(tx, [row], tickets=True)

    async def count(self, tx: Tx, project_id: str, form_id: str, *, spam: bool, limit: int) -> int:
        """Number of submissions of a form, counted up to `limit`."""
        return await store.count_submissions(tx, project_id, form_id, spam=spam, limit=limit)

    async def clear_spam(
        self, tx: Tx, project_id: str, form_id: str, submission_id: str
    ) -> Submission:
        """Accepts a submission classified as spam: routed, reported and charged, once.

        Raises `NotFound`, `Conflict` if it is not spam, `BillingBlocked`.
        """
        row = await self.get(tx, project_id, form_id, submission_id)
        if not await store.clear_spam(tx, project_id, submission_id):
            raise Conflict("the submission is not marked as spam")
        form = await self._forms.find_version(tx, project_id, form_id, row.version)
        assert form is not None, "versions stay as long as their form"
        key = (project_id, row.subscriber_id or "")
        new = NewSubmission(
            form,
            row.source,
            {answer["key"]: answer["value"] for answer in row.ordered},
            row.lang,
            subscriber=(await self._subscribers.get_many(tx, [key])).get(key),
        )
        return await self._store(tx, new, replace(row, spam=None))

    async def purge(self, tx: Tx, before_ms: int, *, spam: bool, limit: int) -> int:
        """Removes up to `limit` submissions that are older; returns how many it found."""
        old = await store.list_old(tx, before_ms, spam=spam, limit=limit)
        await self._remove(tx, old)
        return len(old)

    async def remove_deleted(self, tx: Tx, project_id: str, form_id: str, limit: int) -> bool:
        """Removes up to `limit` submissions of a form that was deleted. True if none is left, nor
        anything else of the form."""
        rows = await store.list_any(tx, project_id, form_id, limit)
        await self._remove(tx, rows)
        if len(rows) == limit:
            return False
        await store.delete_marked(tx, project_id, form_id)
        return True

    async def remove_spam(
        self, tx: Tx, project_id: str, form_id: str, until_ms: int, limit: int
    ) -> bool:
        """Removes up to `limit` submissions that were marked as spam until then. True if none is left."""
        rows = await store.list_spam(tx, project_id, form_id, until_ms, limit)
        await self._remove(tx, rows)
        return len(rows) < limit

    async def _remove(self, tx: Tx, rows: list[Submission], *, tickets: bool = False) -> None:
        """Removes submissions with their files, and has their copies blanked, those in tickets if that
        is said: else people still answer them, and they go by the helpdesk's own age."""
        of_projects: dict[str, list[Submission]] = {}
        for row in rows:
            of_projects.setdefault(row.project_id, []).append(row)
        for project_id, its_rows in of_projects.items():
            # Those of a ticket go with the ticket: people still answer it.
            files = [files_of(row.ordered) for row in its_rows if not row.is_ticket]
            await self._files.remove(tx, project_id, list(chain.from_iterable(files)))
            ids = [row.submission_id for row in its_rows]
            await store.delete_submissions(tx, project_id, ids)
            await self._copies.erase(tx, project_id, ids, tickets=tickets)
