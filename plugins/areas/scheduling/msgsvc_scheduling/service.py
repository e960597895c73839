"""Scheduled and recurring messages: validation, changes and cancellation."""

from dataclasses import replace
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, InvalidValue, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_scheduling import store
from msgsvc_scheduling.models import (
    Kind,
    MessageBody,
    Record,
    ScheduleMessageBody,
    UpdateScheduledBody,
)
from msgsvc_scheduling.moments import read_moment
from msgsvc_scheduling.recurrence import Rule
from msgsvc_scheduling.recurring import CreateRecurringBody, UpdateRecurringBody
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.settings import SchedulingSettings


class Scheduling:
    """Scheduled and recurring messages of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        settings: SchedulingSettings,
        sending: Sending,
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers
        self._settings = settings
        self._sending = sending

    async def create(self, tx: Tx, project_id: str, body: ScheduleMessageBody) -> Record:
        """Raises `ValidationFailed`, what names no subscriber or template, `Conflict` at the limit."""
        send_at_ms = self._future("send_at", body.send_at, body.timezone)
        record = await self._new(tx, project_id, "scheduled", body)
        record = replace(
            record,
            record_id=new_id("sch"),
            timezone=body.timezone,
            send_at_ms=send_at_ms,
            due_at_ms=send_at_ms,
        )
        await self._add(tx, record)
        return record

    async def get(self, tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record:
        """Raises `NotFound`, for another project's as well."""
        return _found(await store.find(tx, project_id, record_id, kind), record_id)

    async def page(
        self, tx: Tx, project_id: str, kind: Kind, status: str | None, after: str | None, most: int
    ) -> list[Record]:
        """Up to `most`, newest first, after `after`."""
        return await store.list_page(tx, project_id, kind, status, after, most)

    async def update(
        self, tx: Tx, project_id: str, record_id: str, body: UpdateScheduledBody
    ) -> Record:
        """The record after the change. Raises what `create` does, `NotFound`, and `Conflict` for one
        whose time has come."""
        record = await self._lock_open(tx, project_id, record_id, "scheduled")
        changed = replace(record, message=body.changed(record.message))
        if body.send_at is not None:
            timezone = body.timezone or record.timezone
            send_at_ms = self._future("send_at", body.send_at, timezone)
            changed = replace(
                changed, timezone=timezone, send_at_ms=send_at_ms, due_at_ms=send_at_ms
            )
        elif body.timezone is not None:
            raise ValidationFailed("is for a send_at, and none is given", field="timezone")
        await self._sending.check(tx, changed)
        await store.update(tx, changed)
        return changed

    async def cancel(self, tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record:
        """The cancelled record. Raises `NotFound`, and `Conflict` for one that has finished."""
        record = await self._lock_open(tx, project_id, record_id, kind)
        cancelled = record.finished("cancelled", self._clock.now_ms())
        await store.update(tx, cancelled)
        return cancelled

    async def create_recurring(self, tx: Tx, project_id: str, body: CreateRecurringBody) -> Record:
        """Raises what `create` does."""
        now_ms = self._clock.now_ms()
        record = await self._new(tx, project_id, "recurring", body)
        rule = self.rule_of(body)
        record = replace(
            record, record_id=new_id("rec"), rule=rule, due_at_ms=_next_run(rule, now_ms)
        )
        await self._add(tx, record)
        return record

    def rule_of(self, body: CreateRecurringBody) -> Rule:
        """When it would come, if it were made now. Raises `ValidationFailed`."""
        times = self._times(body, body.timezone)
        anchor_ms = times.get("starts_at_ms") or self._clock.now_ms()
        return Rule(timezone=body.timezone, anchor_ms=anchor_ms, **times)

    async def update_recurring(
        self, tx: Tx, project_id: str, record_id: str, body: UpdateRecurringBody
    ) -> Record:
        """The record after the change. Raises what `create_recurring` does, `NotFound`, and `Conflict`
        for one that is over."""
        record = await self._lock_open(tx, project_id, record_id, "recurring")
        changed = replace(record, message=body.changed(record.message))
        if body.changes_times:
            assert record.rule is not None, "a recurring record has its rule"
            now_ms = self._clock.now_ms()
            timezone = body.timezone or record.rule.timezone
            times = self._times(body, timezone)
            if {"hours", "days", "starts_at_ms"} & set(times):
                times["anchor_ms"] = _anchor(record.rule, times, now_ms)
            rule = replace(record.rule, timezone=timezone, **times)
            next_ms = _next_run(rule, now_ms, record.last_run_at_ms)
            due_at_ms = next_ms if record.status == "active" else None
            changed = replace(changed, rule=rule, due_at_ms=due_at_ms)
        await self._sending.check(tx, changed)
        await store.update(tx, changed)
        return changed

    async def pause(self, tx: Tx, project_id: str, record_id: str) -> Record:
        """What would have come meanwhile never does. Raises `NotFound`, and `Conflict` unless active."""
        record = await self._lock_open(tx, project_id, record_id, "recurring", "active")
        paused = replace(record, status="paused", due_at_ms=None)
        await store.update(tx, paused)
        return paused

    async def resume(self, tx: Tx, project_id: str, record_id: str) -> Record:
        """Goes on with the next run from now, or has completed meanwhile. Raises `NotFound`, and `Conflict`
        unless it is paused."""
        record = await self._lock_open(tx, project_id, record_id, "recurring", "paused")
        assert record.rule is not None, "a recurring record has its rule"
        now_ms = self._clock.now_ms()
        next_ms = record.rule.next_after(now_ms, done_ms=record.last_run_at_ms)
        resumed = replace(record, status="active", due_at_ms=next_ms)
        if next_ms is None:
            resumed = record.finished("completed", now_ms)
        await store.update(tx, resumed)
        return resumed

    async def _new(self, tx: Tx, project_id: str, kind: Kind, body: MessageBody) -> Record:
        """A record without id and time. Raises what names no subscriber."""
        subscriber_id = None
        if body.audience is None:
            recipient = await self._subscribers.get_recipient(
                project_id,
                subscriber_id=body.subscriber_id,
                external_id=body.external_id,
                channel=body.channel,
                tx=tx,
            )
            subscriber_id = recipient.subscriber_id
        elif body.subscriber_id or body.external_id or body.channel:
            raise ValidationFailed(
                "can't be combined with subscriber_id, external_id, channel", field="audience"
            )
        return Record(
            project_id=project_id,
            record_id="",
            kind=kind,
            status="scheduled" if kind == "scheduled" else "active",
            message=body.to_message(),
            subscriber_id=subscriber_id,
            audience=None if body.audience is None else body.audience.to_column(),
            timezone=None,
            send_at_ms=None,
            due_at_ms=None,
            message_id=None,
            job_id=None,
            reason=None,
            error=None,
            created_at_ms=self._clock.now_ms(),
            finished_at_ms=None,
        )

    async def _add(self, tx: Tx, record: Record) -> None:
        """Raises what `Sending.check` does, and `Conflict` at the limit."""
        await self._sending.check(tx, record)
        # Count and insert under one lock, or concurrent requests would exceed the limit.
        await tx.lock(f"schedules of {record.project_id}")
        limit = self._settings.open_records
        if await store.count_open(tx, record.project_id) >= limit:
            raise Conflict(
                "a project has at most {limit} scheduled and recurring messages open", limit=limit
            )
        await store.insert(tx, record)

    async def _lock_open(
        self, tx: Tx, project_id: str, record_id: str, kind: Kind, status: str | None = None
    ) -> Record:
        record = _found(await store.lock(tx, project_id, record_id, kind), record_id)
        if record.finished_at_ms is not None or status not in {None, record.status}:
            raise Conflict("it is {status}", status=record.status)
        return record

    def _times(
        self, body: CreateRecurringBody | UpdateRecurringBody, timezone: str
    ) -> dict[str, Any]:
        """The fields of a rule that are given. Raises `ValidationFailed`."""
        given = body.model_fields_set
        times: dict[str, Any] = {}
        if body.cron is not None and body.every is not None:
            raise ValidationFailed("give one of them, not both", field="cron, every")
        if body.cron is not None:
            times = {"cron": body.cron, "hours": None, "days": None}
        elif body.every is not None:
            times = {"cron": None, "hours": body.every.hours, "days": body.every.days}
        elif isinstance(body, CreateRecurringBody):
            raise ValidationFailed("give it, or every", field="cron")
        for field, text in (("starts_at", body.starts_at), ("ends_at", body.ends_at)):
            if field in given:
                moment_ms = None if text is None else self._moment(field, text, timezone)
                times[f"{field}_ms"] = moment_ms
        if "quiet_hours" in given:
            quiet = body.quiet_hours
            times |= {"quiet_from": quiet and quiet.from_, "quiet_to": quiet and quiet.to}
        return times

    def _future(self, field: str, text: str, timezone: str | None) -> int:
        """Raises `ValidationFailed` for what is no time, and for a time that has been."""
        now_ms = self._clock.now_ms()
        moment_ms = self._moment(field, text, timezone)
        if moment_ms < now_ms:
            raise ValidationFailed("is in the past", field=field)
        return moment_ms

    def _moment(self, field: str, text: str, timezone: str | None) -> int:
        try:
            return read_moment(text, timezone, self._clock.now_ms())
        except InvalidValue as error:
            raise ValidationFailed.because(error, field=field) from None


def _anchor(rule: Rule, changes: dict[str, Any], now_ms: int) -> int:
    """What a rule is counted from when it is changed."""
    starts_at_ms: int | None = changes.get("starts_at_ms", rule.starts_at_ms)
    is_given = changes.get("starts_at_ms") is not None
    if starts_at_ms is not None and (is_given or starts_at_ms > now_ms):
        return starts_at_ms
    cron = changes.get("cron", rule.cron)
    if cron is not None and cron == rule.cron:
        # Unchanged times: a run delayed by quiet hours still takes place.
        return min(rule.anchor_ms, now_ms)
    return now_ms


def _next_run(rule: Rule, now_ms: int, done_ms: int | None = None) -> int:
    """Raises `ValidationFailed` for a rule of which nothing comes any more."""
    next_ms = rule.next_after(now_ms, done_ms=done_ms)
    if next_ms is None:
        raise ValidationFailed("nothing would ever be sent", field="ends_at, cron")
    return next_ms


def _found(record: Record | None, record_id: str) -> Record:
    if record is None:
        raise NotFound("nothing is scheduled as {record_id!r}", record_id=record_id)
    return record
