"""Keeps a session with the centre: binds when one is needed, and again after it was lost."""

import asyncio
import random
import time

from msgsvc_core.channels import DeliveryError
from msgsvc_sms.failures import Refused, unavailable
from msgsvc_sms.pdu import ShortMessage
from msgsvc_sms.session import Account, OnDelivered, Session, SessionLost

#: Seconds until the next try to bind: after the first failure, and at most.
FIRST_WAIT_S, MOST_WAIT_S = 1.0, 60.0

#: Failures in a row after which tries wait: a centre that restarts is found again at once.
FREE_FAILURES = 3

#: Jitter of the wait, as a fraction, so that processes don't bind at once.
SPREAD = 0.2


class Link:
    """`session` is bound on first use. `window`, `timeout_s` and `enquire_s` are settings."""

    def __init__(
        self,
        account: Account,
        *,
        window: int,
        timeout_s: float,
        enquire_s: float,
        on_delivered: OnDelivered,
        channel: str,
    ) -> None:
        self._account = account
        self._window = window
        self._timeout_s = timeout_s
        self._enquire_s = enquire_s
        self._on_delivered = on_delivered
        self._channel = channel
        self._session: Session | None = None
        self._binding = asyncio.Lock()
        self._alive: asyncio.Task[None] | None = None
        self._failures = 0
        self._last_failure: DeliveryError | None = None
        self._not_before_s = 0.0

    async def submit(self, message: ShortMessage) -> str:
        return await (await self.session()).submit(message)

    async def enquire(self) -> None:
        await (await self.session()).enquire()

    async def check(self) -> None:
        """Whether the account works, asked at once. Raises `DeliveryError`."""
        session = await self.session(at_once=True)
        try:
            await session.enquire()
        except SessionLost:
            # Why it was lost, a new bind may tell: the account may be closed.
            await self.session(at_once=True)
            raise

    async def session(self, *, at_once: bool = False) -> Session:
        """The bound session. Between failed tries it waits ever longer, unless `at_once`: meanwhile this
        raises the failure of the last one."""
        async with self._binding:
            if self._session is not None and self._session.is_open:
                return self._session
            await self._drop()
            if not at_once and time.monotonic() < self._not_before_s:
                raise self._failed_before()
            try:
                self._session = await Session.open(
                    self._account,
                    window=self._window,
                    timeout_s=self._timeout_s,
                    on_delivered=self._on_delivered,
                    channel=self._channel,
                )
            except DeliveryError as error:
                self._note(error)
                raise
            self._failures, self._last_failure = 0, None
            self._alive = asyncio.create_task(self._keep_alive(self._session))
            return self._session

    async def close(self) -> None:
        """Ends the session in order; a next use binds again."""
        async with self._binding:
            await self._drop()

    async def _drop(self) -> None:
        alive, self._alive = self._alive, None
        if alive is not None:
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _keep_alive(self, session: Session) -> None:
        """Enquires so often that neither side takes the other for gone; finds a dead connection."""
        while session.is_open:
            await asyncio.sleep(self._enquire_s)
            try:
                await session.enquire()
            except Refused:
                continue
            except DeliveryError:
                return

    def _note(self, error: DeliveryError) -> None:
        self._failures += 1
        self._last_failure = error
        late = self._failures - FREE_FAILURES
        if late > 0:
            wait_s = min(MOST_WAIT_S, FIRST_WAIT_S * 2 ** min(late - 1, 10))
            wait_s *= random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - no secret
            self._not_before_s = time.monotonic() + wait_s

    def _failed_before(self) -> DeliveryError:
        before = self._last_failure
        if before is None:
            return unavailable("the centre can't be reached")
        return DeliveryError(before.reason, before.text)
