"""Circuit breaker of one channel: whether its platform answers, as its calls show.

In memory, of the process that owns the channel's lane. What is known beyond that process is in
`core_channel_states`, see `channels.outages`.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Permit:
    """A call that may be made. `trial` is the trial that it belongs to; None where the circuit is
    closed."""

    trial: int | None


#: What a call gets while all is well: it needs to remember nothing.
FREE = Permit(None)


class CircuitBreaker:
    """Opens after `failures` calls in a row that the platform did not answer, and lets `trial_calls` real
    calls through after a probe succeeded (half-open): one that succeeds closes it, one that fails opens
    it again.
    """

    def __init__(self, *, failures: int, trial_calls: int) -> None:
        self._failures = failures
        self._trial_calls = trial_calls
        self.state: State = "closed"
        #: Failures since the last answer of the platform.
        self.unanswered = 0
        #: The number of the trial that is under way or was last, and the calls that it has left.
        self._trial = 0
        self._left = 0

    @property
    def blocks(self) -> bool:
        """Whether no call may be made now."""
        return self.state != "closed" and self._left <= 0

    @property
    def left(self) -> int | None:
        """How many calls may begin; None where the circuit sets no bound."""
        return None if self.state == "closed" else self._left

    def begin(self) -> Permit | None:
        """Takes a permit for one call; None while none may be made."""
        if self.state == "closed":
            return FREE
        if self._left <= 0:
            return None
        self._left -= 1
        return Permit(self._trial)

    def succeeded(self) -> bool:
        """The platform answered a call; True if that closes the circuit."""
        self.unanswered = 0
        was_closed, self.state, self._left = self.state == "closed", "closed", 0
        return not was_closed

    def failed(self, permit: Permit) -> bool:
        """The platform did not answer; True if that opens the circuit, for the first time or again."""
        self.unanswered += 1
        if self.state == "closed":
            opens = self.unanswered >= self._failures
        else:
            # A call from before the outage, that has timed out only now, says nothing of the trial.
            opens = self.state == "half_open" and permit.trial == self._trial
        if opens:
            self.state, self._left = "open", 0
        return opens

    def released(self, permit: Permit) -> None:
        """The call was not made after all, or says nothing of the platform."""
        if self.state == "half_open" and permit.trial == self._trial:
            self._left += 1

    def synchronize(self, *, is_out: bool, trial: int) -> None:
        """Takes over what is noted in the database; `trial` is the number of the trial that a probe has
        begun, 0 while there is none."""
        if not is_out:
            if self.state != "closed":
                self.state, self._left, self.unanswered = "closed", 0, 0
        elif trial == 0:
            self.state, self._left = "open", 0
        elif self.state != "half_open" or trial != self._trial:
            self.state, self._trial, self._left = "half_open", trial, self._trial_calls
