"""What plugins do for the core and for each other, behind objects of the core."""

from pluggy import HookRelay

from msgsvc_core.db import Tx
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.parts import Built, Part
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.audit import AuditLog
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest


def _peers(*, hook: HookRelay) -> Built:
    async def open_ticket(tx: Tx, request: TicketRequest) -> str | None:
        opening = hook.open_ticket(tx=tx, request=request)
        return None if opening is None else str(await opening)

    tickets = TicketDesk(
        open_ticket=open_ticket,
        forget_source=in_order(hook.forget_source),
        is_open=lambda: bool(hook.open_ticket.get_hookimpls()),
    )
    sign_ins = SignIns(source=hook.register_sign_ins, on_denied=in_order(hook.on_sign_in_denied))
    accounts = AccountDirectory(source=hook.register_accounts)
    return Built(provides=[tickets, sign_ins, accounts, AuditLog(record=in_order(hook.on_audited))])


PART = Part(build=[_peers])
