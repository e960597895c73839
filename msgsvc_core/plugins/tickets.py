"""Tickets: what one plugin wants people to answer; who keeps tickets implements the hook `open_ticket`.

Without such a plugin nobody takes it, and whoever asked is told so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Priority = Literal["low", "normal", "high", "urgent"]


@dataclass(frozen=True, slots=True)
class TicketRequest:
    """A question of a customer that came otherwise than by a message to the bot.

    `subscriber_id` is None for somebody without messenger, who is then known by `customer_name` and
    `customer_email`, as far as they told. The same (`source`, `source_id`), e.g. `form` and the id of
    a submission, opens one ticket, however often it is asked for. `file_ids` are files of the core.
    """

    project_id: str
    source: str
    source_id: str
    text: str
    subject: str = ""
    subscriber_id: str | None = None
    customer_name: str = ""
    customer_email: str = ""
    priority: Priority = "normal"
    tags: Sequence[str] = field(default=())
    file_ids: Sequence[str] = field(default=())
