"""Injected faults: errors and lost responses."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_devkit.platforms.whatsapp.refusals import Refused

#: How a call fails: `reset` closes the connection before the call has an effect. With all others it has its
#: effect; then `lost` closes the connection, `gateway` responds with a timeout, `garbage` responds with
#: invalid JSON, `hang` doesn't respond.
Break = Literal["reset", "lost", "gateway", "garbage", "hang"]


@dataclass(slots=True)
class Faults:
    """Faults of the next calls, in order."""

    _ordered: deque[Refused | Break] = field(default_factory=deque)

    def fail_next(self, refused: Refused, times: int = 1) -> None:
        """Rejects the next calls with this error."""
        self._ordered.extend([refused] * times)

    def break_next(self, how: Break) -> None:
        """Injects this fault into the next call."""
        self._ordered.append(how)

    def of_call(self) -> Break | None:
        """The fault of the call, or None. Raises `Refused`."""
        fault = self._ordered.popleft() if self._ordered else None
        if isinstance(fault, Refused):
            raise fault
        return fault
