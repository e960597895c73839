"""The port by which outcomes of messages are counted elsewhere, e.g. in their batches."""

from collections.abc import Sequence
from typing import Protocol

from msgsvc_core.db import Tx
from msgsvc_core.messages.models import FinalStatus


class OutcomeCounter(Protocol):
    """Counts what messages end as."""

    async def count(
        self, tx: Tx, ended: Sequence[FinalStatus], corrected: Sequence[FinalStatus] = ()
    ) -> None:
        """Counts messages that have just ended in `tx`, and has those that were `unknown` until now counted
        as what they are. Called once in a transaction, as its last step."""
        ...
