"""Metrics of sign-ins."""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter

from msgsvc_core.db import Tx

#: `begun`: a session was opened; `confirmed`: a Yes; `cancelled`: a No or the wrong number; `exchanged`:
#: the site exchanged the code. The remaining ones expired.
Outcome = Literal["begun", "confirmed", "cancelled", "exchanged"]


class SignInMetrics:
    """Counts sign-ins of all projects. `channel` is empty until the user has answered in one.

    `label` maps a bot's key to its metrics label.
    """

    def __init__(self, *, registry: CollectorRegistry, label: Callable[[str], str]) -> None:
        self._label = label
        self._counter = Counter(
            "msgsvc_auth_sign_ins",
            "Sign-ins by how far they came: begun, confirmed, cancelled, exchanged.",
            ["outcome", "channel"],
            registry=registry,
        )
        for outcome in get_args(Outcome):
            self._counter.labels(outcome, "")

    def count_on_commit(self, tx: Tx, outcome: Outcome, bot: str = "") -> None:
        """Counts one once `tx` is committed; `bot` is the key of the channel in which the person answered."""
        channel = self._label(bot) if bot else ""
        tx.on_commit(partial(self._counter.labels(outcome, channel).inc))
