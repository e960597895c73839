"""From a request's headers to a project, within its rate limit."""

from starlette.requests import Request

from msgsvc_core.errors import Forbidden, RateLimitProject
from msgsvc_core.limits import Window
from msgsvc_core.projects.models import ApiKey, Project
from msgsvc_core.service import Service

#: Seconds of the request rate's window (interface spec, section 8: per minute).
RATE_WINDOW_S = 60


def api_key_of(request: Request) -> str | None:
    """The key in `Authorization: Bearer` or `X-API-Key`; None if neither is there."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return request.headers.get("x-api-key") or None


async def authenticate(service: Service, request: Request) -> tuple[Project, ApiKey]:
    """Raises `Unauthorized`, `InvalidApiKey` or `ProjectInactive`."""
    return await service.projects.authenticate(api_key_of(request))


def check_scope(key: ApiKey, area: str) -> None:
    """Raises `Forbidden` if the key does not open that area."""
    if not key.opens(area):
        raise Forbidden(f"the API key has no access to {area!r}")


async def count_request(service: Service, project: Project) -> Window:
    """Counts the request against the project's rate; in this process alone while Redis is away."""
    limit = service.settings.limits.requests_per_minute
    return await service.limiter.hit(
        f"requests:{project.project_id}", limit, RATE_WINDOW_S, when_away="count_locally"
    )


def check_rate(window: Window) -> None:
    """Raises `RateLimitProject` beyond the limit."""
    if not window.allowed:
        raise RateLimitProject(
            f"more than {window.limit} requests in {RATE_WINDOW_S} s",
            retry_after_s=window.retry_after_s,
        )


def rate_headers(window: Window) -> dict[str, str]:
    """The three headers (interface spec, section 8)."""
    return {
        "X-RateLimit-Limit": str(window.limit),
        "X-RateLimit-Remaining": str(window.remaining),
        "X-RateLimit-Reset": str(window.reset_at),
    }
