"""Paid operations: the core says that one takes place; who keeps accounts implements the hook `charge`.

Without such a plugin nothing is charged and nothing refused.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Charge:
    """One paid operation: `operation` is what is sold, e.g. `auth.confirmed`, `resource_id` of what it
    was done, e.g. a session. The same pair is one charge, however often it is told of."""

    project_id: str
    operation: str
    resource_id: str
    refusable: bool = True
