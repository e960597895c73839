"""Validates a drip campaign when it is saved, rather than per recipient."""

from collections.abc import Collection

from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.content.substitution import WrongVariable, sample_values
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ApiError, NotFound, ValidationFailed
from msgsvc_core.kernel.json import to_json
from msgsvc_core.mailings.content import ALWAYS, MailingContent
from msgsvc_core.messages.fields import METADATA_BYTES
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.routing import Routes
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_drip.contents import read_message
from msgsvc_drip.definition import DripDefinition, StepMessage, When


class DefinitionChecks:
    """Validates campaigns of all projects."""

    def __init__(
        self,
        *,
        permissions: Permissions,
        templates: Templates,
        channels: Channels,
        messages: Messages,
        routes: Routes,
        settings: Settings,
    ) -> None:
        self._routes = routes
        self._permissions = permissions
        self._templates = templates
        self._channels = channels
        self._messages = messages
        self._default_lang = settings.default_lang
        self._languages = settings.languages
        self._text_length = settings.limits.text_length

    async def check_definition(self, tx: Tx, project_id: str, definition: DripDefinition) -> None:
        """Raises `ValidationFailed` naming the field, and `NotFound` for a template that is not there."""
        for number, step in enumerate(definition.steps):
            try:
                names = None
                if step.route_id is not None:
                    names = await self._channels_of_route(tx, project_id, step.route_id)
                await self._check_message(tx, project_id, step.message, names)
                if step.when is not None:
                    await self._check_when(tx, project_id, step.when)
            except (NotFound, ValidationFailed) as error:
                raise error.at(f"steps[{number}]") from None

    async def check_permission(self, tx: Tx, project_id: str, key: str) -> None:
        """Raises `ValidationFailed` for one that the project does not have."""
        try:
            await self._permissions.get(tx, project_id, key)
        except ApiError as error:
            raise ValidationFailed.because(error, field="permission") from None

    async def _channels_of_route(self, tx: Tx, project_id: str, route_id: str) -> set[str]:
        try:
            route = await self._routes.get(tx, project_id, route_id)
        except NotFound as error:
            raise error.at("route_id") from None
        return {step.channel for step in route.steps}

    async def _check_when(self, tx: Tx, project_id: str, when: When) -> None:
        if when.permission is not None:
            await self.check_permission(tx, project_id, when.permission)
        if when.channel is not None:
            self._channels.check_name(project_id, when.channel)

    async def _check_message(
        self, tx: Tx, project_id: str, message: StepMessage, names: Collection[str] | None
    ) -> None:
        if message.permission is not None:
            await self.check_permission(tx, project_id, message.permission)
        metadata = message.metadata
        if metadata is not None and len(to_json(metadata).encode()) > METADATA_BYTES:
            raise ValidationFailed(
                "must be at most {limit} bytes as JSON", field="metadata", limit=METADATA_BYTES
            )
        read = await read_message(self._templates, self._permissions, tx, project_id, message)
        self._check_shown(project_id, read.content, names)

    def _check_shown(
        self, project_id: str, content: MailingContent, names: Collection[str] | None
    ) -> None:
        for name in content.unknown:
            raise ValidationFailed(
                "is required, or needs a default for who lacks it; everybody has {names}",
                field=f"variables.{name}",
                names=", ".join(ALWAYS),
            )
        sample = sample_values(content.personal)
        for lang in self._languages:
            try:
                shown = content.render(lang, self._default_lang, sample, self._text_length)
            except WrongVariable as error:
                raise ValidationFailed.because(error, field="variables", joined=True) from None
            self._messages.check_size(shown)
            # One channel that takes it is enough; for people on others the step is left out.
            self._channels.check_supported(project_id, shown, names, field="message")
