"""Forms: validation, versions and deletion."""

from dataclasses import replace

from msgsvc_core.api.validation import validate
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.projects.service import Projects
from msgsvc_forms import store
from msgsvc_forms.definition import Definition
from msgsvc_forms.models import CreateFormBody, Form, UpdateFormBody
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submission_router import SubmissionRouter

#: The job that removes what was sent in with a form that was deleted.
REMOVE = "forms.remove"

#: The job that removes spam that an operator emptied.
EMPTY_SPAM = "forms.empty_spam"

#: Characters that distinguish forms with the same slug of different projects.
START_TOKEN = 8


class Forms:
    """Forms of all projects; for submissions see `Submissions`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        projects: Projects,
        router: SubmissionRouter,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._projects = projects
        self._router = router
        self._settings = settings

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
            raise no_form(form_id)
        payload = {"project_id": project_id, "form_id": form_id}
        await self._jobs.enqueue(tx, NewJob(REMOVE, payload, project_id=project_id))

    async def empty_spam(self, tx: Tx, project_id: str, form_id: str) -> None:
        """Removes the spam that there is now, in the background, however much it is. Raises `NotFound`."""
        await self.get(tx, project_id, form_id)
        payload = {
            "project_id": project_id,
            "form_id": form_id,
            "until_ms": self._clock.now_ms(),
        }
        await self._jobs.enqueue(tx, NewJob(EMPTY_SPAM, payload, project_id=project_id))

    async def all_keys(self, tx: Tx, form: Form) -> list[str]:
        """The keys of all questions that were ever asked, those of the newest version first."""
        versions = await store.list_versions(tx, form.project_id, form.form_id)
        asked = (field.key for one in versions for field in one.definition.fields)
        return list(dict.fromkeys(asked))

    async def _check(self, tx: Tx, project_id: str, definition: Definition) -> None:
        limit = self._settings.rules_per_form
        if len(definition.rules) > limit:
            raise ValidationFailed("at most {limit}", field="rules", limit=limit)
        await self._router.check(tx, project_id, definition)

    async def _new_start(self, tx: Tx, slug: str) -> str:
        """What links carry: the slug, unless it is taken, as links name no project."""
        await tx.lock(f"forms start {slug}")
        if await store.find_started(tx, slug) is None:
            return slug
        return f"{slug}_{new_token()[-START_TOKEN:]}"


def _found(form: Form | None, form_id: str) -> Form:
    if form is None:
        raise no_form(form_id)
    return form


def no_form(form_id: str) -> NotFound:
    """The error for an unknown form."""
    return NotFound("there is no form {form_id!r}", form_id=form_id)
