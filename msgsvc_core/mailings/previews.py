"""What people get of a mailing, as an example, before anybody does."""

from typing import TYPE_CHECKING

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import record
from msgsvc_core.mailings.content import ATTRIBUTE, MailingContent, read_column
from msgsvc_core.mailings.judging import content_of
from msgsvc_core.mailings.models import MailingMessage

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Somebody who gets the message that is shown.
_SOMEBODY = {"first_name": "Alex", "username": "alex", "tags": "vip"}


@record
class Sample:
    """What somebody gets, who reads one of `langs`."""

    langs: tuple[str, ...]
    message: OutgoingMessage


async def samples(
    service: "Service", tx: Tx, project_id: str, message: MailingMessage
) -> list[Sample]:
    """One for all languages, or one for each. Raises `ValidationFailed` for what could never be sent, and
    `NotFound` for a template that is not there."""
    content = read_column(await content_of(service, tx, project_id, message))
    languages = service.settings.languages
    shown = [(lang, _shown(service, content, lang)) for lang in languages]
    if all(one == shown[0][1] for _, one in shown):
        return [Sample(languages, shown[0][1])]
    return [Sample((lang,), one) for lang, one in shown]


def _shown(service: "Service", content: MailingContent, lang: str) -> OutgoingMessage:
    values = {name: _SOMEBODY.get(name, name.removeprefix(ATTRIBUTE)) for name in content.personal}
    if "lang" in values:
        values["lang"] = lang
    settings = service.settings
    try:
        return content.render(lang, settings.default_lang, values, settings.limits.text_length)
    except WrongVariable as error:
        raise ValidationFailed(f"variables.{error.name}: {error.why}") from None
