"""Consents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a person agreed to for a client."""

    project_id: str
    subscriber_id: str
    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    granted_at_ms: int
