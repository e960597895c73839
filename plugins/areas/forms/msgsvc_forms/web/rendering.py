"""Renders forms to HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.i18n import Texts, in_language
from msgsvc_core.pages import new_templates, page_headers, request_id
from msgsvc_core.projects.page_brand import page_brand
from msgsvc_core.security.http_urls import origin_of
from msgsvc_forms.addresses import honeypot_of
from msgsvc_forms.answers import WrongAnswer
from msgsvc_forms.errors import FormFilesLimited, FormRateLimited
from msgsvc_forms.models import Form
from msgsvc_forms.question_flow import always_asked
from msgsvc_forms.texts import explain

if TYPE_CHECKING:
    from jinja2 import Environment

#: Maximum number of options shown as a list of buttons; more become a drop-down.
MOST_SHOWN_OPTIONS = 7


@dataclass(frozen=True, slots=True)
class Shown:
    """A form with submitted values, by key, and their errors."""

    form: Form
    lang: str
    token: str
    typed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wrong: Mapping[str, WrongAnswer] = field(default_factory=dict)
    error: ApiError | None = None
    #: Whether files came along, which no page can show again.
    had_files: bool = False


class FormPages:
    """Renders the pages in each language of forms."""

    def __init__(self, *, texts: Texts, default_lang: str, languages: Sequence[str]) -> None:
        self._texts = texts
        self._default_lang = default_lang
        self._languages = languages

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_forms.web")

    def address(self, request: Request, form: Form) -> str:
        """Where a form is, also when the service is mounted below another application."""
        return f"{_root(request)}/{form.form_id}"

    def form(self, request: Request, shown: Shown) -> Response:
        """The form, possibly with errors."""
        definition, error = shown.form.definition, shown.error
        here = self.address(request, shown.form)
        is_limited = isinstance(error, FormRateLimited)
        response = self._page(
            request,
            "form.html",
            shown.lang,
            200 if error is None else error.status,
            _forms_to(shown.form),
            here=here,
            token=shown.token,
            honeypot=honeypot_of(definition),
            definition=definition,
            typed=shown.typed,
            wrong=self._explained(shown),
            always=always_asked(definition),
            is_limited=is_limited,
            is_full=isinstance(error, FormFilesLimited),
            is_late=error is not None and not shown.wrong and not is_limited,
            has_files=any(each.type == "file" for each in definition.fields),
            had_files=shown.had_files,
            most_shown=MOST_SHOWN_OPTIONS,
            languages={lang: f"{here}?lang={lang}" for lang in self._languages},
        )
        return _retry_later(response, error)

    def thanks(self, request: Request, form: Form, lang: str) -> Response:
        """Thank-you text after submitting."""
        here = self.address(request, form)
        return self._page(
            request,
            "thanks.html",
            lang,
            definition=form.definition,
            here=f"{here}?lang={lang}",
            languages={each: f"{here}/thanks?lang={each}" for each in self._languages},
        )

    def problem(self, request: Request, lang: str, error: ApiError) -> Response:
        """A page for what can't be shown."""
        return _retry_later(self._page(request, "problem.html", lang, error.status), error)

    def _explained(self, shown: Shown) -> dict[str, str]:
        _ = self._texts.into(shown.lang, __name__)
        explained = {}
        for each in shown.form.definition.fields:
            if each.key in shown.wrong:
                explained[each.key] = explain(_, each, shown.wrong[each.key])
        return explained

    def _page(
        self,
        request: Request,
        template: str,
        lang: str,
        status: int = 200,
        forms_to: Sequence[str] = (),
        **values: object,
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{_root(request)}/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            say=partial(in_language, lang=lang, default_lang=self._default_lang),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        # Same-origin: a page that sends no referrer sends its form from no origin either.
        return HTMLResponse(html, status, page_headers(referrer="same-origin", forms_to=forms_to))


def _root(request: Request) -> str:
    """Where the pages live, also when the service is mounted below another application."""
    return f"{request.scope.get('root_path', '')}/f"


def _forms_to(form: Form) -> list[str]:
    """Where a browser may be led after it has sent the form in."""
    if form.definition.redirect_url is None:
        return []
    return [origin_of(form.definition.redirect_url)]


def _retry_later(response: Response, error: ApiError | None) -> Response:
    if error is not None and error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response
