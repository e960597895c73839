"""Whether a chain can be gone through: what is wrong is told when it is made, not to each person."""

from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ApiError, NotFound, ValidationFailed
from msgsvc_core.kernel.json import to_json
from msgsvc_core.mailings.content import ALWAYS, MailingContent
from msgsvc_core.messages.models import METADATA_BYTES
from msgsvc_core.service import Service
from msgsvc_drip.contents import read_message
from msgsvc_drip.course import Course, StepMessage, When


async def check_course(service: Service, tx: Tx, project_id: str, course: Course) -> None:
    """Raises `ValidationFailed` naming the field, and `NotFound` for a template that is not there."""
    for number, step in enumerate(course.steps):
        try:
            await _check_message(service, tx, project_id, step.message)
            if step.when is not None:
                await _check_when(service, tx, project_id, step.when)
        except NotFound as error:
            raise NotFound(f"steps[{number}]: {error.message}") from None
        except ValidationFailed as error:
            raise type(error)(f"steps[{number}]: {error.message}") from None


async def check_permission(service: Service, tx: Tx, project_id: str, key: str) -> None:
    """Raises `ValidationFailed` for one that the project does not have."""
    try:
        await service.permissions.find(tx, project_id, key)
    except ApiError as error:
        raise ValidationFailed(f"permission: {error.message}") from None


async def _check_when(service: Service, tx: Tx, project_id: str, when: When) -> None:
    if when.permission is not None:
        await check_permission(service, tx, project_id, when.permission)
    if when.channel is not None:
        service.channels.check_name(project_id, when.channel)


async def _check_message(service: Service, tx: Tx, project_id: str, message: StepMessage) -> None:
    if message.permission is not None:
        await check_permission(service, tx, project_id, message.permission)
    if message.metadata is not None and len(to_json(message.metadata).encode()) > METADATA_BYTES:
        raise ValidationFailed(f"metadata: must be at most {METADATA_BYTES} bytes as JSON")
    _check_shown(
        service, project_id, (await read_message(service, tx, project_id, message)).content
    )


def _check_shown(service: Service, project_id: str, content: MailingContent) -> None:
    for name in content.unknown:
        raise ValidationFailed(
            f"variables.{name}: is required, or needs a default for who lacks it;"
            f" everybody has {', '.join(ALWAYS)}"
        )
    settings, sample = service.settings, dict.fromkeys(content.personal, "x")
    channels = list(service.channels.all_of(project_id))
    for lang in settings.languages:
        try:
            shown = content.render(lang, settings.default_lang, sample, settings.limits.text_length)
        except WrongVariable as error:
            raise ValidationFailed(f"variables.{error.name}: {error.why}") from None
        service.messages.check_size(shown)
        problems = [each.problem(shown) for each in channels]
        # One channel that takes it is enough; for people on others the step is left out.
        if problems and all(problems):
            raise ValidationFailed(f"message: {problems[0]}")
