"""Limits of every message, on any channel."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels.contract import Channel
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.values import value_object


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
        if len(content.text) > self.text_length:
            raise ValidationFailed(
                "must be at most {limit} characters", field="text", limit=self.text_length
            )
        self._check_buttons(content.buttons)

    def _check_buttons(self, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) > self.button_rows:
            raise ValidationFailed("at most {limit} rows", field="buttons", limit=self.button_rows)
        for number, row in enumerate(rows):
            if not 1 <= len(row) <= self.buttons_per_row:
                raise ValidationFailed(
                    "1-{limit} buttons", field=f"buttons[{number}]", limit=self.buttons_per_row
                )
