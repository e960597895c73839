"""Templates of projects: validation, storage and rendering."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.substitution import (
    SAMPLE_ADDRESS,
    SERVICE_ADDRESS,
    WrongVariable,
    sample_values,
    text_template,
    to_text,
)
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.messages.content import Content, ContentOrTemplate
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.templates import store
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    PreviewMessage,
    PreviewTemplateBody,
    Problem,
    StoredTemplate,
    TemplateAnswer,
    TemplateContent,
    TemplatePreviewAnswer,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.rendering import (
    Rendering,
    read_column,
    read_content,
)

if TYPE_CHECKING:
    from msgsvc_core.content.outgoing import OutgoingMessage


class Templates:
    """The message templates of projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        channels: Channels,
        limits: MessageLimits,
        languages: Sequence[str],
        default_lang: str,
        most: int,
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._limits = limits
        self._languages = languages
        self._default_lang = default_lang
        #: Maximum templates per project.
        self._most = most
        self._contents = DataLoader(db, store.find_contents)

    async def create(self, tx: Tx, project_id: str, body: CreateTemplateBody) -> StoredTemplate:
        """Raises `ValidationFailed`, and `Conflict` for a key in use and at the limit."""
        column = self._checked(project_id, body.to_content())
        await tx.lock(f"templates of {project_id}")
        now_ms = self._clock.now_ms()
        template = StoredTemplate(
            project_id=project_id,
            key=body.key,
            template_id=new_id("tpl"),
            content=column,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        known = await store.count(tx, project_id)
        if not await store.insert(tx, template):
            raise Conflict("you have a template {key!r} already", field="key", key=body.key)
        if known >= self._most:
            raise Conflict("a project has at most {limit} templates", limit=self._most)
        return template

    async def find(self, tx: Tx, project_id: str, key: str) -> StoredTemplate:
        """Raises `NotFound`, also for another project's template."""
        template = await store.find(tx, project_id, key)
        if template is None:
            raise _not_found(key)
        return template

    async def page(
        self, tx: Tx, project_id: str, after: str | None, limit: int
    ) -> list[StoredTemplate]:
        """Up to `limit` templates, newest first, from before `after`."""
        return await store.list_page(tx, project_id, after, limit)

    async def update(
        self, tx: Tx, project_id: str, key: str, body: UpdateTemplateBody
    ) -> StoredTemplate:
        """The template after the change. Raises `NotFound` and `ValidationFailed`.

        Queued messages are not affected.
        """
        await tx.lock(f"templates of {project_id}")
        template = await self.find(tx, project_id, key)
        before = read_column(template.content).content
        content = validate(TemplateContent, body.merged(before), languages=None)
        changed = replace(
            template,
            content=self._checked(project_id, content),
            updated_at_ms=self._clock.now_ms(),
        )
        await store.update(tx, changed)
        return changed

    async def delete(self, tx: Tx, project_id: str, key: str) -> None:
        """Raises `NotFound`. Queued messages are still sent."""
        if not await store.delete(tx, project_id, key):
            raise _not_found(key)

    async def render(
        self,
        project_id: str,
        key: str,
        variables: Mapping[str, Any],
        lang: str,
        tx: Tx | None = None,
    ) -> Content:
        """The template for a reader of `lang`. Without `tx` the lookup is batched with those of other
        requests. Raises `NotFound` and `ValidationFailed`."""
        rendering = await self._read(project_id, key, tx)
        return self._rendered(rendering, variables, lang)

    def check_shows(self, template: StoredTemplate, variable: str) -> None:
        """Raises `ValidationFailed` if the text of a language has no place for a variable, such as that of a
        code: a message without it would be of no use to those who read that language."""
        content = read_column(template.content).content
        by_lang = {"": content.text} if isinstance(content.text, str) else content.text
        for lang, text in by_lang.items():
            holes = text_template(text, content.format).holes
            if variable not in {hole.name for hole in holes}:
                raise ValidationFailed(
                    "template {key!r}: {place}: must hold {{{{ {variable} }}}}",
                    key=template.key,
                    place=f"text.{lang}" if lang else "text",
                    variable=variable,
                )

    async def content_of(self, tx: Tx, project_id: str, key: str) -> TemplateContent:
        """A template's contents, not rendered. Raises `NotFound`."""
        return (await self._read(project_id, key, tx)).content

    async def content_of_message(
        self, tx: Tx, project_id: str, message: ContentOrTemplate[Any, Any, Any]
    ) -> TemplateContent:
        """The contents of a message, or of its template, not rendered. Raises `NotFound`, and
        `ValidationFailed` for contents that a template can't hold."""
        if message.template is None:
            return TemplateContent.of(message)
        return await self.content_of(tx, project_id, message.template)

    async def preview(
        self, project_id: str, key: str, body: PreviewTemplateBody
    ) -> TemplatePreviewAnswer:
        """The message in each language, and why channels would refuse it.

        Raises the errors of `render`.
        """
        rendering = await self._read(project_id, key, None)
        messages = []
        for lang in self._languages if body.lang is None else (body.lang,):
            values = {SERVICE_ADDRESS: SAMPLE_ADDRESS, **body.variables}
            message = self._rendered(rendering, values, lang).to_message()
            self._limits.check_size(message)
            messages.append(PreviewMessage.of(lang, message, self._problems(project_id, message)))
        unused = [name for name in body.variables if name not in rendering.variables]
        return TemplatePreviewAnswer(data=messages, unused=unused)

    def try_out(
        self, content: TemplateContent, variables: Mapping[str, Any], lang: str
    ) -> "OutgoingMessage":
        """Renders contents that are not stored. A variable without a value is shown by its name. Raises
        the errors of `render`."""
        rendering = read_content(content)
        values = {name: variables.get(name) or name for name in rendering.variables}
        return self._rendered(rendering, values, lang).to_message()

    def variables_of(self, content: TemplateContent) -> list[str]:
        """The variables of contents, in the order of their first use. Raises `ValidationFailed` for an
        invalid template."""
        return read_content(content).variables

    def answers(self, templates: Sequence[StoredTemplate]) -> list[TemplateAnswer]:
        """Templates in the form of the API."""
        found = []
        for template in templates:
            rendering = read_column(template.content)
            found.append(
                TemplateAnswer.of(
                    template, rendering.content, rendering.variables, rendering.required
                )
            )
        return found

    async def _read(self, project_id: str, key: str, tx: Tx | None) -> Rendering:
        column = await self._contents.get((project_id, key), tx)
        if column is None:
            raise _not_found(key)
        return read_column(column)

    def _rendered(self, rendering: Rendering, variables: Mapping[str, Any], lang: str) -> Content:
        values = {name: to_text(value) for name, value in variables.items()}
        try:
            return rendering.render(lang, self._default_lang, values, self._limits.text_length)
        except WrongVariable as error:
            raise ValidationFailed.because(error, field="variables", joined=True) from None
        except ValidationFailed as error:
            raise error.said_as("once rendered, {reason}", field="template") from None

    def _problems(self, project_id: str, message: "OutgoingMessage") -> list[Problem]:
        channels = self._channels.list_for_project(project_id)
        problems = [(channel.name, channel.problem(message)) for channel in channels]
        return [Problem(channel=name, problem=problem) for name, problem in problems if problem]

    def _checked(self, project_id: str, content: TemplateContent) -> str:
        """The contents in stored form. Raises `ValidationFailed` for content that could never be sent: that
        exceeds the limits, or that no channel of the project supports."""
        rendering = read_content(content)
        shortest = sample_values(rendering.variables)
        for lang in self._languages:
            sent = rendering.render(lang, self._default_lang, shortest, self._limits.text_length)
            message = sent.to_message()
            self._limits.check_size(message)
            self._channels.check_supported(project_id, message)
        return content.to_column()


def _not_found(key: str) -> NotFound:
    return NotFound("there is no template {key!r}", key=key)
