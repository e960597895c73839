"""Background work: removes what was sent in, with a form that was deleted, and, once an hour, longer ago
than it is kept; see `reminders`."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping
from msgsvc_forms.copies import SPEC as COPY_JOB
from msgsvc_forms.reminders import DIALOGUE_JOBS
from msgsvc_forms.service import EMPTY_SPAM, REMOVE, Forms
from msgsvc_forms.settings import FormsSettings

#: Submissions that are removed in one transaction.
CHUNK = 200

DAY_MS = 24 * 3600 * 1000


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Deletes old spam, and old submissions where the settings say so, with their files."""
    settings = ctx.service.section(FormsSettings)
    for spam, days in ((True, settings.spam_days), (False, settings.submission_days)):
        if days is not None:
            await _purge(ctx, ctx.service.clock.now_ms() - days * DAY_MS, spam=spam)
    async with ctx.completing(*jobs):
        pass


async def _purge(ctx: JobContext, before_ms: int, *, spam: bool) -> None:
    forms = ctx.service.get(Forms)
    found = CHUNK
    while found == CHUNK:
        if ctx.stopping:
            raise Stopping
        async with ctx.service.db.transaction() as tx:
            found = await forms.purge(tx, before_ms, spam=spam, limit=CHUNK)


async def remove(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Removes what was sent in with forms that were deleted, and then what is left of them."""
    forms = ctx.service.get(Forms)
    for job in jobs:
        form = job.payload["project_id"], job.payload["form_id"]
        is_done = False
        while not is_done:
            if ctx.stopping:
                raise Stopping
            async with ctx.holding(job) as tx:
                is_done = await forms.remove_deleted(tx, *form, CHUNK)


async def empty_spam(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Removes spam in steps: other writers go between them, be it a hundred thousand."""
    forms = ctx.service.get(Forms)
    for job in jobs:
        asked = job.payload["project_id"], job.payload["form_id"], job.payload["until_ms"]
        is_done = False
        while not is_done:
            if ctx.stopping:
                raise Stopping
            async with ctx.holding(job) as tx:
                is_done = await forms.remove_spam(tx, *asked, CHUNK)


FORM_JOBS = (
    JobSpec(REMOVE, remove),
    JobSpec(EMPTY_SPAM, empty_spam),
    JobSpec("forms.purge", purge, every_s=3600),
    COPY_JOB,
    *DIALOGUE_JOBS,
)
