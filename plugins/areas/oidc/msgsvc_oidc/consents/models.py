"""Consents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person agreed to for a client."""

    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    granted_at_ms: int
