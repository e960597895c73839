"""Requests of devices, from the code that a device shows to the answer of the person who entered it."""

import secrets as random

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox
from msgsvc_oidc.device import store
from msgsvc_oidc.device.models import DeviceRequest, StartedDevice
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.authorize import Session
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.device import ALPHABET, USER_CODE_LENGTH
from msgsvc_oidc.protocol.errors import UnusableRequest
from msgsvc_oidc.protocol.polling import access_denied
from msgsvc_oidc.settings import OidcSettings

#: What names hashes of user codes, and device codes, to the secret key.
PURPOSE = "device"

#: Codes that are tried until one is free. A second one is needed about never.
MOST_TRIES = 8


class DeviceRequests:
    """Starts requests, and takes people's answers. User codes are stored as keyed hashes."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        settings: OidcSettings,
        references: References,
        journal: SignInJournal,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._settings = settings
        self._references = references
        self._journal = journal

    async def start(
        self, client: Client, scopes: tuple[str, ...], acr_values: tuple[str, ...]
    ) -> StartedDevice:
        """Codes for a device, and for its person."""
        now_ms, lifetime_s = self._clock.now_ms(), self._settings.device_lifetime_s
        device = DeviceRequest(
            project_id=client.project_id,
            request_id=new_id("dev"),
            client_id=client.client_id,
            status="pending",
            scopes=scopes,
            acr_values=acr_values,
            interval_s=self._settings.poll_interval_s,
            expires_at_ms=now_ms + lifetime_s * 1000,
        )
        async with self._db.transaction() as tx:
            user_code = await self._insert(tx, device, now_ms)
        return StartedDevice(
            device_code=self._references.make(PURPOSE, client.project_id, device.request_id),
            user_code=user_code,
            expires_in_s=lifetime_s,
            interval_s=device.interval_s,
        )

    async def find(self, project_id: str, user_code: str) -> DeviceRequest | None:
        """The device that waits with that code."""
        hashes = self._secrets.keyed_hashes(PURPOSE, user_code)
        async with self._db.read() as tx:
            return await store.find_by_code(tx, project_id, hashes, now_ms=self._clock.now_ms())

    async def approve(self, tx: Tx, client: Client, request_id: str, session: Session) -> None:
        """The device may have its tokens. Raises `UnusableRequest` if somebody answered before."""
        now_ms = self._clock.now_ms()
        if not await store.approve(tx, client.project_id, request_id, session, now_ms=now_ms):
            raise _gone()

    async def deny(self, tx: Tx, client: Client, request_id: str) -> None:
        """The device gets no tokens. Raises as `approve`, but not if the person refused before: by Cancel in
        the messenger, and then on the page."""
        now_ms = self._clock.now_ms()
        if await store.deny(tx, client.project_id, request_id, now_ms=now_ms):
            await self._journal.failed(tx, client, "device", access_denied())
            return
        device = await store.find_device(tx, client.project_id, request_id)
        if device is None or device.status != "denied":
            raise _gone()

    async def _insert(self, tx: Tx, device: DeviceRequest, now_ms: int) -> str:
        for _ in range(MOST_TRIES):
            user_code = "".join(random.choice(ALPHABET) for _ in range(USER_CODE_LENGTH))
            hashed = self._secrets.keyed_hash(PURPOSE, user_code)
            if await store.insert_device(tx, device, hashed, created_at_ms=now_ms):
                return user_code
        raise RuntimeError("no free user code")


def _gone() -> UnusableRequest:
    return UnusableRequest("the device's code has expired, or was answered before")
