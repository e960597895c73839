"""Whether a refusal is about one address, or whether the server takes nothing at all.

A server with a fault, or one that has blocked its sender, refuses every recipient with the same words as one
whose mailbox is gone. Believed each time, it would empty a list of people within a minute, and send
all of them whatever a route has next. So the server is asked for a recipient of whom it has to know: the
channel's own address. See docs/decisions/0143.
"""

from collections import OrderedDict

import structlog

from msgsvc_core.channels import Reason
from msgsvc_email.failures import SmtpRefusal

#: Refused addresses that are remembered.
MOST_SUSPECTS = 1_000

#: Addresses that are believed to be refused for themselves while the server takes no message in between and
#: never took the channel's own.
BELIEVED = 3

log = structlog.get_logger(__name__)


class Verdicts:
    """What one server has taken and refused, in the memory of the process."""

    def __init__(self) -> None:
        #: Messages that the server has taken.
        self._taken = 0
        #: Whether it ever took the channel's own address: not every sender has a mailbox.
        self._knows_own = False
        #: Refused addresses that wait for another message to be taken, and how many were taken before.
        self._suspects: OrderedDict[str, int] = OrderedDict()
        #: Refused addresses that were believed since the last message that was taken.
        self._believed: set[str] = set()

    def taken(self) -> None:
        """The server took a message."""
        self._taken += 1
        self._believed.clear()

    def refuses_all(self, *, takes_own: bool) -> bool:
        """Whether the server takes nothing, by its reply to the channel's own address."""
        self._knows_own = self._knows_own or takes_own
        return self._knows_own and not takes_own

    def weighed(self, address: str, error: SmtpRefusal, *, takes_own: bool) -> SmtpRefusal:
        """What a refusal for good of an address means: itself, or that the server takes nothing for now."""
        refuses_all = self.refuses_all(takes_own=takes_own)
        if takes_own or self._taken > self._suspects.get(address, self._taken):
            self._suspects.pop(address, None)
            return error
        if not refuses_all and (len(self._believed) < BELIEVED or address in self._believed):
            self._believed.add(address)
            return error
        self._suspects.setdefault(address, self._taken)
        if len(self._suspects) > MOST_SUSPECTS:
            self._suspects.popitem(last=False)
        log.warning("smtp_server_refuses_all", error=error.text)
        return refusing_all(error.code, error.text)


def refusing_all(code: int, words: str) -> SmtpRefusal:
    """The server takes nothing for now, so that messages wait."""
    text = f"it refuses every recipient: {words}"
    return SmtpRefusal(Reason.PLATFORM_UNAVAILABLE, "recipient", code, text, is_servers=True)
