"""Previews of a message on each channel, with the reason why a channel would refuse it."""

from collections.abc import Iterable
from dataclasses import replace

from msgsvc_core.channels.buttons.fallbacks import links_of, replies_of
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.look import MessengerLook
from msgsvc_core.content.markup import Span, visible_length
from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.limits import MessageLimits

#: The share of the maximum length from which a text is nearly too long: the values of recipients may be
#: longer than those of the preview.
NEARLY = 0.9


@value_object
class Messenger:
    """A messenger's name and drawing, from its kind (`ChannelKind`); either may be empty."""

    title: str
    mark: str


@value_object
class Preview:
    """A message as some channels show it in the same way.

    `problem` is why it would be refused, naming the field; None if it would be sent. `length` is that of the
    text without markup, in the channel's unit, and `most` its maximum. `messengers` are those of `channels`,
    in their order.
    """

    channels: tuple[str, ...]
    spans: tuple[Span, ...]
    media: Media | None
    buttons: tuple[tuple[Button, ...], ...]
    problem: str | None
    length: int
    most: int
    messengers: tuple[Messenger, ...]
    #: What stands below the text on a messenger without buttons: addresses, and numbered replies.
    links: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    #: The colours of the chats, and where buttons are; None for those of the page.
    look: MessengerLook | None = None
    #: Whether the maximum is that of a text beside a file, which is shorter.
    is_caption: bool = False

    @property
    def is_nearly_too_long(self) -> bool:
        return self.length >= NEARLY * self.most


def previews(
    channels: Iterable[Channel], message: OutgoingMessage, limits: MessageLimits
) -> list[Preview]:
    """One preview for all channels that show the message in the same way. Calls no messenger."""
    refused = _breaks_limits(limits, message)
    found: list[Preview] = []
    for channel in channels:
        one = _preview(channel, message, refused, limits.text_length)
        alike = [number for number, known in enumerate(found) if _looks(known) == _looks(one)]
        if alike:
            known = found[alike[0]]
            found[alike[0]] = replace(
                known,
                channels=known.channels + one.channels,
                messengers=known.messengers + one.messengers,
            )
        else:
            found.append(one)
    return found


def _looks(preview: Preview) -> Preview:
    """Everything except which channels they are."""
    return replace(preview, channels=(), messengers=())


def _preview(
    channel: Channel, message: OutgoingMessage, refused: str | None, text_length: int
) -> Preview:
    takes = channel.capabilities
    limit, is_caption = channel.text_limit(message), False
    if message.media is not None and takes.max_caption_length is not None:
        limit, is_caption = takes.max_caption_length, True
    is_native = takes.buttons in {"native", "pages"}
    return Preview(
        channels=(channel.name,),
        spans=tuple(channel.appearance(message)),
        media=message.media,
        buttons=message.buttons if is_native else (),
        problem=refused or channel.problem(message),
        length=visible_length(message.text, message.format, takes.text_unit),
        most=min(limit, text_length),
        messengers=(Messenger(channel.identity.title, channel.identity.mark),),
        links=() if is_native else tuple(links_of(message)),
        replies=tuple(replies_of(message)) if takes.buttons == "words" else (),
        look=channel.identity.look,
        is_caption=is_caption and limit < text_length,
    )


def _breaks_limits(limits: MessageLimits, message: OutgoingMessage) -> str | None:
    try:
        limits.check_size(message)
    except ValidationFailed as error:
        return error.message
    return None
