"""A fake of the plugin that stores tickets."""

from msgsvc_core.db import Tx
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest


class FakeTicketDesk(TicketDesk):
    """`opened` contains the requests for tickets, and `forgotten` the sources removed from them. With
    `keeps_tickets=False` it behaves as if no plugin stored tickets."""

    def __init__(self, *, keeps_tickets: bool = True) -> None:
        self.opened: list[TicketRequest] = []
        #: Project, kind of source, id of the source.
        self.forgotten: list[tuple[str, str, str]] = []
        self.keeps_tickets = keeps_tickets
        super().__init__(
            open_ticket=self._note,
            forget_source=self._forget,
            is_open=lambda: self.keeps_tickets,
        )

    async def _note(self, tx: Tx, request: TicketRequest) -> str | None:
        if not self.keeps_tickets:
            return None
        source = (request.project_id, request.source, request.source_id)
        known = [(each.project_id, each.source, each.source_id) for each in self.opened]
        if source not in known:
            self.opened.append(request)
            known.append(source)
        return f"tic_{known.index(source) + 1}"

    async def _forget(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        self.forgotten.append((project_id, source, source_id))
