"""The message with a code: a template of the project if it has one, else the default text."""

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.messages.templates.models import StoredTemplate
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_otp import texts
from msgsvc_otp.models import OneTimeCode

#: Key of the template for every purpose; `otp_<purpose>` comes before it.
TEMPLATE = "otp"

#: What a template must show.
CODE_VARIABLE = "code"


class Wording:
    """Renders messages with codes."""

    def __init__(self, *, projects: Projects, templates: Templates, texts: Texts) -> None:
        self._projects = projects
        self._templates = templates
        self._texts = texts

    def language(self, issued: OneTimeCode, subscriber: Subscriber) -> str:
        """The request's language, if there is one of ours for it; else the person's."""
        return self._texts.choose(issued.lang, subscriber.lang)

    async def message(self, tx: Tx, request: OneTimeCode, lang: str, code: str) -> OutgoingMessage:
        """The message for a reader of `lang`.

        Raises `ValidationFailed` for a project's template that does not show the code, or has unknown
        variables.
        """
        project = await self._projects.get(tx, request.project_id)
        template = await self._template(tx, request)
        if template is None:
            return texts.code_message(
                self._texts.into(lang, __name__),
                project=project.public_name,
                code=code,
                minutes=request.ttl_minutes,
            )
        self._templates.check_shows(template, CODE_VARIABLE)
        variables = {
            CODE_VARIABLE: code,
            "minutes": request.ttl_minutes,
            "project": project.public_name,
            "purpose": request.purpose,
        }
        try:
            content = await self._templates.render(
                request.project_id, template.key, variables, lang, tx
            )
        except ValidationFailed as error:
            raise error.said_as("template {key!r}: {reason}", key=template.key) from None
        return content.to_message(silent=False)

    async def _template(self, tx: Tx, request: OneTimeCode) -> StoredTemplate | None:
        for key in (f"{TEMPLATE}_{request.purpose}", TEMPLATE):
            try:
                return await self._templates.find(tx, request.project_id, key)
            except NotFound:
                continue
        return None
