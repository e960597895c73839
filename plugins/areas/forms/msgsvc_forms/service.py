"""The rules of forms: what may be kept, and what becomes of what is sent in, once."""

from dataclasses import asdict, replace
from itertools import chain

from msgsvc_core.api.validation import validate
from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.files.service import Files
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.kernel.json import to_json
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_forms import copy_store, store
from msgsvc_forms.answers import in_order
from msgsvc_forms.copies import Copies
from msgsvc_forms.definition import Definition
from msgsvc_forms.events import SUBMITTED
from msgsvc_forms.models import (
    CreateFormBody,
    Form,
    NewSubmission,
    Submission,
    SubmissionFilters,
    UpdateFormBody,
)
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submission_router import SubmissionRouter
from msgsvc_forms.summary import files_of

#: The paid operation (decision 0075: form intake).
OPERATION = "form.submission"

#: The job that removes what was sent in with a form that was deleted.
REMOVE = "forms.remove"

#: The job that removes spam that an operator emptied.
EMPTY_SPAM = "forms.empty_spam"

#: Characters that distinguish forms with the same slug of different projects.
START_TOKEN = 8


class Forms:
    """Forms of all projects, and what is sent in."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        billing: BillingGate,
        projects: Projects,
        subscribers: Subscribers,
        files: Files,
        router: SubmissionRouter,
        copies: Copies,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._billing = billing
        self._projects = projects
        self._subscribers = subscribers
        self._files = files
        self._router = router
        self._copies = copies
        self._settings = settings

    # ---- definitions ----------------------------------------------------------------------------

    async def create(self, tx: Tx, project_id: str, body: CreateFormBody) -> Form:
        """Raises `ValidationFailed`, `SubscriberNotFound`, and `Conflict` for a slug that the project
        has, or beyond the limit."""
        definition = body.to_definition()
        await self._check(tx, project_id, definition)
        await tx.lock(f"forms of {project_id}")
        limit = self._settings.forms_per_project
        if await store.count(tx, project_id) >= limit:
            raise Conflict("a project has at most {limit} forms", limit=limit)
        if await store.has_slug(tx, project_id, body.slug):
            raise Conflict("this project has a form {slug!r}", field="slug", slug=body.slug)
        now_ms = self._clock.now_ms()
        form = Form(
            project_id=project_id,
            form_id=new_id("frm"),
            slug=body.slug,
            start=await self._new_start(tx, body.slug),
            version=1,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            content=definition.to_column(),
        )
        await store.insert(tx, form)
        return form

    async def get(self, tx: Tx, project_id: str, form_id: str, *, lock: bool = False) -> Form:
        """The newest version; with `lock`, nobody else changes the form until the transaction ends.
        Raises `NotFound`, for another project's form as well."""
        return _found(await store.find(tx, project_id, form_id, lock=lock), form_id)

    async def find_version(
        self, tx: Tx, project_id: str, form_id: str, version: int
    ) -> Form | None:
        """The version that a conversation or page was started with; None if it was deleted."""
        return await store.find_version(tx, project_id, form_id, version)

    async def find_started(self, tx: Tx, start: str) -> Form | None:
        """The form of the link `form_<start>`, of any project."""
        return await store.find_started(tx, start)

    async def get_public(self, tx: Tx, form_id: str) -> Form:
        """The form of a public address. Raises `NotFound`, also where its project is disabled."""
        form = _found(await store.find_of_any_project(tx, form_id), form_id)
        project = await self._projects.get(tx, form.project_id)
        return _found(form if project.status == "active" else None, form_id)

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Form]:
        """Up to `limit`, newest first, from `after` on."""
        return await store.list_page(tx, project_id, after, limit)

    async def update(self, tx: Tx, project_id: str, form_id: str, body: UpdateFormBody) -> Form:
        """The form after the change, which is a new version; conversations under way finish theirs.

        Raises `NotFound`, and what `create` does.
        """
        form = _found(await store.find(tx, project_id, form_id, lock=True), form_id)
        definition = validate(Definition, body.changed(form.definition), languages=None)
        await self._check(tx, project_id, definition)
        content = definition.to_column()
        if content == form.content:
            return form
        now_ms = self._clock.now_ms()
        changed = replace(form, version=form.version + 1, updated_at_ms=now_ms, content=content)
        await store.add_version(tx, changed)
        await store.set_version(tx, changed)
        return changed

    async def delete(self, tx: Tx, project_id: str, form_id: str) -> None:
        """Removes a form, and ends what is under way; what was sent in goes by a job, a part at a time.
        Raises `NotFound`."""
        await store.lock(tx, project_id, form_id)
        if not await store.mark_deleted(tx, project_id, form_id, self._clock.now_ms()):
            raise _no_form(form_id)
        payload = {"project_id": project_id, "form_id": form_id}
        await self._jobs.enqueue(tx, NewJob(REMOVE, payload, project_id=project_id))

    async def remove_deleted(self, tx: Tx, project_id: str, form_id: str, limit: int) -> bool:
        """Removes up to `limit` submissions of a form that was deleted. True if none is left, nor
        anything else of the form."""
        rows = await store.list_any(tx, project_id, form_id, limit)
        await self._remove(tx, rows)
        if len(rows) == limit:
            return False
        await store.delete_marked(tx, project_id, form_id)
        return True

    async def empty_spam(self, tx: Tx, project_id: str, form_id: str) -> None:
        """Removes the spam that there is now, in the background, however much it is. Raises `NotFound`."""
        await self.get(tx, project_id, form_id)
        payload = {
            "project_id": project_id,
            "form_id": form_id,
            "until_ms": self._clock.now_ms(),
        }
        await self._jobs.enqueue(tx, NewJob(EMPTY_SPAM, payload, project_id=project_id))

    async def remove_spam(
        self, tx: Tx, project_id: str, form_id: str, until_ms: int, limit: int
    ) -> bool:
        """Removes up to `limit` submissions that were marked as spam until then. True if none is left."""
        rows = await store.list_spam(tx, project_id, form_id, until_ms, limit)
        await self._remove(tx, rows)
        return len(rows) < limit

    # ---- submissions ----------------------------------------------------------------------------

    async def submit(self, tx: Tx, new: NewSubmission) -> Submission:
        """Stores a submission, routes it and emits its event, all in `tx`, once.

        A duplicate `once_key` returns the existing submission. Spam is only stored. Raises
        `BillingBlocked`, and `NotFound` for a form that was deleted meanwhile.
        """
        form, subscriber = new.form, new.subscriber
        if not await store.lock_shared(tx, form.project_id, form.form_id):
            raise _no_form(form.form_id)
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
        leads = await self._router.route(tx, new, submission)
        submission = replace(submission, leads=to_json([asdict(lead) for lead in leads]))
        if leads:
            await store.set_leads(tx, project_id, submission_id, submission.leads)
            await copy_store.insert(tx, submission, leads)
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

    async def submissions(
        self,
        tx: Tx,
        project_id: str,
        form_id: str,
        filters: SubmissionFilters,
        after: str | None,
        limit: int,
    ) -> list[Submission]:
        """Up to `limit`, newest first, from `after` on. Raises `NotFound` for the form."""
        await self.get(tx, project_id, form_id)
        return await store.list_submissions(tx, project_id, form_id, filters, after, limit)

    async def all_keys(self, tx: Tx, form: Form) -> list[str]:
        """The keys of all questions that were ever asked, those of the newest version first."""
        versions = await store.list_versions(tx, form.project_id, form.form_id)
        asked = (field.key for one in versions for field in one.definition.fields)
        return list(dict.fromkeys(asked))

    async def get_submission(
        self, tx: Tx, project_id: str, form_id: str, submission_id: str
    ) -> Submission:
        """Raises `NotFound`, for another project's or form's as well."""
        await self.get(tx, project_id, form_id)
        row = await store.find_submission(tx, project_id, form_id, submission_id)
        if row is None:
            raise NotFound("there is no submission {submission_id!r}", submission_id=submission_id)
        return row

    async def delete_submission(
        self, tx: Tx, project_id: str, form_id: str, submission_id: str
    ) -> None:
        """Removes a submission with its files, and its answers from what copied them, a ticket too.
        Raises `NotFound`."""
        row = await self.get_submission(tx, project_id, form_id, submission_id)
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
        row = await self.get_submission(tx, project_id, form_id, submission_id)
        if not await store.clear_spam(tx, project_id, submission_id):
            raise Conflict("the submission is not marked as spam")
        form = await store.find_version(tx, project_id, form_id, row.version)
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

    # ---- what both need -------------------------------------------------------------------------

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

    async def _check(self, tx: Tx, project_id: str, definition: Definition) -> None:
        limit = self._settings.routes_per_form
        if len(definition.routes) > limit:
            raise ValidationFailed("at most {limit}", field="routes", limit=limit)
        await self._router.check(tx, project_id, definition)

    async def _new_start(self, tx: Tx, slug: str) -> str:
        """What links carry: the slug, unless it is taken, as links name no project."""
        await tx.lock(f"forms start {slug}")
        if await store.find_started(tx, slug) is None:
            return slug
        return f"{slug}_{new_token()[-START_TOKEN:]}"


def _found(form: Form | None, form_id: str) -> Form:
    if form is None:
        raise _no_form(form_id)
    return form


def _no_form(form_id: str) -> NotFound:
    return NotFound("there is no form {form_id!r}", form_id=form_id)
