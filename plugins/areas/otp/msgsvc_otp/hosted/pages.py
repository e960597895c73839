"""GET and POST /code/{token}, and POST /code/{token}/again."""

from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import (
    ApiError,
    BillingBlocked,
    Conflict,
    RateLimitProject,
    TooEarly,
)
from msgsvc_core.limits import Limiter
from msgsvc_core.pages import page_endpoint, page_headers, static_files
from msgsvc_core.pages.posting import posted_values
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_core.security.networks import customer_network
from msgsvc_otp.errors import OtpExpired, OtpInvalid, OtpMaxAttempts, OtpRateLimited
from msgsvc_otp.hosted.models import Fault, OpenedPage
from msgsvc_otp.hosted.rendering import CodeTemplates, root_of
from msgsvc_otp.hosted.service import CodePages
from msgsvc_otp.settings import OtpSettings

STATIC = Path(__file__).parent / "static"

WINDOW_S = 60

#: Characters of a form's body: a code, and what a browser adds.
FORM_BYTES = 4096


class HostedCodes:
    """The routes. Tokens have no `_`, so the static files never conflict with a page."""

    def __init__(
        self,
        *,
        db: Database,
        limiter: Limiter,
        settings: OtpSettings,
        pages: CodePages,
        templates: CodeTemplates,
    ) -> None:
        self._db = db
        self._limiter = limiter
        self._settings = settings
        self._pages = pages
        self._templates = templates

    def routes(self) -> list[BaseRoute]:
        again = page_endpoint(self.again, self._templates.problem)
        page = page_endpoint(self.page, self._templates.problem)
        return [
            Mount("/code/_static", static_files(STATIC)),
            Route("/code/{token}/again", again, methods=["POST"]),
            Route("/code/{token}", page, methods=["GET", "POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """The page, or by POST a guess. Opening it changes nothing: messengers and browsers look ahead."""
        await self._count(request)
        if request.method == "POST":
            return await self._enter(request)
        return self._templates.code(request, await self._open(request))

    async def again(self, request: Request) -> Response:
        """The button that sends another code."""
        await self._count(request)
        opened = await self._open(request)
        try:
            async with self._db.transaction() as tx:
                await self._pages.send_again(tx, opened.token)
        except (TooEarly, OtpRateLimited, Conflict, BillingBlocked) as error:
            return self._templates.code(request, opened, _fault(error), error.retry_after_s)
        lang = self._templates.language(request, opened.page.lang)
        return _see_other(f"{root_of(request)}/{opened.token}?lang={lang}", opened)

    async def _enter(self, request: Request) -> Response:
        opened = await self._open(request)
        form = await posted_values(request, max_bytes=FORM_BYTES, max_values=4)
        typed = "".join(str(form.get("code") or "")[:64].split())
        if not typed or opened.state != "asks":
            return self._templates.code(request, opened, "empty" if not typed else None)
        try:
            async with self._db.transaction() as tx:
                result = await self._pages.enter(tx, opened.token, typed)
        except OtpRateLimited as error:
            return self._templates.code(request, opened, "blocked", error.retry_after_s)
        except (OtpInvalid, OtpExpired, OtpMaxAttempts):
            # It ended while somebody was typing: the page says how.
            return self._templates.code(request, await self._open(request))
        if isinstance(result, OtpInvalid):
            opened = await self._open(request)
            return self._templates.code(request, opened, "wrong")
        assert result.back is not None, "a right code leads back"
        return _see_other(result.back, result)

    async def _open(self, request: Request) -> OpenedPage:
        async with self._db.read() as tx:
            opened = await self._pages.open(tx, request.path_params["token"])
        set_page_brand(request, opened.project)
        return opened

    async def _count(self, request: Request) -> None:
        """Raises `RateLimitProject`. It bounds load: guesses are limited for each code and person."""
        network = customer_network(request.client.host if request.client else "")
        limit = self._settings.page_requests_per_minute
        window = await self._limiter.hit(
            f"otp.pages:{network}", limit, WINDOW_S, when_away="count_locally"
        )
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} requests in {seconds} s from one address",
                limit=limit,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


def _fault(error: ApiError) -> Fault:
    if isinstance(error, TooEarly):
        return "too_early"
    return "too_many" if isinstance(error, OtpRateLimited) else "unavailable"


def _see_other(location: str, opened: OpenedPage) -> Response:
    headers = page_headers(forms_to=[opened.page.return_url])
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, headers)
