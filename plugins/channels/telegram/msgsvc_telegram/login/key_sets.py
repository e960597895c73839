"""Telegram's public keys, kept for an hour."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgsvc_core.kernel.clock import Clock

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, RSAKey

    PublicKey = RSAKey | ECKey

#: Seconds for which keys are used without asking again.
MAX_AGE_S = 3600

#: Seconds between two requests for a key that is not among the known ones: tokens with made-up key ids must
#: not have us call Telegram for each.
REFETCH_S = 60

#: Returns the JSON Web Key Set. Raises `DeliveryError`.
FetchKeys = Callable[[], Awaitable[Mapping[str, Any]]]


class KeySets:
    """The keys by their id. Concurrent callers share one request."""

    def __init__(self, *, clock: Clock, fetch: FetchKeys) -> None:
        self._clock = clock
        self._fetch = fetch
        self._keys: dict[str, PublicKey] = {}
        self._fetched_at_s: float | None = None
        self._fetching = asyncio.Lock()

    async def current(self) -> "Mapping[str, PublicKey]":
        """Keys that are at most `MAX_AGE_S` old. Raises `DeliveryError`."""
        await self._refetch_after(MAX_AGE_S)
        return self._keys

    async def holding(self, key_id: str) -> "Mapping[str, PublicKey]":
        """The same, fetched again for an unknown id unless that was done in the last `REFETCH_S`."""
        if key_id not in await self.current():
            await self._refetch_after(REFETCH_S)
        return self._keys

    async def _refetch_after(self, age_s: float) -> None:
        async with self._fetching:
            now_s = self._clock.time()
            if self._fetched_at_s is None or now_s - self._fetched_at_s >= age_s:
                self._keys = _public_keys(await self._fetch())
                self._fetched_at_s = now_s


def _public_keys(key_set: Mapping[str, Any]) -> "dict[str, PublicKey]":
    """The keys that can verify a signature; others are ignored (RFC 7517, section 5)."""
    # Loaded for the first sign-in: a bot that has no login does not need it.
    from joserfc.errors import JoseError  # noqa: PLC0415 - see above
    from joserfc.jwk import ECKey, RSAKey  # noqa: PLC0415 - see above

    # Never `oct` (RFC 7518, section 6.1): a shared secret is no public key.
    kinds: dict[object, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey}
    found: dict[str, PublicKey] = {}
    for data in key_set["keys"]:
        kind = kinds.get(data.get("kty")) if isinstance(data, dict) else None
        if kind is None or not isinstance(data.get("kid"), str) or data.get("use", "sig") != "sig":
            continue
        # What can't be read is not ours to judge: the other keys are still good.
        with suppress(JoseError, ValueError, TypeError, KeyError):
            found[data["kid"]] = kind.import_key(data)
    return found
