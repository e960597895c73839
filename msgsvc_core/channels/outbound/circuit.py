"""Circuit breaker of one channel: opens when its platform does not respond to calls.

In the memory of the process that owns the channel's lane. What is shared between processes is in
`core_channel_states`, see `channels.health.outages`.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call. `trial` is the trial that the call belongs to; None if the circuit is
    closed."""

    trial: int | None


#: The permit of all calls while the circuit is closed.
FREE = Permit(None)


class CircuitBreaker:
    """Opens after `failures` consecutive calls without a response. After a successful probe (half-open) it
    permits `trial_calls` real calls: one that succeeds closes it, one that fails opens it again."""

    def __init__(self, *, failures: int, trial_calls: int) -> None:
        self._failures = failures
        self._trial_calls = trial_calls
        self.state: State = "closed"
        #: Failures since the platform's last response.
        self.unanswered = 0
        #: The number of the current or last trial, and the calls that it has left.
        self._trial = 0
        self._left = 0

    @property
    def blocks(self) -> bool:
        """Whether no call may be made now."""
        return self.state != "closed" and self._left <= 0

    @property
    def left(self) -> int | None:
        """How many calls may start; None for no limit."""
        return None if self.state == "closed" else self._left

    def begin(self) -> Permit | None:
        """Takes a permit for one call; None if no call may be made."""
        if self.state == "closed":
            return FREE
        if self._left <= 0:
            return None
        self._left -= 1
        return Permit(self._trial)

    def succeeded(self) -> bool:
        """The platform responded to a call; True if that closes the circuit."""
        self.unanswered = 0
        was_closed, self.state, self._left = self.state == "closed", "closed", 0
        return not was_closed

    def failed(self, permit: Permit) -> bool:
        """The platform did not respond; True if that opens the circuit, for the first time or again."""
        self.unanswered += 1
        if self.state == "closed":
            opens = self.unanswered >= self._failures
        else:
            # A call from before the outage that timed out only now says nothing about the trial.
            opens = self.state == "half_open" and permit.trial == self._trial
        if opens:
            self.state, self._left = "open", 0
        return opens

    def released(self, permit: Permit) -> None:
        """The call was not made, or its result says nothing about the platform."""
        if self.state == "half_open" and permit.trial == self._trial:
            self._left += 1

    def synchronize(self, *, is_out: bool, trial: int) -> None:
        """Applies the state in the database; `trial` is the number of the trial that a probe has started,
        0 if there is none."""
        if not is_out:
            if self.state != "closed":
                self.state, self._left, self.unanswered = "closed", 0, 0
        elif trial == 0:
            self.state, self._left = "open", 0
        elif self.state != "half_open" or trial != self._trial:
            self.state, self._trial, self._left = "half_open", trial, self._trial_calls
