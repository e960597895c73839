"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.files import StoredFile
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.parts import Built
from msgsvc_core.plugins.composed import ComposedPlugin
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_forms.copies import Copies
from msgsvc_forms.dashboard import pages
from msgsvc_forms.dialogues import Dialogues
from msgsvc_forms.errors import FORM_ERRORS
from msgsvc_forms.events import FORM_EVENTS
from msgsvc_forms.inbound import FormBot
from msgsvc_forms.jobs import Removal
from msgsvc_forms.personal_data import PERSONAL_DATA
from msgsvc_forms.prompts import Prompts
from msgsvc_forms.reminders import Reminders
from msgsvc_forms.routes import router
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.sharing import Sharing
from msgsvc_forms.submission_router import SubmissionRouter
from msgsvc_forms.submissions import Submissions
from msgsvc_forms.web.intake import Intake
from msgsvc_forms.web.pages import WebForms
from msgsvc_forms.web.public import PublicForms
from msgsvc_forms.web.rendering import FormPages
from msgsvc_forms.web.tokens import PageTokens


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("forms", FormsSettings)


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return FORM_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return FORM_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("forms", Path(__file__).parent / "migrations")


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "FormsPlugin":
    return FormsPlugin(context, [_forms, _dialogues, _web])


class FormsPlugin(ComposedPlugin):
    """The plugin's objects, and what they do for the core."""

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        await self.get(Copies).erase_person(project_id, subscriber_id)

    @hookimpl
    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        await self.get(Dialogues).file_fetched(tx, file)

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return self.get(WebForms).routes()

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints


def _forms(*, context: PluginContext, settings: FormsSettings) -> Built:
    copies = Copies(
        clock=context.clock,
        db=context.db,
        jobs=context.jobs,
        messages=context.messages,
        mailings=context.mailings,
        tickets=context.peers.tickets,
    )
    submission_router = SubmissionRouter(
        settings=context.config,
        texts=context.texts,
        channels=context.channels,
        subscribers=context.subscribers,
        tags=context.tags,
        messages=context.messages,
        mailings=context.mailings,
        tickets=context.peers.tickets,
    )
    forms = Forms(
        clock=context.clock,
        jobs=context.jobs,
        projects=context.projects,
        router=submission_router,
        settings=settings,
    )
    submissions = Submissions(
        clock=context.clock,
        events=context.events,
        billing=context.billing,
        subscribers=context.subscribers,
        files=context.files,
        forms=forms,
        router=submission_router,
        copies=copies,
    )
    removal = Removal(clock=context.clock, submissions=submissions, settings=settings)
    return Built(provides=[forms, submissions, copies], jobs=lambda: [*removal.specs, copies.spec])


def _dialogues(
    *, context: PluginContext, settings: FormsSettings, forms: Forms, submissions: Submissions
) -> Built:
    """Forms that a bot asks for question by question."""
    config = context.config
    dialogues = Dialogues(
        clock=context.clock,
        projects=context.projects,
        subscribers=context.subscribers,
        files=context.files,
        outbox=context.outbox,
        forms=forms,
        submissions=submissions,
        prompts=Prompts(
            texts=context.texts,
            default_lang=config.default_lang,
            channels=context.channels,
            forms=forms,
        ),
    )
    reminders = Reminders(
        clock=context.clock,
        subscribers=context.subscribers,
        outbox=context.outbox,
        dialogues=dialogues,
        settings=settings,
    )
    sharing = Sharing(
        channels=context.channels,
        texts=context.texts,
        base_url=config.base_url,
        default_lang=config.default_lang,
    )
    bot = FormBot(
        clock=context.clock,
        jobs=context.jobs,
        projects=context.projects,
        subscribers=context.subscribers,
        files=context.files,
        forms=forms,
        dialogues=dialogues,
        settings=settings,
    )
    return Built(provides=[dialogues, sharing], jobs=lambda: reminders.specs, inbound=bot.rules)


def _web(
    *, context: PluginContext, settings: FormsSettings, forms: Forms, submissions: Submissions
) -> Built:
    """Forms on a page."""
    config = context.config
    public = PublicForms(
        clock=context.clock,
        db=context.db,
        projects=context.projects,
        forms=forms,
        tokens=PageTokens(context.secrets),
        settings=settings,
    )
    intake = Intake(
        clock=context.clock,
        db=context.db,
        limiter=context.limiter,
        texts=context.texts,
        files=context.files,
        submissions=submissions,
        forms=public,
        settings=settings,
    )
    pages_of_forms = FormPages(
        texts=context.texts, default_lang=config.default_lang, languages=config.languages
    )
    web = WebForms(
        forms=public, intake=intake, pages=pages_of_forms, config=config, settings=settings
    )
    return Built(provides=[web])
