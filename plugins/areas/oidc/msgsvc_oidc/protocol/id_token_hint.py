"""ID tokens that come back as a hint of who is meant (OpenID Connect Core 1.0, section 3.1.2.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgsvc_oidc.protocol.keys import verified_claims

#: Algorithms of our own ID tokens.
_ALGORITHMS = ("RS256", "ES256", "EdDSA")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTokenHint:
    """An ID token that we issued, to whom and of whom; it may have expired. `session_id` is None for one
    without a browser."""

    client_id: str
    subject: str
    session_id: str | None


def read_hint(token: str, keys: Sequence[Mapping[str, Any]], issuer: str) -> IdTokenHint | None:
    """The ID token, expired or not: people sign out long after they signed in (RP-Initiated Logout 1.0,
    section 4), and it proves nothing. None for what is no ID token of this issuer, such as a logout token,
    or is signed by a key that is published no more."""
    claims = verified_claims(token, keys, _ALGORITHMS)
    if claims is None or claims.get("iss") != issuer or "events" in claims:
        return None
    audience, subject, session_id = claims.get("aud"), claims.get("sub"), claims.get("sid")
    if not isinstance(audience, str) or not isinstance(subject, str):
        return None
    return IdTokenHint(
        client_id=audience,
        subject=subject,
        session_id=session_id if isinstance(session_id, str) else None,
    )
