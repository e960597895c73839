"""What a mailing will look like, on each messenger and in each language, before anybody gets it."""

from typing import TYPE_CHECKING

from msgsvc_core.channels import markup
from msgsvc_core.channels.outgoing import Button, Media
from msgsvc_core.db import Tx
from msgsvc_core.errors import ValidationFailed
from msgsvc_core.mailings.content import ATTRIBUTE, read_column
from msgsvc_core.mailings.judging import content_of
from msgsvc_core.mailings.models import MailingMessage
from msgsvc_core.messages.substitution import WrongVariable
from msgsvc_core.messages.templates.rendering import LANGUAGES
from msgsvc_core.record import record

if TYPE_CHECKING:
    from msgsvc_core.channels.outgoing import OutgoingMessage
    from msgsvc_core.service import Service

#: Somebody who gets the message that is shown.
_SAMPLE = {"first_name": "Alex", "username": "alex", "tags": "vip"}


@record
class Preview:
    """A message as one channel shows it. `langs` are those in which it is the same.

    `problem` says why the channel does not take it.
    """

    channel: str
    langs: tuple[str, ...]
    spans: tuple[markup.Span, ...]
    media: Media | None
    buttons: tuple[tuple[Button, ...], ...]
    problem: str | None


async def previews(
    service: "Service", tx: Tx, project_id: str, message: MailingMessage
) -> list[Preview]:
    """One for each channel of the project and each text. Raises `ValidationFailed` for what could never
    be sent, and `NotFound` for a template that is not there."""
    content = read_column(await content_of(service, tx, project_id, message))
    shown: list[tuple[OutgoingMessage, list[str]]] = []
    for lang in LANGUAGES:
        sample = {
            name: _SAMPLE.get(name, name.removeprefix(ATTRIBUTE)) for name in content.personal
        } | ({"lang": lang} if "lang" in content.personal else {})
        try:
            one = content.render(
                lang, service.settings.default_lang, sample, service.settings.limits.text_length
            )
        except WrongVariable as error:
            raise ValidationFailed(f"variables.{error.name}: {error.why}") from None
        same = next((langs for before, langs in shown if before == one), None)
        if same is None:
            shown.append((one, [lang]))
        else:
            same.append(lang)
    return [
        Preview(
            channel.name,
            tuple(langs),
            tuple(markup.to_spans(one.text, one.format)),
            one.media,
            one.buttons,
            channel.problem(one),
        )
        for channel in service.channels.all_of(project_id)
        for one, langs in shown
    ]
