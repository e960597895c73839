"""The part of HTTP: the stored answers of idempotent requests."""

from msgsvc_core.http.idempotency import SEALED, erase_stored_answers, retention_rule
from msgsvc_core.parts import Part

PART = Part(
    sealed=[SEALED],
    retention=lambda limits: [retention_rule(hours=limits.idempotency_hours)],
    erasers=[erase_stored_answers],
)
