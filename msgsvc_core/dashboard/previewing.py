"""How messengers show the message of a form, before it is sent."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import validate
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.models import MailingMessage
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.previews import Preview
from msgsvc_core.messages.service import Messages

#: The languages of readers, and how messengers show them the message.
Sample = tuple[tuple[str, ...], list[Preview]]


@value_object
class TriedMessage:
    """How the message of a form looks, for the macro `tried` of `composer.html`; or why it is refused."""

    samples: Sequence[Sample] = ()
    refused: ApiError | None = None


class MessagePreviews:
    """Previews for pages that compose a message; they call no messenger."""

    def __init__(self, *, mailings: Mailings, messages: Messages) -> None:
        self._mailings = mailings
        self._messages = messages

    async def samples(
        self, page: PageContext, message: MailingMessage, channels: Collection[str] | None = None
    ) -> list[Sample]:
        """One sample for all languages, or one for each; on the project's channels, or on those in
        `channels`. Raises what `Mailings.samples` does."""
        found = await self._mailings.samples(page.tx, page.project_id, message)
        return [(each.langs, self.of(page, each.message, channels)) for each in found]

    async def tried(
        self,
        page: PageContext,
        written: Mapping[str, Any],
        channels: Collection[str] | None = None,
        *,
        model: type[RequestModel] = MailingMessage,
    ) -> TriedMessage:
        """Samples of a message that is validated as a `model`, which has the fields of `MailingMessage`."""
        try:
            body = validate(model, dict(written), languages=page.languages)
            fields = set(MailingMessage.model_fields)
            message = MailingMessage.model_validate(
                body.model_dump(mode="json", include=fields, exclude_unset=True)
            )
            return TriedMessage(await self.samples(page, message, channels))
        except ApiError as error:
            if error.status >= 500:
                raise
            return TriedMessage(refused=error)

    def of(
        self, page: PageContext, message: OutgoingMessage, channels: Collection[str] | None = None
    ) -> list[Preview]:
        """Previews of a finished message."""
        return self._messages.previews(page.project_id, message, channels)
