"""How many sessions may be opened: for a project, and for one address of those who ask it."""

from msgsvc_auth.clients import Client
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.errors import RateLimitProject
from msgsvc_core.limits import Limiter, Window

#: Seconds of the window in which sessions are counted (interface spec, section 8: per hour).
SESSION_WINDOW_S = 3600


class Openings:
    """Counts them. These limits bound load, and guard no secret: without Redis each process counts alone,
    and people can still sign in."""

    def __init__(self, limiter: Limiter, settings: AuthSettings) -> None:
        self._limiter = limiter
        self._settings = settings

    async def count(self, project_id: str, client: Client | None) -> None:
        """Takes a slot of the project, and one of the client's address if it is known.

        Raises `RateLimitProject`; who is refused for one takes no slot of the other. Two that come at
        once may find one slot of the project left, then the second loses one of its address, and never
        the other way round: who knocks too often from one address must not use up the project's.
        """
        key, limit = f"auth.sessions:{project_id}", self._settings.sessions_per_hour
        if client is not None and client.network is not None:
            _check(
                await self._limiter.peek(key, limit, SESSION_WINDOW_S, when_away="count_locally")
            )
            await self._count_address(project_id, client.network)
        _check(await self._limiter.hit(key, limit, SESSION_WINDOW_S, when_away="count_locally"))

    async def _count_address(self, project_id: str, network: str) -> None:
        window = await self._limiter.hit(
            f"auth.sessions:{project_id}:{network}",
            self._settings.sessions_per_hour_per_address,
            SESSION_WINDOW_S,
            when_away="count_locally",
        )
        _check(window, "for this address", "sessions_per_hour_per_address")


def _check(
    window: Window, whose: str = "of this project", setting: str = "sessions_per_hour"
) -> None:
    if not window.allowed:
        # Who tries things out is here within minutes.
        raise RateLimitProject(
            f"more than {window.limit} sessions {whose} in {SESSION_WINDOW_S} s"
            f" (the setting auth.{setting})",
            retry_after_s=window.retry_after_s,
        )
