"""Deletes tickets: by the project, by age, or the personal data of an erased customer."""

from collections.abc import Sequence
from itertools import chain

from msgsvc_core.db import Tx
from msgsvc_core.files.service import Files
from msgsvc_helpdesk import entry_store, store, thread_store
from msgsvc_helpdesk.service_levels.clocks import stop_clocks


async def remove(files: Files, tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Deletes tickets with the files of their entries."""
    found = await entry_store.files_of(tx, project_id, ticket_ids)
    await files.remove(tx, project_id, found)
    await store.delete(tx, project_id, ticket_ids)


async def remove_merged(
    files: Files, tx: Tx, project_id: str, ticket_id: str, until_ms: int
) -> None:
    """Deletes a ticket that was closed before that time, with those merged into it, unless it was
    reopened, or a more recent ticket was merged into it."""
    ticket = await store.lock(tx, project_id, ticket_id)
    if ticket is None or ticket.closed_at_ms is None:
        return
    if max(ticket.closed_at_ms, ticket.last_message_at_ms) <= until_ms:
        merged = await store.merged_into(tx, project_id, ticket_id)
        await remove(files, tx, project_id, [ticket_id, *merged])


async def forget_source(files: Files, tx: Tx, project_id: str, source: str, source_id: str) -> None:
    """Deletes what a ticket was opened with: the text, its files, and the author, if known only from
    there. Later entries are kept, and so are tickets for something else."""
    ticket = await store.find_by_source(tx, project_id, source, source_id)
    if ticket is not None:
        await store.lock(tx, project_id, ticket.ticket_id)
        nobody = {"customer_email": ""} | ({"customer_name": ""} if ticket.is_virtual else {})
        await store.update(tx, project_id, ticket.ticket_id, nobody)
    found = await entry_store.blank_source(tx, project_id, source_id)
    await files.remove(tx, project_id, found)


async def empty(
    files: Files, tx: Tx, project_id: str, ticket_ids: Sequence[str], now_ms: int
) -> None:
    """Erases a subscriber from their tickets: messages, name and files.

    The tickets are kept, closed and empty, for statistics. No event: `subscription.deleted` covers it.
    """
    if not ticket_ids:
        return
    merged = [await store.merged_into(tx, project_id, ticket_id) for ticket_id in ticket_ids]
    # Also who they were without a messenger; held in the order in which a merge holds tickets.
    ticket_ids = sorted({*ticket_ids, *chain.from_iterable(merged)})
    for ticket_id in ticket_ids:
        ticket = await store.lock(tx, project_id, ticket_id)
        if ticket is None:
            continue
        nothing = {
            "customer_name": "",
            "customer_email": "",
            "subject": "",
            "source_id": None,
            "status": "closed",
            "snoozed_until_ms": None,
            "waiting_since_ms": None,
            "told_waiting_at_ms": None,
            "due_at_ms": None,
            "csat_comment": None,
            "closed_at_ms": now_ms if ticket.closed_at_ms is None else ticket.closed_at_ms,
            "erased_at_ms": now_ms,
        }
        await store.update(tx, project_id, ticket_id, nothing)
    await stop_clocks(tx, project_id, ticket_ids)
    found = await entry_store.files_of(tx, project_id, ticket_ids)
    await files.remove(tx, project_id, found)
    await entry_store.delete_of(tx, project_id, ticket_ids)
    await thread_store.delete_of(tx, project_id, ticket_ids)
