"""Number matching: the page shows a number, the bot shows three, and the user picks the right one."""

import secrets

from msgsvc_core.security.secret_box import SecretBox

#: Two digits: read at a glance, and never with a leading zero.
NUMBERS = range(10, 100)


def new_number() -> int:
    """The number of a new sign-in request."""
    return secrets.choice(NUMBERS)


def offered(box: SecretBox, purpose: str, request_id: str, number: int) -> list[int]:
    """`number` and two decoys, in an order that reveals nothing. Another purpose gives other decoys.

    The decoys are stable for a request: if they changed each time the link is opened, the number that stays
    would be the right one.
    """
    derived = box.derive(purpose, request_id)
    others = [each for each in NUMBERS if each != number]
    shown = [others.pop(_below(len(others), derived[at : at + 8])) for at in (0, 8)]
    shown.insert(_below(3, derived[16:24]), number)
    return shown


def _below(limit: int, random: bytes) -> int:
    """A number below `limit`; the bias from 2**64 not being a multiple of it is negligible."""
    return int.from_bytes(random, "big") % limit
