"""Tickets opened by other plugins. A helpdesk plugin implements the hook `open_ticket`.

Without such a plugin no ticket is opened, and the caller gets None.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_core.db import Tx

Priority = Literal["low", "normal", "high", "urgent"]


@dataclass(frozen=True, slots=True)
class TicketRequest:
    """A customer's question that arrived by another way than a message to the bot.

    `subscriber_id` is None for a customer without a messenger, who is identified by `customer_name` and
    `customer_email`, if given. (`source`, `source_id`), e.g. `form` and the id of a submission, is an
    idempotency key: repeated requests open one ticket. `file_ids` are files of the core.
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


class TicketDesk:
    """Opens tickets through the plugin that provides them."""

    def __init__(
        self,
        *,
        open_ticket: Callable[[Tx, TicketRequest], Awaitable[str | None]],
        forget_source: Callable[[Tx, str, str, str], Awaitable[None]],
        is_open: Callable[[], bool],
    ) -> None:
        self._open_ticket = open_ticket
        self._forget_source = forget_source
        self._is_open = is_open

    @property
    def is_open(self) -> bool:
        """Whether a loaded plugin provides tickets."""
        return self._is_open()

    async def open(self, tx: Tx, request: TicketRequest) -> str | None:
        """Opens a ticket and returns its id, or None if no loaded plugin provides tickets."""
        return await self._open_ticket(tx, request)

    async def forget_source(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        """Deletes what tickets copied from their source."""
        await self._forget_source(tx, project_id, source, source_id)
