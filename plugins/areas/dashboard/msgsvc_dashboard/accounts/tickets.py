"""The state of a browser between the password and the code: the account, and until when."""

import json

from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security import SecretBox
from msgsvc_core.security.secret_box import DecryptionError
from msgsvc_dashboard.accounts.models import Way

#: Milliseconds between the password and the code.
TICKET_MS = 10 * 60 * 1000


@value_object
class Ticket:
    """An account whose password was verified, and since when that is its password."""

    account_id: str
    way: Way
    password_set_at_ms: int | None


class CodeTickets:
    """Encrypts tickets, so that only this service can read or create them."""

    def __init__(self, *, clock: Clock, secrets: SecretBox) -> None:
        self._clock = clock
        self._secrets = secrets

    def issue(self, ticket: Ticket) -> str:
        until_ms = self._clock.now_ms() + TICKET_MS
        content = [ticket.account_id, ticket.way, until_ms, ticket.password_set_at_ms]
        return self._secrets.encrypt(json.dumps(content))

    def read(self, sealed: str) -> Ticket | None:
        """None for one that is none of ours, or too old."""
        try:
            account_id, way, until_ms, set_at_ms = json.loads(self._secrets.decrypt(sealed))
        except (DecryptionError, ValueError):
            return None
        return Ticket(account_id, way, set_at_ms) if until_ms > self._clock.now_ms() else None
