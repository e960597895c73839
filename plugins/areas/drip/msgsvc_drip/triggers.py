"""Enrolls subscribers in drip campaigns, and stops enrollments, on events and new tags."""

from collections.abc import Iterator, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_drip import enrollment_store, store
from msgsvc_drip.definition import read_definition
from msgsvc_drip.enrollment_store import NewEnrollment
from msgsvc_drip.schedule import due_after

LEFT = "subscription.deleted"


@value_object
class Happening:
    """An event or tag of a subscriber, as (kind, value) of triggers and stop conditions."""

    project_id: str
    subscriber_id: str
    meanings: tuple[tuple[str, str], ...]


class Triggers:
    """Enrolls subscribers in campaigns of all projects, and stops enrollments."""

    def __init__(self, *, clock: Clock, subscribers: Subscribers) -> None:
        self._clock = clock
        self._subscribers = subscribers

    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        """Leads people into chains and out of them, in the transaction of what happened."""
        left = [event for event in events if event.name == LEFT]
        await enrollment_store.stop(
            tx,
            [(event.project_id, event.data["subscriber_id"], None, None, LEFT) for event in left],
            self._clock.now_ms(),
        )
        await self._happened(
            tx,
            [
                Happening(event.project_id, event.data["subscriber_id"], tuple(_meanings(event)))
                for event in events
                # Our own events are no triggers, and come by the hundreds.
                if "subscriber_id" in event.data and not event.name.startswith("drip.")
            ],
        )

    async def on_tags_added(
        self, tx: Tx, project_id: str, subscriber_id: str, tags: Sequence[str]
    ) -> None:
        """Enrolls a subscriber in the campaigns triggered by new tags."""
        meanings = tuple(("tag", tag) for tag in tags)
        await self._happened(tx, [Happening(project_id, subscriber_id, meanings)])

    async def _happened(self, tx: Tx, happenings: Sequence[Happening]) -> None:
        keys = {(one.project_id, *each) for one in happenings for each in one.meanings}
        if not keys:
            return
        found: dict[tuple[str, str, str], list[store.Subscription]] = {}
        for meaning in await store.find_matching(tx, sorted(keys)):
            key = (meaning.project_id, meaning.kind, meaning.value)
            found.setdefault(key, []).append(meaning)
        if not found:
            return
        meant = [
            (one.subscriber_id, meaning)
            for one in happenings
            for each in one.meanings
            for meaning in found.get((one.project_id, *each), ())
        ]
        now_ms = self._clock.now_ms()
        # Stops first: one event may stop an enrollment and start a new one.
        await enrollment_store.stop(
            tx,
            [
                (of.project_id, subscriber_id, of.drip_id, of.version, of.value)
                for subscriber_id, of in meant
                if of.kind == "stop"
            ],
            now_ms,
        )
        beginnings = [
            new_enrollment(of.project_id, of.drip_id, of.version, of.content, subscriber_id, now_ms)
            for subscriber_id, of in meant
            if of.content is not None
        ]
        await enroll(tx, self._subscribers, beginnings, now_ms)


def _meanings(event: Event) -> Iterator[tuple[str, str]]:
    names = [event.name]
    if event.name == "event.tracked":
        names.append(event.data["name"])
    for name in dict.fromkeys(names):
        yield "event", name
        yield "stop", name
    if event.name == "subscription.created":
        yield "subscription", ""
        yield "subscription", event.data["source"]
    if event.name == "subscription.permission_changed" and event.data["granted"]:
        yield "permission", event.data["permission"]


async def enroll(
    tx: Tx, subscribers: Subscribers, enrollments: Sequence[NewEnrollment], now_ms: int
) -> set[str]:
    """Enrolls active subscribers; returns the ids of the new enrollments."""
    people = await subscribers.lock_existing(
        tx, [(one.project_id, one.subscriber_id) for one in enrollments]
    )
    return await enrollment_store.insert(
        tx,
        [one for one in enrollments if people.get((one.project_id, one.subscriber_id)) == "active"],
        now_ms,
    )


def new_enrollment(
    project_id: str, drip_id: str, version: int, content: str, subscriber_id: str, now_ms: int
) -> NewEnrollment:
    """A new enrollment in a version of a campaign."""
    course = read_definition(content)
    due_at_ms = due_after(course, course.steps[0], now_ms)
    return NewEnrollment(project_id, new_id("enr"), drip_id, version, subscriber_id, due_at_ms)
