"""Previews of a message on each channel, with the reason why a channel would refuse it."""

from collections.abc import Iterable
from dataclasses import replace

from msgsvc_core.channels.contract import Channel
from msgsvc_core.content.markup import Span, visible_length
from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.limits import MessageLimits


@value_object
class Preview:
    """A message as some channels show it in the same way.

    `problem` is why it would be refused, naming the field; None if it would be sent. `length` is that of the
    text without markup, in the channel's unit, and `most` its maximum.
    """

    channels: tuple[str, ...]
    spans: tuple[Span, ...]
    media: Media | None
    buttons: tuple[tuple[Button, ...], ...]
    problem: str | None
    length: int
    most: int


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
            found[alike[0]] = replace(known, channels=known.channels + one.channels)
        else:
            found.append(one)
    return found


def _looks(preview: Preview) -> Preview:
    """Everything except the names of the channels."""
    return replace(preview, channels=())


def _preview(
    channel: Channel, message: OutgoingMessage, refused: str | None, text_length: int
) -> Preview:
    takes = channel.capabilities
    most = takes.max_text_length
    if message.media is not None and takes.max_caption_length is not None:
        most = takes.max_caption_length
    return Preview(
        channels=(channel.name,),
        spans=tuple(channel.appearance(message)),
        media=message.media,
        buttons=message.buttons,
        problem=refused or channel.problem(message),
        length=visible_length(message.text, message.format, takes.text_unit),
        most=min(most, text_length),
    )


def _breaks_limits(limits: MessageLimits, message: OutgoingMessage) -> str | None:
    try:
        limits.check_size(message)
    except ValidationFailed as error:
        return error.message
    return None
