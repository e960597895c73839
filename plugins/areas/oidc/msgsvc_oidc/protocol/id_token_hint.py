"""ID tokens that come back as a hint of who is meant (OpenID Connect Core 1.0, section 3.1.2.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_oidc.protocol.keys import verified_claims

#: Algorithms of our ID tokens.
_ALGORITHMS = ("RS256", "ES256", "EdDSA")


def hinted_subject(
    token: str, keys: Sequence[Mapping[str, Any]], *, issuer: str, client_id: str
) -> str | None:
    """The `sub` of an ID token that this issuer signed for the client; None for any other token. It may have
    expired: it says who is meant, and proves nothing."""
    claims = verified_claims(token, keys, _ALGORITHMS)
    # A logout token is signed by the same keys, and is none (Back-Channel Logout 1.0, section 2.4).
    if claims is None or "events" in claims:
        return None
    subject = claims.get("sub")
    if claims.get("iss") != issuer or claims.get("aud") != client_id:
        return None
    return subject if isinstance(subject, str) else None
