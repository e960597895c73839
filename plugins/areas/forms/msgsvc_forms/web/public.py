"""Forms by their public URLs: the version that a page shows, and its token."""

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_forms.models import Form
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.web.posted import TOKEN, Posted
from msgsvc_forms.web.tokens import PageToken, PageTokens


class NoToken(ValidationFailed):
    """The page's token is missing, or has expired."""


class PublicForms:
    """Finds forms by their URLs, and issues tokens for their pages."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        projects: Projects,
        forms: Forms,
        tokens: PageTokens,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._projects = projects
        self._forms = forms
        self._tokens = tokens
        self._settings = settings

    @property
    def token_s(self) -> int:
        """Seconds for which a token can be used."""
        return self._settings.page_hours * 3600

    def new_token(self, form: Form) -> str:
        return self._tokens.new(form, self._clock.now_ms())

    def renewed_token(self, form: Form, posted: Posted) -> str:
        """A token for a page that is shown again with the submitted values.

        A valid token, of any age, proves that enough time was spent on the form: immediate resubmission is
        no sign of a bot.
        """
        now_ms = self._clock.now_ms()
        if self._tokens.read(form.form_id, posted.text(TOKEN)) is not None:
            now_ms -= form.definition.min_fill_seconds * 1000
        return self._tokens.new(form, now_ms)

    async def get(self, form_id: str) -> Form:
        """The newest version. Raises `NotFound`."""
        async with self._db.read() as tx:
            return await self._forms.get_public(tx, form_id)

    async def project(self, form: Form) -> Project:
        """Whose form it is, for the look of its page."""
        async with self._db.read() as tx:
            return await self._projects.get(tx, form.project_id)

    async def version_of(self, form: Form, posted: Posted) -> Form:
        """The version that was filled in: that of the page's token, else the newest."""
        token = self._tokens.read(form.form_id, posted.text(TOKEN))
        if token is None or token.version == form.version:
            return form
        async with self._db.read() as tx:
            known = await self._forms.find_version(tx, form.project_id, form.form_id, token.version)
        return known or form

    def token_of(self, form: Form, posted: Posted) -> PageToken | None:
        """The token of the page that was filled in; None for a form that asks for none.

        Raises `NoToken`.
        """
        token = self._tokens.read(form.form_id, posted.text(TOKEN))
        age_ms = 0 if token is None else self._clock.now_ms() - token.issued_ms
        if token is not None and age_ms <= self.token_s * 1000:
            return token
        if token is None and not form.definition.min_fill_seconds and not posted.text(TOKEN):
            return None
        where = f"GET /f/{form.form_id}/token"
        if not posted.text(TOKEN):
            raise NoToken("is required; {path} gives a new one", field=TOKEN, path=where)
        raise NoToken("is not valid any more; {path} gives a new one", field=TOKEN, path=where)
