"""Sample messages of a mailing, before it is sent."""

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import SAMPLE_ADDRESS
from msgsvc_core.db import Tx
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.content import ATTRIBUTE, MailingContent, read_column
from msgsvc_core.mailings.models import MailingMessage
from msgsvc_core.mailings.validation import MailingValidation
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.preferences_links import VARIABLE, PreferencesLinks

#: The recipient of the sample.
_SOMEBODY = {
    "first_name": "Alex",
    "username": "alex",
    "tags": "vip",
    VARIABLE: SAMPLE_ADDRESS,
}


@value_object
class Sample:
    """A sample message for readers of one of `langs`."""

    langs: tuple[str, ...]
    message: OutgoingMessage


async def samples(
    validation: MailingValidation, tx: Tx, project_id: str, message: MailingMessage
) -> list[Sample]:
    """One sample for all languages, or one for each. Raises `ValidationFailed` for an invalid message,
    also for one that lacks values for some recipients, and `NotFound` for an unknown template."""
    content = read_column(await validation.content_of(tx, project_id, message))
    validation.check_values(content)
    languages = validation.languages
    shown = [(lang, _shown(validation, content, lang)) for lang in languages]
    if all(one == shown[0][1] for _, one in shown):
        return [Sample(languages, shown[0][1])]
    return [Sample((lang,), one) for lang, one in shown]


async def message_for(
    validation: MailingValidation,
    tx: Tx,
    project_id: str,
    message: MailingMessage,
    subscriber: Subscriber,
    links: PreferencesLinks,
) -> OutgoingMessage:
    """What one person would get, with their own values. Raises what `samples` does."""
    content = read_column(await validation.content_of(tx, project_id, message))
    validation.check_values(content)
    return validation.render(content, subscriber.lang, content.values_of(subscriber, links))


def _shown(validation: MailingValidation, content: MailingContent, lang: str) -> OutgoingMessage:
    values = {name: _SOMEBODY.get(name, name.removeprefix(ATTRIBUTE)) for name in content.personal}
    if "lang" in values:
        values["lang"] = lang
    return validation.render(content, lang, values)
