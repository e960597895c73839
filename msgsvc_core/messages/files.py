"""Checks the files of messages before they are sent: nothing is marked `sending` before its file is valid.

An invalid file fails its message before any platform is called. An unavailable host is retried like a
platform. A slow host delays only its own chats: the others of the batch are sent first, and the message waits
briefly before it is rescheduled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.channels.outbound.send_attempt import Outcome
from msgsvc_core.content.outgoing import Media
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, Reschedule
from msgsvc_core.messages import store

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check, MediaChecks
    from msgsvc_core.messages.deliveries import Delivery


class MessageFiles:
    """Access to the checks of messages' files.

    `checks` is called only if a message has a file, and with `enabled`: it loads megabytes that most services
    don't need.
    """

    def __init__(self, *, enabled: bool, checks: "Callable[[], MediaChecks]") -> None:
        self._enabled = enabled
        self._checks = checks

    async def check_of(self, media: Media | None) -> "Check | None":
        """The check of a file, after a short wait; None if it needs none."""
        if media is None:
            return None
        found = await self.check_all([media])
        return found[0] if found else None

    async def check_all(self, files: Sequence[Media]) -> "Sequence[Check]":
        """The checks of several files; empty if none is needed."""
        if not files or not self._enabled:
            return []
        checks = self._checks()
        found = checks.get(files)
        await checks.wait(found)
        return found

    async def check_due(self, deliveries: Sequence["Delivery"]) -> None:
        """Sets the check of deliveries with a file; a file that is invalid fails its delivery.

        Waits briefly if there is nothing else to deliver meanwhile.
        """
        with_file = [
            (each, each.message.content.media) for each in deliveries if each.message.content.media
        ]
        if not with_file or not self._enabled:
            return
        checks = self._checks()
        found = checks.get([media for _, media in with_file])
        if len(found) == len(deliveries) and all(check.may_wait for check in found):
            await checks.wait(found)
        for (delivery, _), check in zip(with_file, found, strict=True):
            delivery.file, delivery.failure = check, check.failure


@dataclass(slots=True)
class WaitingChats:
    """Chats whose first message has no valid file yet: reschedules of their jobs, the messages whose
    file's host was unavailable, and the jobs of chats that may wait with their batch."""

    back: list[Reschedule] = field(default_factory=list)
    away: list["Delivery"] = field(default_factory=list)
    patient: list[Job] = field(default_factory=list)


def remove_waiting(
    gate: OutboundGate,
    chats: dict[str, list["Delivery"]],
    outcome_of: "Callable[[Delivery], Outcome]",
) -> WaitingChats:
    """Removes the chats from `chats` whose first message has no valid file yet."""
    waiting = WaitingChats()
    for chat_id, (first, *_) in list(chats.items()):
        check = first.file
        if check is None or (check.done and not check.failure):
            continue
        jobs = [delivery.job for delivery in chats.pop(chat_id)]
        if check.failure:
            waiting.away.append(first)
        elif check.may_wait:
            waiting.patient += jobs
            continue
        else:
            first.delay_ms = ceil(check.retry_in_s * 1000)
        waiting.back += outcome_of(first).reschedule(gate, jobs)
    if waiting.patient:
        # Other calls use the bot's turns meanwhile.
        gate.ended(waiting.patient)
    return waiting


async def record_tries(tx: Tx, deliveries: Sequence["Delivery"]) -> None:
    """Counts an attempt of messages whose file's host is unavailable."""
    await store.record_failed_try(
        tx,
        [
            (each.message, each.failure.text)
            for each in deliveries
            if each.file and each.failure and each.failure.reason is Reason.PLATFORM_UNAVAILABLE
        ],
    )
