"""The keys that sign, made with the first client that needs one, and rotated by a job."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox
from msgsvc_oidc.keys import store
from msgsvc_oidc.protocol.clients import SigningAlg
from msgsvc_oidc.protocol.keys import (
    Signer,
    SigningKey,
    jwk_of_text,
    jwk_text,
    new_private_jwk,
    public_jwk,
    rotation_of,
)
from msgsvc_oidc.settings import OidcSettings

#: Milliseconds for which a process goes on with the keys that it knows. A new key is published for far longer
#: before it signs.
KNOWN_FOR_MS = 10_000

#: A retired key stays for at least this many times what clients may cache.
KEPT_TIMES = 24

#: Where a private key is stored: the value is bound to its row.
PLACE = "oidc_keys.private_sealed"


class SigningKeys:
    """Signs, and publishes the public keys."""

    def __init__(
        self, *, clock: Clock, db: Database, secrets: SecretBox, settings: OidcSettings
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._settings = settings
        self._known: tuple[int, Sequence[SigningKey]] = (0, ())
        self._signers: dict[str, Signer] = {}
        self._making = asyncio.Lock()

    async def sign(self, claims: Mapping[str, Any], alg: SigningAlg, typ: str = "JWT") -> str:
        """A JWT by the current key of the algorithm."""
        return (await self._signer(alg)).sign(claims, typ)

    async def public_set(self) -> dict[str, Any]:
        """The published keys (RFC 7517, section 5)."""
        keys = await self._keys()
        if not any(key.status == "current" for key in keys):
            keys = await self._ensure(self._settings.signing_alg)
        return {"keys": [dict(key.public_jwk) for key in keys]}

    async def public_keys(self) -> list[Mapping[str, Any]]:
        """The published keys, to verify what the provider signed."""
        return [key.public_jwk for key in await self._keys()]

    async def list_all(self, tx: Tx) -> list[SigningKey]:
        """All keys, oldest first."""
        return await store.list_keys(tx)

    async def rotate(self, tx: Tx, *, at_once: bool = False) -> list[SigningKey]:
        """Does what is due; returns the keys that sign from now on.

        `at_once` does not wait for the end of the current key's time, but for clients' caches it does.
        """
        await tx.lock("oidc.keys")
        keys = await store.list_keys(tx)
        promoted = []
        for alg in sorted({key.alg for key in keys}):
            of_alg = [key for key in keys if key.alg == alg]
            done = await self._rotate_alg(tx, alg, of_alg, at_once=at_once)
            promoted += [] if done is None else [done]
        tx.on_commit(self._forget)
        return promoted

    async def replace_all(self, tx: Tx) -> list[SigningKey]:
        """New keys that sign at once, for keys that leaked, or that no secret key decrypts; returns them.

        Clients that cache the old ones refuse ID tokens until they fetch the new ones: most do for an unknown
        `kid`, the others after `jwks_max_age_s`.
        """
        await tx.lock("oidc.keys")
        algs = {key.alg for key in await store.list_keys(tx)} or {self._settings.signing_alg}
        await store.delete_all_keys(tx)
        made = []
        for alg in sorted(algs):
            made.append(await self._make(alg))
            await store.insert_key(tx, made[-1])
            await store.insert_key(tx, replace(await self._make(alg), status="next"))
        tx.on_commit(self._forget)
        return made

    async def _rotate_alg(
        self, tx: Tx, alg: SigningAlg, keys: Sequence[SigningKey], *, at_once: bool
    ) -> SigningKey | None:
        now_ms, cached_ms = self._clock.now_ms(), self._settings.jwks_max_age_s * 1000
        due = rotation_of(
            keys,
            now_ms,
            period_ms=self._settings.key_days * DAY_MS,
            # Twice: a cache between may have kept the response as well.
            cached_ms=2 * cached_ms,
            # Of an ID token it signed, a client may still make a hint: people sign out long after.
            kept_ms=max(KEPT_TIMES * cached_ms, self._settings.key_days * DAY_MS),
            at_once=at_once,
        )
        await store.delete_keys(tx, due.deleted)
        if due.retired is not None:
            await store.set_status(tx, due.retired.key_id, "current", "retired", now_ms=now_ms)
        if due.promoted is not None:
            await store.set_status(tx, due.promoted.key_id, "next", "current", now_ms=now_ms)
        if due.makes_next:
            await store.insert_key(tx, replace(await self._make(alg), status="next"))
        return due.promoted

    async def _signer(self, alg: SigningAlg) -> Signer:
        keys = await self._keys()
        current = _current(keys, alg) or _current(await self._ensure(alg), alg)
        assert current is not None
        signer = self._signers.get(current.key_id)
        if signer is None:
            private = self._secrets.decrypt(current.private_sealed, (PLACE, current.key_id))
            signer = Signer(alg, current.key_id, jwk_of_text(private))
            self._signers[current.key_id] = signer
        return signer

    async def _keys(self) -> Sequence[SigningKey]:
        known_at_ms, keys = self._known
        now_ms = self._clock.now_ms()
        if keys and 0 <= now_ms - known_at_ms < KNOWN_FOR_MS:
            return keys
        async with self._db.read() as tx:
            keys = await store.list_keys(tx)
        self._known = (now_ms, keys)
        return keys

    async def _ensure(self, alg: SigningAlg) -> Sequence[SigningKey]:
        """Makes the first keys of an algorithm; the first one signs at once, for nobody has cached any."""
        async with self._making:
            self._forget()
            if _current(await self._keys(), alg) is None:
                made = [await self._make(alg), replace(await self._make(alg), status="next")]
                await self._insert_first(alg, made)
                self._forget()
        return await self._keys()

    async def _insert_first(self, alg: SigningAlg, made: Sequence[SigningKey]) -> None:
        """Inserts them unless another process was faster: a second current key would sign what those who have
        fetched the first one can't verify."""
        async with self._db.transaction() as tx:
            await tx.lock("oidc.keys")
            if _current(await store.list_keys(tx), alg) is None:
                for key in made:
                    await store.insert_key(tx, key)

    async def _make(self, alg: SigningAlg) -> SigningKey:
        key_id = new_id("key")
        # Not in the loop: it takes long enough for others to notice.
        private = await asyncio.to_thread(new_private_jwk, alg, key_id)
        return SigningKey(
            key_id=key_id,
            alg=alg,
            status="current",
            public_jwk=public_jwk(private),
            private_sealed=self._secrets.encrypt(jwk_text(private), (PLACE, key_id)),
            changed_at_ms=self._clock.now_ms(),
        )

    def _forget(self) -> None:
        self._known = (0, ())


def _current(keys: Sequence[SigningKey], alg: SigningAlg) -> SigningKey | None:
    return next((key for key in keys if key.alg == alg and key.status == "current"), None)
