"""Limits of every message, on any channel."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels.contract import Channel
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.content.markup import visible_length
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import value_object

#: How many times as long as its visible characters a text with markup may be, so that parsing it is bounded
#: (decision 0075).
MARKUP_FACTOR = 2


def length_of_markup(text_format: Format, limit: int) -> int:
    """The maximum length of a text with its markup, if readers may see `limit` characters of it."""
    return limit if text_format == "plain" else MARKUP_FACTOR * limit


def is_too_long(text: str, text_format: Format, limit: int) -> bool:
    """Whether readers would see more than `limit` characters, or the markup is far longer than they see."""
    if len(text) <= limit:
        return False
    return (
        len(text) > length_of_markup(text_format, limit)
        or visible_length(text, text_format) > limit
    )


def exceeded_limit(length: int, text_format: Format, limit: int) -> int:
    """What a text of that length that is too long exceeds: the length with markup, or `limit`."""
    with_markup = length_of_markup(text_format, limit)
    return with_markup if length > with_markup else limit


def too_long(length: int, text_format: Format, limit: int, field: str = "text") -> ValidationFailed:
    """The error for a text of that length that is too long."""
    exceeded = exceeded_limit(length, text_format, limit)
    if exceeded > limit:
        return ValidationFailed(
            "must be at most {limit} characters with its markup", field=field, limit=exceeded
        )
    return ValidationFailed("must be at most {limit} characters", field=field, limit=limit)


@value_object
class MessageLimits:
    """The limits of the settings on the size of a message."""

    text_length: int
    button_rows: int
    buttons_per_row: int

    @classmethod
    def of(cls, limits: LimitSettings) -> "MessageLimits":
        return cls(limits.text_length, limits.button_rows, limits.buttons_per_row)

    def check_content(self, channel: Channel, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that exceeds the limits, or that the channel does not
        support."""
        self.check_size(content)
        if problem := channel.problem(content):
            raise ValidationFailed(problem)

    def check_size(self, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that exceeds the limits."""
        if self.is_too_long(content):
            raise too_long(len(content.text), content.format, self.text_length)
        self._check_buttons(content.buttons)

    def is_too_long(self, content: OutgoingMessage) -> bool:
        """Whether the text exceeds the limit."""
        return is_too_long(content.text, content.format, self.text_length)

    def _check_buttons(self, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) > self.button_rows:
            raise ValidationFailed("at most {limit} rows", field="buttons", limit=self.button_rows)
        for number, row in enumerate(rows):
            if not 1 <= len(row) <= self.buttons_per_row:
                raise ValidationFailed(
                    "1-{limit} buttons", field=f"buttons[{number}]", limit=self.buttons_per_row
                )
