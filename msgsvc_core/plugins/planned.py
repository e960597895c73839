"""Messages that plugins send at times in tables of their own, and not by a job each: for `msgsvc outbox`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgsvc_core.db import Tx
from msgsvc_core.jobs.inspection import Waiting

#: With a reading transaction and a time in Unix milliseconds: what is due before it, or all of it for None.
#: None if there is nothing.
CountPlanned = Callable[[Tx, int | None], Awaitable[Waiting | None]]

#: With a transaction, a time in Unix milliseconds and a limit: withdraws up to `limit` of what is due before
#: it, and returns how many those were. It is called again until it withdraws none.
WithdrawPlanned = Callable[[Tx, int, int], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class PlannedMessages:
    """A kind of planned messages (hook `register_planned_messages`).

    `name` is that of its `Waiting`, such as `drip.step`. `sends` says in a few words what reaches people.
    `withdraw` lets times pass as if the messages had been sent, since the original of a restored copy may
    have sent them, and reports that where a project looks: what comes later is sent.
    """

    name: str
    sends: str
    count: CountPlanned
    withdraw: WithdrawPlanned
