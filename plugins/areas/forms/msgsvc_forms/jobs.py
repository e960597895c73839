"""Background jobs: delete submissions with their form, and, once an hour, those that have expired; see
also `reminders`."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_forms.service import EMPTY_SPAM, REMOVE
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submissions import Submissions

#: Submissions that are removed in one transaction.
CHUNK = 200


class Removal:
    """The jobs that delete submissions, in steps."""

    def __init__(self, *, clock: Clock, submissions: Submissions, settings: FormsSettings) -> None:
        self._clock = clock
        self._submissions = submissions
        self._settings = settings

    @property
    def specs(self) -> Sequence[JobSpec]:
        return (
            JobSpec(REMOVE, self.remove),
            JobSpec(EMPTY_SPAM, self.empty_spam),
            JobSpec("forms.purge", self.purge, every_s=3600),
        )

    async def purge(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Deletes old spam, and old submissions where the settings say so, with their files."""
        settings = self._settings
        for spam, days in ((True, settings.spam_days), (False, settings.submission_days)):
            if days is not None:
                await self._purge(ctx, self._clock.now_ms() - days * DAY_MS, spam=spam)
        async with ctx.completing(*jobs):
            pass

    async def _purge(self, ctx: JobContext, before_ms: int, *, spam: bool) -> None:
        found = CHUNK
        while found == CHUNK:
            if ctx.stopping:
                raise Stopping
            async with ctx.transaction() as tx:
                found = await self._submissions.purge(tx, before_ms, spam=spam, limit=CHUNK)

    async def remove(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Removes what was sent in with forms that were deleted, and then what is left of them."""
        for job in jobs:
            form = job.payload["project_id"], job.payload["form_id"]
            is_done = False
            while not is_done:
                if ctx.stopping:
                    raise Stopping
                async with ctx.holding(job) as tx:
                    is_done = await self._submissions.remove_deleted(tx, *form, CHUNK)

    async def empty_spam(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Removes spam in steps: other writers go between them, be it a hundred thousand."""
        for job in jobs:
            which = job.payload["project_id"], job.payload["form_id"], job.payload["until_ms"]
            is_done = False
            while not is_done:
                if ctx.stopping:
                    raise Stopping
                async with ctx.holding(job) as tx:
                    is_done = await self._submissions.remove_spam(tx, *which, CHUNK)
