"""Drip campaigns: validation, enrolling and pausing."""

from dataclasses import replace

from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_drip import count_store, enrollment_store, store
from msgsvc_drip.checks import DefinitionChecks
from msgsvc_drip.count_store import Counts
from msgsvc_drip.definition import DripDefinition
from msgsvc_drip.models import (
    CreateDripBody,
    Drip,
    DripStatus,
    EnrollInDripBody,
    Enrollment,
    EnrollmentQuery,
    Trigger,
    UpdateDripBody,
)
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.triggers import enroll, new_enrollment

#: The job that removes those who were in a chain that was deleted.
REMOVE = "drip.remove"

#: Limit for counting the enrollments in one place; beyond it the number is a lower bound.
MOST_COUNTED = 10_000


class Drips:
    """Campaigns of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        subscribers: Subscribers,
        checks: DefinitionChecks,
        settings: DripSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._subscribers = subscribers
        self._checks = checks
        self._settings = settings

    async def create(self, tx: Tx, project_id: str, body: CreateDripBody) -> Drip:
        """Raises `ValidationFailed`, `NotFound` for a template, and `Conflict` at the limit."""
        course = body.to_definition()
        await self._check_definition(tx, project_id, course)
        await self._check_trigger(tx, project_id, body.trigger)
        await tx.lock(f"drips of {project_id}")
        limit = self._settings.chains_per_project
        if await store.count(tx, project_id) >= limit:
            raise Conflict("a project has at most {limit} drip campaigns", limit=limit)
        now_ms = self._clock.now_ms()
        chain = Drip(
            project_id=project_id,
            drip_id=new_id("drp"),
            name=body.name,
            status=body.status,
            reentry=body.reentry,
            trigger_on=body.trigger.on,
            trigger_value=body.trigger.value or "",
            version=1,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            content=course.to_column(),
        )
        await store.insert(tx, chain)
        return chain

    async def get(self, tx: Tx, project_id: str, drip_id: str, *, lock: bool = False) -> Drip:
        """Raises `NotFound`, for another project's chain as well. With `lock`, nobody else changes it
        until the transaction ends."""
        chain = await store.find(tx, project_id, drip_id, lock=lock)
        if chain is None:
            raise NotFound("there is no drip campaign {drip_id!r}", drip_id=drip_id)
        return chain

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Drip]:
        """Up to `limit`, newest first, from `after` on."""
        return await store.list_page(tx, project_id, after, limit)

    async def counts(self, tx: Tx, drip: Drip) -> Counts:
        """How many are at each step, and how many have ended how."""
        return await count_store.count(tx, drip, MOST_COUNTED)

    async def update(
        self,
        tx: Tx,
        project_id: str,
        drip_id: str,
        body: UpdateDripBody,
        *,
        version: int | None = None,
    ) -> Drip:
        """The campaign after the change; new content becomes a new version, for later enrollments.

        Raises `NotFound` and `ValidationFailed`; `Conflict` if `version` is outdated.
        """
        chain = await self.get(tx, project_id, drip_id, lock=True)
        if version not in {None, chain.version}:
            raise Conflict("the campaign was changed meanwhile: review it and try again")
        course = body.changed(chain.definition)
        content = course.to_column()
        is_new = content != chain.content
        # A campaign whose template was deleted can still be renamed.
        if is_new:
            await self._check_definition(tx, project_id, course)
        await self._check_trigger(tx, project_id, body.trigger)
        trigger = body.trigger or Trigger(on=chain.trigger_on, value=chain.trigger_value or None)
        changed = replace(
            chain,
            name=chain.name if body.name is None else body.name,
            reentry=chain.reentry if body.reentry is None else body.reentry,
            trigger_on=trigger.on,
            trigger_value=trigger.value or "",
            version=chain.version + is_new,
            updated_at_ms=self._clock.now_ms(),
            content=content,
        )
        if is_new:
            await store.add_version(tx, changed)
        await store.update(tx, changed)
        return changed

    async def delete(self, tx: Tx, project_id: str, drip_id: str) -> None:
        """Queued messages are still sent; enrollments are deleted by a job. Raises `NotFound`."""
        if not await store.mark_deleted(tx, project_id, drip_id):
            raise NotFound("there is no drip campaign {drip_id!r}", drip_id=drip_id)
        payload = {"project_id": project_id, "drip_id": drip_id}
        await self._jobs.enqueue(tx, NewJob(REMOVE, payload, project_id=project_id))

    async def remove_deleted(self, tx: Tx, project_id: str, drip_id: str, limit: int) -> bool:
        """Deletes up to `limit` enrollments of a deleted campaign. True if nothing of it is left."""
        if await enrollment_store.delete_some(tx, project_id, drip_id, limit) == limit:
            return False
        await store.delete_marked(tx, project_id, drip_id)
        return True

    async def set_status(self, tx: Tx, project_id: str, drip_id: str, status: DripStatus) -> Drip:
        """Pauses a chain, or has it go on; nothing happens to one that is so already.

        What was due in so many hours at the pause is due in so many when it goes on. Raises `NotFound`.
        """
        change = store.pause if status == "paused" else store.resume
        await change(tx, project_id, drip_id, self._clock.now_ms())
        return await self.get(tx, project_id, drip_id)

    async def enroll(
        self, tx: Tx, project_id: str, drip_id: str, body: EnrollInDripBody
    ) -> Enrollment:
        """Enrolls a subscriber, whatever the trigger.

        Raises `NotFound`, what `subscribers.get_recipient` raises, and `Conflict` with the reason.
        """
        chain = await self.get(tx, project_id, drip_id)
        recipient = await self._subscribers.get_recipient(
            project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
            tx=tx,
        )
        who, now_ms = recipient.subscriber_id, self._clock.now_ms()
        new = new_enrollment(project_id, drip_id, chain.version, chain.content, who, now_ms)
        begun = await enroll(tx, self._subscribers, [new], now_ms)
        if begun:
            return await self.get_enrollment(tx, project_id, new.enrollment_id)
        if chain.status == "paused":
            raise Conflict(
                "the campaign {drip_id} is paused and accepts no enrollments", drip_id=drip_id
            )
        if recipient.status != "active":
            raise Conflict("{name} is not subscribed", name=who)
        last = await enrollment_store.find_last(tx, project_id, drip_id, who)
        if last is not None and last.finished_at_ms is None:
            raise Conflict(
                "{name} is already enrolled: {enrollment_id}",
                name=who,
                enrollment_id=last.enrollment_id,
            )
        raise Conflict(
            "{name} was enrolled before, and the campaign's reentry is {reentry}",
            name=who,
            reentry=chain.reentry,
        )

    async def enrollments(
        self, tx: Tx, project_id: str, drip_id: str, query: EnrollmentQuery
    ) -> list[Enrollment]:
        """Up to one more than `query.limit`, newest first. Raises `NotFound`."""
        await self.get(tx, project_id, drip_id)
        return await enrollment_store.list_page(tx, project_id, drip_id, query)

    async def get_enrollment(self, tx: Tx, project_id: str, enrollment_id: str) -> Enrollment:
        """Raises `NotFound`, for another project's as well."""
        found = await enrollment_store.find(tx, project_id, enrollment_id)
        if found is None:
            raise NotFound("there is no enrollment {enrollment_id!r}", enrollment_id=enrollment_id)
        return found

    async def pause(self, tx: Tx, project_id: str, enrollment_id: str) -> Enrollment:
        """Nothing happens to one that is paused. Raises `NotFound`, and `Conflict` for one that ended."""
        now_ms = self._clock.now_ms()
        await enrollment_store.pause(tx, project_id, enrollment_id, now_ms)
        return await self._open(tx, project_id, enrollment_id)

    async def resume(self, tx: Tx, project_id: str, enrollment_id: str) -> Enrollment:
        """Nothing happens to one that is active. Raises as `pause`."""
        now_ms = self._clock.now_ms()
        await enrollment_store.resume(tx, project_id, enrollment_id, now_ms)
        return await self._open(tx, project_id, enrollment_id)

    async def cancel(self, tx: Tx, project_id: str, enrollment_id: str) -> Enrollment:
        """Cancels an enrollment. Raises as `pause`."""
        now_ms = self._clock.now_ms()
        if not await enrollment_store.cancel(tx, project_id, enrollment_id, now_ms):
            await self._open(tx, project_id, enrollment_id)
        return await self.get_enrollment(tx, project_id, enrollment_id)

    async def _open(self, tx: Tx, project_id: str, enrollment_id: str) -> Enrollment:
        found = await self.get_enrollment(tx, project_id, enrollment_id)
        if found.finished_at_ms is not None:
            raise Conflict(
                "{enrollment_id} has ended: it is {status}",
                enrollment_id=enrollment_id,
                status=found.status,
            )
        return found

    async def _check_definition(self, tx: Tx, project_id: str, definition: DripDefinition) -> None:
        if len(definition.steps) > self._settings.steps_per_chain:
            raise ValidationFailed(
                "at most {limit}", field="steps", limit=self._settings.steps_per_chain
            )
        await self._checks.check_definition(tx, project_id, definition)

    async def _check_trigger(self, tx: Tx, project_id: str, trigger: Trigger | None) -> None:
        if trigger is not None and trigger.on == "permission":
            try:
                await self._checks.check_permission(tx, project_id, trigger.value or "")
            except ValidationFailed as error:
                raise error.at("trigger.value") from None
