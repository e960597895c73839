"""The messages of steps: parsed once, and rendered for each subscriber."""

from collections.abc import Iterable

from msgsvc_core.channels import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import WrongVariable, to_text
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import ApiError, Conflict, ValidationFailed
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.content import MailingContent
from msgsvc_core.messages import SendBody
from msgsvc_core.messages.models import PreparedMessage
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.rendering import read_content
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.subscribers.models import Recipient, Subscriber
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_drip.definition import StepMessage
from msgsvc_drip.receivers import Receiver

#: What names a message while its course is in memory: the project, and the object.
_Key = tuple[str, int]


@value_object
class Read:
    """A parsed message, and the values that are the same for all subscribers."""

    content: MailingContent
    options: SendBody


async def read_message(
    templates: Templates, permissions: Permissions, tx: Tx, project_id: str, message: StepMessage
) -> Read:
    """Raises `NotFound` for an unknown template, and `ValidationFailed`."""
    content = await templates.content_of_message(tx, project_id, message)
    key = message.permission
    if key is not None and not await permissions.exists(tx, project_id, key):
        raise ValidationFailed(
            "this project has no permission {key!r}", field="permission", key=key
        )
    variables = {name: to_text(value) for name, value in (message.variables or {}).items()}
    read = MailingContent(read_content(content), variables, message.silent)
    return Read(read, message.to_options())


class Contents:
    """The messages of one batch of steps."""

    def __init__(
        self,
        *,
        db: Database,
        templates: Templates,
        permissions: Permissions,
        channels: Channels,
        messages: Messages,
        preferences: PreferencesLinks,
        default_lang: str,
        text_length: int,
    ) -> None:
        self._preferences = preferences
        self._db = db
        self._templates = templates
        self._permissions = permissions
        self._channels = channels
        self._messages = messages
        self._default_lang = default_lang
        self._text_length = text_length
        self._read: dict[_Key, Read | ApiError] = {}
        self._bots: dict[str, Channel | None] = {}
        #: What is the same for many was checked for these bots.
        self._checked: set[tuple[int, str]] = set()

    async def read(self, wanted: Iterable[tuple[StepMessage, Subscriber]]) -> None:
        """Reads all messages that are wanted, each once."""
        messages = {_key(message, person): message for message, person in wanted}
        async with self._db.read() as tx:
            for key, message in messages.items():
                self._read[key] = await self._one(tx, key[0], message)

    async def load_bots(self, people: Iterable[Subscriber]) -> None:
        """Finds the bots that they started last: no other may write to them."""
        for bot in {person.bot for person in people}:
            self._bots[bot] = await self._channels.find(bot)

    def prepare(
        self, message: StepMessage, person: Subscriber, receiver: Receiver | None = None
    ) -> tuple[SendBody, PreparedMessage]:
        """The content and options of a message for a subscriber, or for the `receiver` to whom a route leads.
        Raises `ApiError` if it cannot be sent."""
        read, channel = self._read[_key(message, person)], self._bots[person.bot]
        if isinstance(read, ApiError):
            raise read
        if receiver is not None:
            person, channel = receiver.subscriber, receiver.channel
        if channel is None:
            raise Conflict(
                "the bot by which they came to {channel!r} is gone", channel=person.channel
            )
        try:
            shown = read.content.message_for(
                person, self._default_lang, self._text_length, self._preferences
            )
        except WrongVariable as error:
            raise ValidationFailed.because(error, field="variables", joined=True) from None
        self._check(channel, shown, is_shared=not read.content.personal)
        route = None if receiver is None else receiver.route
        return read.options, PreparedMessage(_receiver(person), channel, shown, route)

    def _check(self, channel: Channel, shown: OutgoingMessage, *, is_shared: bool) -> None:
        # What is shared lives as long as its content, so no other object has its id meanwhile.
        key = (id(shown), channel.key)
        if is_shared and key in self._checked:
            return
        self._messages.check_content(channel, shown)
        if is_shared:
            self._checked.add(key)

    async def _one(self, tx: Tx, project_id: str, message: StepMessage) -> Read | ApiError:
        try:
            return await read_message(self._templates, self._permissions, tx, project_id, message)
        except ApiError as error:
            if error.status >= 500:
                raise
            return error


def _key(message: StepMessage, person: Subscriber) -> _Key:
    return person.project_id, id(message)


def _receiver(person: Subscriber) -> Recipient:
    return Recipient(
        subscriber_id=person.subscriber_id,
        channel=person.channel,
        bot=person.bot,
        status=person.status,
        last_seen_at_ms=person.last_seen_at_ms,
        lang=person.lang,
        external_id=person.external_id,
    )
