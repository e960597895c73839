"""Interface for counting outcomes of messages elsewhere, e.g. in their batches."""

from collections.abc import Sequence
from typing import Protocol

from msgsvc_core.db import Tx
from msgsvc_core.messages.models import FinalStatus


class OutcomeCounter(Protocol):
    """Counts outcomes of messages."""

    async def count(
        self, tx: Tx, ended: Sequence[FinalStatus], corrected: Sequence[FinalStatus] = ()
    ) -> None:
        """Counts messages that got their outcome in `tx`, and corrects the counts of those that were
        `unknown`. Called once per transaction, as its last step."""
        ...


class SentCounter(Protocol):
    """Corrects counts of messages that were sent, and of which the platform reports a failure later."""

    async def count_failed(self, tx: Tx, failed: Sequence[FinalStatus]) -> None:
        """Counts messages as failed that were counted as sent."""
        ...
