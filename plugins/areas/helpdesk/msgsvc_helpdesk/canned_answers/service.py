"""Canned answers: texts that a project writes once, per language, and answers with by key."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.content.substitution import WrongVariable, to_text
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.messages.content import Content
from msgsvc_core.messages.templates.models import TemplateContent
from msgsvc_core.messages.templates.rendering import Rendering, read_column, read_content
from msgsvc_helpdesk.canned_answers import store
from msgsvc_helpdesk.canned_answers.models import (
    CannedAnswer,
    CannedAnswerAnswer,
    CreateCannedAnswerBody,
    UpdateCannedAnswerBody,
)
from msgsvc_helpdesk.settings import HelpdeskSettings


class CannedAnswers:
    """Their texts follow the rules of the core's templates: the same placeholders and escaping."""

    def __init__(
        self,
        *,
        clock: Clock,
        config: Settings,
        settings: HelpdeskSettings,
    ) -> None:
        self._clock = clock
        self._config = config
        self._settings = settings

    async def create(self, tx: Tx, project_id: str, body: CreateCannedAnswerBody) -> CannedAnswer:
        """Raises `ValidationFailed`, and `Conflict` for a key that is taken and at the limit."""
        content = self._checked(TemplateContent(text=body.text, format=body.format))
        await tx.lock(f"canned answers of {project_id}")
        now_ms, limit = self._clock.now_ms(), self._settings.canned_answers
        answer = CannedAnswer(
            project_id, body.key, new_id("can"), body.title or "", content, now_ms, now_ms
        )
        known = await store.count(tx, project_id)
        if not await store.insert(tx, answer):
            raise Conflict("you have a canned answer {key!r} already", field="key", key=body.key)
        if known >= limit:
            raise Conflict("a project has at most {limit} canned answers", limit=limit)
        return answer

    async def get(self, tx: Tx, project_id: str, key: str) -> CannedAnswer:
        """Raises `NotFound`, for another project's as well."""
        answer = await store.find(tx, project_id, key)
        if answer is None:
            raise _missing(key)
        return answer

    async def page(
        self, tx: Tx, project_id: str, after: str | None, limit: int
    ) -> list[CannedAnswer]:
        """Newest first, from `after` on."""
        return await store.list_page(tx, project_id, after, limit)

    async def update(
        self, tx: Tx, project_id: str, key: str, body: UpdateCannedAnswerBody
    ) -> CannedAnswer:
        """The answer after the change. Raises `NotFound`, `ValidationFailed`."""
        await tx.lock(f"canned answers of {project_id}")
        before = await self.get(tx, project_id, key)
        content = read_column(before.content).content
        after = replace(
            before,
            title=(body.title or "") if "title" in body.model_fields_set else before.title,
            content=self._checked(
                TemplateContent(
                    text=content.text if body.text is None else body.text,
                    format=body.format or content.format,
                )
            ),
            updated_at_ms=self._clock.now_ms(),
        )
        await store.update(tx, after)
        return after

    async def delete(self, tx: Tx, project_id: str, key: str) -> None:
        """Raises `NotFound`. What was answered with it stays."""
        if not await store.delete(tx, project_id, key):
            raise _missing(key)

    async def render(
        self, tx: Tx, project_id: str, key: str, variables: Mapping[str, Any], lang: str
    ) -> Content:
        """The text for a reader of `lang`. Raises `NotFound`, `ValidationFailed`."""
        answer = await self.get(tx, project_id, key)
        values = {name: to_text(value) for name, value in variables.items()}
        try:
            return self._rendered(read_column(answer.content), values, lang)
        except WrongVariable as error:
            raise ValidationFailed.because(error, field="variables", joined=True) from None
        except ValidationFailed as error:
            raise error.said_as("once rendered, {reason}", field="canned") from None

    def shown(self, answer: CannedAnswer) -> CannedAnswerAnswer:
        """The answer as the API shows it."""
        read = read_column(answer.content)
        return CannedAnswerAnswer.of(
            answer, read.content.text, read.content.format, read.variables, read.required
        )

    def _checked(self, content: TemplateContent) -> str:
        """The contents as they are kept. Raises `ValidationFailed` for what could never be sent."""
        rendering = read_content(content)
        shortest = dict.fromkeys(rendering.variables, "x")
        for lang in self._config.languages:
            self._rendered(rendering, shortest, lang)
        return content.to_column()

    def _rendered(self, rendering: Rendering, values: Mapping[str, str], lang: str) -> Content:
        config = self._config
        return rendering.render(lang, config.default_lang, values, config.limits.text_length)


def _missing(key: str) -> NotFound:
    return NotFound("there is no canned answer {key!r}", key=key)
