"""Rate limits for opening sessions, per project and per client address."""

from msgsvc_auth.clients import Client
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_core.limits import StoredHits, Window
from msgsvc_core.security import digest

#: Seconds of the window in which sessions are counted (decision 0075: per hour).
SESSION_WINDOW_S = 3600


class SessionLimits:
    """Counts sessions in the transaction that writes them, so that the limits hold across restarts and
    processes, and a rolled back session takes no slot (decision 0003)."""

    def __init__(self, clock: Clock, settings: AuthSettings) -> None:
        self._hits = StoredHits(clock)
        self._settings = settings

    async def count(self, tx: Tx, project_id: str, client: Client | None) -> None:
        """Takes a slot of the project, and one of the client's address if it is known.

        Raises `RateLimitProject`; roll back the transaction then, so that a refusal by one limit takes no
        slot of the other.
        """
        key, limit = f"auth.sessions:{project_id}", self._settings.sessions_per_hour
        _check(await self._hits.hit(tx, key, limit, SESSION_WINDOW_S))
        if client is not None and client.network is not None:
            window = await self._hits.hit(
                tx,
                f"auth.sessions:{project_id}:{client.network}",
                self._settings.sessions_per_hour_per_address,
                SESSION_WINDOW_S,
            )
            _check(window, "for this address", "sessions_per_hour_per_address")


class AskingLimits:
    """Counts the questions that one browser's address has sent to mailboxes and phones from hosted pages."""

    def __init__(self, clock: Clock, settings: AuthSettings) -> None:
        self._hits = StoredHits(clock)
        self._settings = settings

    async def count(self, tx: Tx, project_id: str, client: Client) -> None:
        """Takes a slot of the client's address; unknown ones share one. Raises `RateLimitProject`."""
        window = await self._hits.hit(
            tx,
            f"auth.asking:{project_id}:{client.network}",
            self._settings.sessions_per_hour_per_address,
            SESSION_WINDOW_S,
        )
        _check(window, "for this address", "sessions_per_hour_per_address")


class AddressLimits:
    """Counts the questions that are sent to one mailbox or phone, whoever asks for them."""

    def __init__(self, clock: Clock, settings: AuthSettings) -> None:
        self._hits = StoredHits(clock)
        self._settings = settings

    async def count(self, tx: Tx, project_id: str, channel: str, address: str) -> None:
        """Takes a slot of the address. `channel` is the bot's key. Raises `RateLimitProject`."""
        window = await self._hits.hit(
            tx,
            f"auth.addresses:{project_id}:{digest(f'{channel} {address}')}",
            self._settings.sessions_per_hour_per_recipient,
            SESSION_WINDOW_S,
        )
        _check(window, "for this recipient", "sessions_per_hour_per_recipient")


def _check(
    window: Window, whose: str = "of this project", setting: str = "sessions_per_hour"
) -> None:
    if not window.allowed:
        # Trial sign-ins are short-lived.
        raise RateLimitProject(
            "more than {limit} sessions {origin} in {seconds} s (the setting auth.{setting})",
            limit=window.limit,
            origin=whose,
            seconds=SESSION_WINDOW_S,
            setting=setting,
            retry_after_s=window.retry_after_s,
        )
