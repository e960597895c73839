"""GET and POST /f/{form_id}, its token, and the page after submission."""

from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.api.envelope import api_error, envelope
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.kernel.ids import is_id
from msgsvc_core.pages import page_endpoint, page_headers, read_language, static_files
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_forms.errors import FormRateLimited
from msgsvc_forms.models import Form
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.web.intake import Intake, WrongAnswers
from msgsvc_forms.web.origins import Origins
from msgsvc_forms.web.posted import LANG, TOKEN, Posted
from msgsvc_forms.web.public import NoToken, PublicForms
from msgsvc_forms.web.reading import MULTIPART, kind_of, reading, wants_page
from msgsvc_forms.web.rendering import FormPages, Shown

STATIC = Path(__file__).parent / "static"


class WebForms:
    """The routes. Ids of forms have no `_`, so paths with one never conflict with a form."""

    def __init__(
        self,
        *,
        forms: PublicForms,
        intake: Intake,
        pages: FormPages,
        config: Settings,
        settings: FormsSettings,
    ) -> None:
        self._forms = forms
        self._intake = intake
        self._pages = pages
        self._config = config
        self._settings = settings
        self._origins = Origins(config.base_url)

    def routes(self) -> list[BaseRoute]:
        return [
            Mount("/f/_static", static_files(STATIC)),
            Route(
                "/f/{form_id}/thanks",
                page_endpoint(self.thanks, self._problem),
                methods=["GET"],
            ),
            Route("/f/{form_id}/token", self.token, methods=["GET", "OPTIONS"]),
            Route("/f/{form_id}", self.form, methods=["GET", "POST", "OPTIONS"]),
        ]

    async def form(self, request: Request) -> Response:
        """The hosted page of a form, and the endpoint that accepts its submissions from any page or
        client."""
        if request.method in {"GET", "HEAD"}:
            return await page_endpoint(self._page, self._problem)(request)
        to_person = request.method == "POST" and wants_page(request)
        try:
            form = await (self._branded_form(request) if to_person else self._form(request))
        except NotFound as error:
            # The form may have been deleted while the page was open.
            if to_person:
                return self._pages.problem(request, self._lang(request), error)
            raise
        if request.method == "OPTIONS":
            return self._origins.preflight(request, form.definition)
        take = self._submit_page if to_person else self._submit_json
        response = await take(request, form)
        self._origins.allow(request, response, form.definition)
        return response

    async def token(self, request: Request) -> Response:
        """A token for forms on your own pages: `{"token", "min_fill_seconds", "expires_in"}`."""
        form = await self._form(request)
        if request.method == "OPTIONS":
            return self._origins.preflight(request, form.definition)
        self._origins.check(request, form.definition)
        body = {
            "token": self._forms.new_token(form),
            "min_fill_seconds": form.definition.min_fill_seconds,
            "expires_in": self._forms.token_s,
        }
        response = JSONResponse(body, headers={"Cache-Control": "no-store"})
        self._origins.allow(request, response, form.definition)
        return response

    async def thanks(self, request: Request) -> Response:
        """The confirmation page."""
        form = await self._branded_form(request)
        return self._pages.thanks(request, form, self._lang(request))

    async def _page(self, request: Request) -> Response:
        lang = self._lang(request)
        form = await self._branded_form(request)
        shown = Shown(form, lang, self._forms.new_token(form))
        return self._pages.form(request, shown)

    def _problem(self, request: Request, error: Exception) -> Response:
        return self._pages.problem(request, self._lang(request), api_error(error))

    async def _submit_json(self, request: Request, form: Form) -> Response:
        try:
            self._origins.check(request, form.definition)
            await self._intake.count_address(form, _address(request))
            async with self._reading(request) as posted:
                submission = await self._intake.submit(form, posted, self._lang(request, posted))
        except Exception as error:  # noqa: BLE001 - the edge; `api_error` logs it
            return envelope(api_error(error), self._config.errors_url)
        body = {
            "submission_id": submission.submission_id,
            "form_id": form.form_id,
            "form_version": submission.version,
        }
        return JSONResponse(body, HTTPStatus.CREATED)

    async def _submit_page(self, request: Request, form: Form) -> Response:
        lang, posted = self._lang(request), Posted({})
        try:
            self._origins.check(request, form.definition)
            refused = await self._refused(form, request)
            if refused is not None and kind_of(request) == MULTIPART:
                raise refused
            async with self._reading(request) as posted:
                lang = self._lang(request, posted)
                if refused is not None:
                    raise refused
                await self._intake.submit(form, posted, lang)
        except (WrongAnswers, NoToken, FormRateLimited) as error:
            if posted.names:
                return await self._page_with_errors(request, form, posted, lang, error)
            return self._pages.problem(request, lang, error)
        except Exception as error:  # noqa: BLE001 - shown as a page; the log has the rest
            return self._pages.problem(request, lang, api_error(error))
        thanks = f"{self._pages.address(request, form)}/thanks?lang={lang}"
        headers = page_headers(referrer="same-origin")
        return RedirectResponse(
            form.definition.redirect_url or thanks, HTTPStatus.SEE_OTHER, headers
        )

    async def _refused(self, form: Form, request: Request) -> FormRateLimited | None:
        """Kept for later: the page that says so still has what was typed."""
        try:
            await self._intake.count_address(form, _address(request))
        except FormRateLimited as error:
            return error
        return None

    async def _page_with_errors(
        self, request: Request, newest: Form, posted: Posted, lang: str, error: ApiError
    ) -> Response:
        """The page with the submitted values and their errors."""
        form = await self._forms.version_of(newest, posted)
        wrong = error.wrong if isinstance(error, WrongAnswers) else {}
        # The same token: what is sent again from this page is the same submission.
        token = posted.text(TOKEN)
        if isinstance(error, NoToken):
            form, token = newest, self._forms.renewed_token(newest, posted)
        had_files = any(posted.files.values())
        shown = Shown(form, lang, token, posted.typed(), wrong, error, had_files)
        return self._pages.form(request, shown)

    def _reading(self, request: Request) -> AbstractAsyncContextManager[Posted]:
        return reading(
            request,
            self._config.server.max_body_bytes,
            self._settings.max_body_bytes,
        )

    async def _form(self, request: Request) -> Form:
        form_id = request.path_params["form_id"]
        if not is_id(form_id, "frm"):
            raise NotFound("there is no form at this address")
        return await self._forms.get(form_id)

    async def _branded_form(self, request: Request) -> Form:
        form = await self._form(request)
        set_page_brand(request, await self._forms.project(form))
        return form

    def _lang(self, request: Request, posted: Posted | None = None) -> str:
        chosen = posted.text(LANG) if posted is not None else ""
        return read_language(
            chosen or request.query_params.get("lang", ""),
            request.headers.get("accept-language", ""),
            self._config.default_lang,
            self._config.languages,
        )


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
