"""Whether a chain can be gone through: what is wrong is told when it is made, not to each person."""

from msgsvc_core.db import Tx
from msgsvc_core.errors import ApiError, NotFound, ValidationFailed
from msgsvc_core.json_text import to_json
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.models import METADATA_BYTES
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_drip.course import Course, StepMessage, When

#: Every language that a person can have.
LANGUAGES = ("en", "ru")


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
            raise ValidationFailed(f"steps[{number}]: {error.message}") from None


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
    for lang in LANGUAGES:
        body = message.to_body(_somebody(project_id, lang), service.settings.default_lang)
        await _check_body(service, tx, project_id, body, lang)


async def _check_body(service: Service, tx: Tx, project_id: str, body: SendBody, lang: str) -> None:
    if body.template is None:
        content = body.to_message()
    else:
        rendered = await service.templates.render(
            project_id, body.template, body.variables or {}, lang, tx
        )
        content = rendered.to_message()
    service.messages.check_size(content)
    problems = [each.problem(content) for each in service.channels.all_of(project_id)]
    # One channel that takes it is enough; for people on others the step is left out.
    if problems and all(problems):
        raise ValidationFailed(f"message: {problems[0]}")


def _somebody(project_id: str, lang: str) -> Subscriber:
    """Whoever it may be: what a message looks like does not depend on more."""
    return Subscriber(
        project_id=project_id,
        subscriber_id="",
        channel="",
        bot="",
        user_id="",
        chat_id="",
        first_name="x",
        username="x",
        lang=lang,
        external_id=None,
        status="active",
        source="api",
        created_at_ms=0,
        last_seen_at_ms=0,
    )
