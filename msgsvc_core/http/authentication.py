"""From a request's headers to a project, within its rate limit."""

from collections.abc import Mapping

from msgsvc_core.kernel.errors import Forbidden, RateLimitProject
from msgsvc_core.limits import Limiter, Window
from msgsvc_core.projects.models import ApiKey, Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.telemetry.request_metrics import RequestMetrics

#: Seconds of the request rate's window (decision 0075: per minute).
RATE_WINDOW_S = 60


def api_key_of(headers: Mapping[str, str]) -> str | None:
    """The key in `Authorization: Bearer` or `X-API-Key`; None if neither is there."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return headers.get("x-api-key") or None


def check_scope(key: ApiKey, area: str, *, writes: bool, owners_only: bool) -> None:
    """Raises `Forbidden` if the key does not open that area, or only for reading."""
    if key.opens(area, writes=writes, owners_only=owners_only):
        return
    if writes and key.opens(area, writes=False, owners_only=owners_only):
        raise Forbidden("the API key may only read {area!r}", area=area)
    raise Forbidden("the API key has no access to {area!r}", area=area)


class Authentication:
    """From a request's headers to its project, counted against the project's rate."""

    def __init__(
        self,
        *,
        projects: Projects,
        limiter: Limiter,
        requests_per_minute: int,
        metrics: RequestMetrics,
    ) -> None:
        self._projects = projects
        self._limiter = limiter
        self._limit = requests_per_minute
        self._metrics = metrics

    async def authenticate(self, headers: Mapping[str, str]) -> tuple[Project, ApiKey]:
        """Raises `Unauthorized` or `InvalidApiKey`. The project may be disabled."""
        return await self._projects.authenticate(api_key_of(headers))

    def check_active(self, project: Project) -> None:
        """Raises `ProjectInactive` for a project that is disabled."""
        self._projects.check_active(project)

    async def count(self, project: Project) -> Window:
        """Counts the request against the project's rate; in this process alone while Redis is away."""
        window = await self._limiter.hit(
            f"requests:{project.project_id}", self._limit, RATE_WINDOW_S, when_away="count_locally"
        )
        if not window.allowed:
            self._metrics.rate_limited += 1
        return window


def check_rate(window: Window) -> None:
    """Raises `RateLimitProject` beyond the limit."""
    if not window.allowed:
        raise RateLimitProject(
            "more than {limit} requests in {seconds} s",
            limit=window.limit,
            seconds=RATE_WINDOW_S,
            retry_after_s=window.retry_after_s,
        )


def rate_headers(window: Window) -> list[tuple[bytes, bytes]]:
    """The three headers (decision 0075), as they go over the wire."""
    return [
        (b"x-ratelimit-limit", b"%d" % window.limit),
        (b"x-ratelimit-remaining", b"%d" % window.remaining),
        (b"x-ratelimit-reset", b"%d" % window.reset_at),
    ]
