"""One fetch of a client's keys, from a URL that a tenant chose."""

from typing import Any

from msgsvc_core.http_client import CallError, Connector, HttpClient, Limits
from msgsvc_core.kernel.json import read_json
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_oidc.protocol.clients import MAX_KEYS
from msgsvc_oidc.protocol.keys import is_signing_key, public_jwk

#: Bytes of a response.
LIMITS = Limits(max_body_bytes=64 * 1024)


class KeysUnavailable(Exception):
    """The keys could not be fetched; the text says why, without an address."""


class KeyFetcher:
    """GETs JWK Sets, with one connection pool."""

    def __init__(self, *, guard: OutboundGuard, timeout_s: float) -> None:
        self._guard = guard
        self._timeout_s = timeout_s
        self._client: HttpClient | None = None

    async def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def fetch(self, url: str) -> dict[str, Any]:
        """The public keys for signatures, as a JWK Set (RFC 7517, section 5); others in it are left out.
        Raises `KeysUnavailable`."""
        try:
            self._guard.check_url(url)
            response = await self._opened().request(
                "GET",
                url,
                headers={"Accept": "application/jwk-set+json, application/json"},
                timeout_s=self._timeout_s,
                limits=LIMITS,
            )
        except (CallError, ForbiddenTarget) as failure:
            raise KeysUnavailable(f"no response: {type(failure).__name__}") from None
        if response.status != 200:
            raise KeysUnavailable(f"the response is {response.status}")
        return _key_set(response.body)

    def _opened(self) -> HttpClient:
        if self._client is None:
            self._client = HttpClient(
                Connector(guard=self._guard),
                headers={"User-Agent": "msgsvc"},
                connections=None,
                connect_s=self._timeout_s,
            )
        return self._client


def _key_set(body: bytes) -> dict[str, Any]:
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        raise KeysUnavailable("the response is no JSON") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise KeysUnavailable("the response is no JWK Set")
    usable = [
        public_jwk(key)
        for key in keys[:MAX_KEYS]
        if isinstance(key, dict) and key.get("use") in {None, "sig"} and is_signing_key(key)
    ]
    if not usable:
        raise KeysUnavailable("the response has no public key for signatures")
    return {"keys": usable}
