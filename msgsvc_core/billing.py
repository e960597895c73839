"""Paid operations: the core says that one takes place; who keeps accounts implements the hook `charge`.

Without such a plugin nothing is charged and nothing refused.
"""

from dataclasses import dataclass

#: A message to one subscriber: of `POST /v1/send` and `/v1/send/batch`, a schedule or a chain.
MESSAGE = "message.sent"


@dataclass(frozen=True, slots=True)
class Charge:
    """One paid operation: `operation` is what is sold, e.g. `auth.confirmed`, `resource_id` of what it
    was done, e.g. a session. The same pair is one charge, however often it is told of.

    `quantity` is how many of it: a mass send's recipients. Below 0 it gives back what was charged before
    and did not take place."""

    project_id: str
    operation: str
    resource_id: str
    refusable: bool = True
    quantity: int = 1
