"""What the mail server does wrong on request."""

import asyncio
from collections import deque
from typing import Literal

#: How the next delivery is broken. The message is taken, and then the connection is closed (`lost`), the
#: reply is no reply (`garbage`), or none comes (`hang`).
Break = Literal["lost", "garbage", "hang"]

#: Commands of which the next is refused.
Step = Literal["MAIL", "RCPT", "DATA", "AUTH"]


class Faults:
    """Faults of the next calls, in order."""

    def __init__(self) -> None:
        self._refusals: deque[tuple[Step, str]] = deque()
        self._breaks: deque[Break] = deque()
        self.released = asyncio.Event()

    def refuse_next(self, step: Step, reply: str) -> None:
        """The next command of that kind gets this reply, e.g. `550 5.1.1 no such user`. A check of the
        account (NOOP) counts as `MAIL`."""
        self._refusals.append((step, reply))

    def break_next(self, how: Break) -> None:
        self._breaks.append(how)

    def take_refusal(self, step: Step) -> str | None:
        if self._refusals and self._refusals[0][0] == step:
            return self._refusals.popleft()[1]
        return None

    def take_break(self) -> Break | None:
        return self._breaks.popleft() if self._breaks else None
