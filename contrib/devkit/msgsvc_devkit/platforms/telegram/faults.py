"""Faults that tests inject into the fake."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from msgsvc_devkit.platforms.telegram.calls import Break, Refusal, too_many_requests

#: Stands for any method.
ANY = "*"

#: Seconds without a response, longer than any client's timeout.
HANG_S = 600.0


@dataclass(slots=True)
class Faults:
    """Shares of calls that fail, from 0 to 1, for methods whose names begin with `methods`.

    `resets` closes connections before the call has an effect, `lost_answers` afterwards.
    """

    too_many: float = 0.0
    server_errors: float = 0.0
    resets: float = 0.0
    lost_answers: float = 0.0
    #: `retry_after` of a 429, in whole seconds.
    retry_after: int = 1
    methods: tuple[str, ...] = ("send", "edit")
    random: Random = field(default_factory=lambda: Random(4))  # noqa: S311 - no secret

    def before(self, method: str) -> None:
        """Raises the fault of a call before it has an effect."""
        if not method.startswith(self.methods):
            return
        point = self.random.random()
        if point < self.too_many:
            raise too_many_requests(self.retry_after)
        if point < self.too_many + self.server_errors:
            raise Refusal(500, "Internal Server Error: restart")
        if point < self.too_many + self.server_errors + self.resets:
            raise Break

    def after(self, method: str) -> None:
        """Raises `Break` if the call had its effect and the response is lost."""
        if method.startswith(self.methods) and self.random.random() < self.lost_answers:
            raise Break


@dataclass(slots=True)
class Script:
    """The response to the next calls, whatever their parameters, or a `fault` instead.

    `done`: the calls have their effect first.
    """

    times: int
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    fault: Literal["reset", "hang"] | None = None
    done: bool = False

    async def play(self) -> tuple[int, bytes, str]:
        """The status, body and content type. Raises `Break`."""
        if self.fault == "hang":
            await asyncio.sleep(HANG_S)
        if self.fault is not None:
            raise Break
        return self.status, self.body, self.content_type


class Scripts:
    """The pending scripts, by method."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[Script]] = defaultdict(list)

    def add(self, method: str, script: Script) -> None:
        self._waiting[method].append(script)

    def next(self, method: str) -> Script | None:
        """The script for this call, or None."""
        waiting = self._waiting[method] or self._waiting[ANY]
        if not waiting:
            return None
        script = waiting[0]
        script.times -= 1
        if script.times <= 0:
            waiting.pop(0)
        return script
