"""A budget for what a bot says without anybody having asked for it.

A program may stand at the other end: an auto-reply, another service of this kind, a robot. It answers
whatever it is told, and on some channels each answer costs money. No header identifies every
program, so automatic answers have a budget for each chat and kind, and a loop ends by itself.
"""

import json
from collections.abc import Callable

import structlog

from msgsvc_core.channels import chats
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock
from msgsvc_core.kernel.json import to_json

#: Told that an answer was withheld: the key of the channel, and the kind.
WithheldObserver = Callable[[str, str], None]

#: Beginning of the hour in Unix milliseconds and the answers since, the same of the day, and the answers that
#: were withheld since the day began.
_Spent = tuple[int, int, int, int, int]

log = structlog.get_logger(__name__)


class AutomaticAnswers:
    """`per_hour` and `per_day` answers of a kind in a chat."""

    def __init__(
        self, *, clock: Clock, per_hour: int, per_day: int, on_withheld: WithheldObserver
    ) -> None:
        self._clock = clock
        self._per_hour = per_hour
        self._per_day = per_day
        self._on_withheld = on_withheld

    async def take(self, tx: Tx, channel: str, chat_id: str, kind: str, share: int = 1) -> bool:
        """Whether one more answer of a kind may be given; it is counted. `share` is how many times the budget
        the kind has: more for a dialogue, in which people correct
        what they wrote."""
        now_ms = self._clock.now_ms()
        spent = _of_today(await chats.lock_automatic(tx, channel, chat_id), now_ms)
        hour_ms, in_hour, day_ms, in_day, withheld = spent.get(kind, (now_ms, 0, now_ms, 0, 0))
        if now_ms - hour_ms >= HOUR_MS:
            hour_ms, in_hour = now_ms, 0
        allowed = in_hour < self._per_hour * share and in_day < self._per_day * share
        if allowed:
            spent[kind] = (hour_ms, in_hour + 1, day_ms, in_day + 1, withheld)
        else:
            spent[kind] = (hour_ms, in_hour, day_ms, in_day, withheld + 1)
            log.info("automatic_answer_withheld", channel=channel, kind=kind)
            tx.on_commit(lambda: self._on_withheld(channel, kind))
        await chats.set_automatic(tx, channel, chat_id, to_json(spent))
        return allowed

    async def withheld(self, tx: Tx, channel: str, chat_id: str) -> int:
        """How many answers of all kinds a chat did not get during the last day."""
        spent = _of_today(await chats.find_automatic(tx, channel, chat_id), self._clock.now_ms())
        return sum(each[4] for each in spent.values())


def _of_today(column: str | None, now_ms: int) -> dict[str, _Spent]:
    """What is stored, without the kinds whose day is over."""
    stored: dict[str, list[int]] = json.loads(column or "{}")
    return {
        # What an earlier release has stored does not count what was withheld.
        kind: (each[0], each[1], each[2], each[3], each[4] if len(each) > 4 else 0)
        for kind, each in stored.items()
        if now_ms - each[2] < DAY_MS
    }
