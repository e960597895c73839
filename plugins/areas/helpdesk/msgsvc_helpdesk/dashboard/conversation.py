"""A ticket's conversation as its page shows it: authors, files, delivery status."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgsvc_core.api.pagination import after_cursor, next_cursor
from msgsvc_core.dashboard import PageContext
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.members import Members
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages
from msgsvc_helpdesk.dashboard.acting import viewer_of
from msgsvc_helpdesk.models import Entry, Ticket
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.team.viewers import TicketViewers

#: Entries of one page.
LIMIT = 50

#: What a browser shows as a picture, and does not run.
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file beside what was said. `url` is empty while it is not there."""

    file: StoredFile
    url: str

    @property
    def is_picture(self) -> bool:
        return bool(self.url) and self.file.mime_type in _PICTURES


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """One entry; `message` is the core's, which brings an answer, and `link` a file at another place."""

    entry: Entry
    who: str
    files: Sequence[ShownFile]
    message: Message | None
    link: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The oldest of the page first. `earlier` is the cursor of what was said before."""

    entries: Sequence[ConversationEntry]
    earlier: str | None
    #: Another one as soon as something of it looks different.
    marker: str
    #: Who else has the ticket open: name, and whether they are writing.
    present: Sequence[tuple[str, bool]] = ()


class Conversations:
    """Reads what was said in tickets, for their pages."""

    def __init__(
        self,
        *,
        tickets: Tickets,
        members: Members,
        messages: Messages,
        files: Files,
        viewers: TicketViewers,
        base_url: str,
    ) -> None:
        self._tickets = tickets
        self._members = members
        self._messages = messages
        self._files = files
        self._viewers = viewers
        self._base_url = base_url

    async def page(self, page: PageContext, ticket: Ticket, cursor: str = "") -> Conversation:
        """A page of what was said; the newest without a cursor. Raises `BadRequest`."""
        tx, project_id = page.tx, page.project_id
        after = after_cursor(cursor or None)
        found = await self._tickets.entries(tx, project_id, ticket.ticket_id, after, LIMIT + 1)
        entries = found[:LIMIT]
        files = await self._shown_files(page, entries)
        message_ids = [entry.message_id for entry in entries if entry.message_id]
        messages = await self._messages.get_many(tx, project_id, message_ids)
        others = [
            one
            for one in await self._viewers.present(tx, project_id, viewer_of(page))
            if one.ticket_id == ticket.ticket_id
        ]
        ids = [entry.member_id for entry in entries if entry.member_id]
        ids += [one.viewer_id for one in others]
        members = await self._members.get_many(tx, project_id, ids)
        said = []
        for entry in reversed(entries):
            member = members.get(entry.member_id or "")
            said.append(
                ConversationEntry(
                    entry,
                    who="" if member is None else member.name,
                    files=[files[each] for each in entry.file_ids if each in files],
                    message=messages.get(entry.message_id or ""),
                    link=_link(entry),
                )
            )
        earlier = next_cursor(entries[-1].entry_id) if len(found) > LIMIT else None
        present = [
            (members[one.viewer_id].name, one.is_typing)
            if one.viewer_id in members
            else (page._("A colleague"), one.is_typing)
            for one in others
        ]
        return Conversation(said, earlier, _marker(ticket, said, sorted(present)), present)

    async def _shown_files(
        self, page: PageContext, entries: Sequence[Entry]
    ) -> dict[str, ShownFile]:
        ids = [file_id for entry in entries for file_id in entry.file_ids]
        found = await self._files.get_many(page.tx, page.project_id, ids)
        return {file.file_id: ShownFile(file, self._address(page, file)) for file in found}

    def _address(self, page: PageContext, file: StoredFile) -> str:
        """Where this browser reads a file: at the host of the page, which its policy asks for."""
        if not file.is_ready:
            return ""
        url, _expires_s = self._files.address(file)
        mounted_at = page.root.removesuffix("/dashboard")
        return mounted_at + url.removeprefix(self._base_url)


def _link(entry: Entry) -> str:
    """A file that is not ours; none of another kind of address is ever a link."""
    url = "" if entry.media is None else entry.media.url
    return url if urlsplit(url).scheme in {"http", "https"} else ""


def _marker(
    ticket: Ticket, entries: Sequence[ConversationEntry], present: Sequence[tuple[str, bool]]
) -> str:
    looks = [str(ticket.updated_at_ms), *map(repr, present)]
    for one in entries:
        states = ",".join(each.file.status for each in one.files)
        delivery = "" if one.message is None else one.message.status
        looks.append(f"{one.entry.entry_id} {one.entry.edited_at_ms} {states} {delivery}")
    return hashlib.sha256("\n".join(looks).encode()).hexdigest()[:24]
