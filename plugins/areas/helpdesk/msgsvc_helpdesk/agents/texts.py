"""Texts for agents, plain text only: they contain customers' input."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgsvc_core.content.markup import utf16_length
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.files import StoredFile
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_helpdesk.agents.buttons import button
from msgsvc_helpdesk.models import Entry, Ticket

#: UTF-16 units of one message: below what every messenger takes, with what stands around the words.
MOST_UNITS = 3500

#: Characters of a name or a subject in a line.
MOST_OF_LINE = 60

#: Characters of a button.
MOST_OF_LABEL = 32

#: Hours for which a button snoozes a ticket.
SNOOZES = (1, 4, 24, 168)


def customer(ticket: Ticket, _: Translate) -> str:
    """The customer's name, in one line."""
    name = _short(ticket.customer_name) or _short(ticket.customer_email)
    return name or _("unnamed customer")


def head(ticket: Ticket, _: Translate) -> str:
    """`#12, Ann: Where is my parcel?`"""
    text = _("#{number}, {customer}", number=ticket.number, customer=customer(ticket, _))
    subject = _short(ticket.subject)
    if ticket.priority in {"high", "urgent"}:
        text = f"{'‼️' if ticket.priority == 'urgent' else '❗'} {text}"
    return f"{text}: {subject}" if subject else text


def offer(ticket: Ticket, words: str, _: Translate) -> list[OutgoingMessage]:
    """An unassigned ticket."""
    title = _("New ticket {ticket}", ticket=head(ticket, _))
    hint = _("Assign it to yourself, or reply to this message to answer.")
    row = (
        button(_("Assign to me"), "take", ticket.ticket_id),
        button(_("Close"), "close", ticket.ticket_id),
    )
    return _messages(title, words, hint, (row,))


def card(ticket: Ticket, words: str, _: Translate, *, replies: bool) -> list[OutgoingMessage]:
    """A ticket for its assignee. `replies`: whether the messenger reports what a message replies to."""
    title = _("Your ticket {ticket}", ticket=head(ticket, _))
    hint = (
        _("Reply to this message to answer.")
        if replies
        else _("What you write here now goes to the customer.")
    )
    return _messages(title, words, hint, (card_buttons(ticket, _),))


def card_buttons(ticket: Ticket, _: Translate) -> tuple[Button, ...]:
    return (
        button(_("Close"), "close", ticket.ticket_id),
        button(_("Snooze"), "snoozes", ticket.ticket_id),
    )


def snooze_buttons(ticket: Ticket, _: Translate) -> tuple[tuple[Button, ...], ...]:
    """The durations of a snooze."""
    labels = {
        1: _("1 hour"),
        4: _("4 hours"),
        24: _("1 day"),
        168: _("1 week"),
    }
    each = [button(labels[hours], "snooze", ticket.ticket_id, hours) for hours in SNOOZES]
    back = button(_("Back"), "show", ticket.ticket_id)
    return (tuple(each[:2]), tuple(each[2:]), (back,))


def word(
    ticket: Ticket, entry: Entry, files: Sequence[StoredFile], _: Translate
) -> list[OutgoingMessage]:
    """A message of the customer of an assigned ticket."""
    title = _("#{number}, {customer}", number=ticket.number, customer=customer(ticket, _))
    return _messages(title, words_of([entry], {entry.entry_id: files}, _), "", ())


def rated(score: str, comment: str) -> list[OutgoingMessage]:
    """The customer's rating."""
    return _messages(score, comment, "", ())


def words_of(
    entries: Iterable[Entry], files: Mapping[str, Sequence[StoredFile]], _: Translate
) -> str:
    """The conversation, oldest first; with the author of agents' replies and notes."""
    said = []
    for entry in entries:
        lines = [entry.text] if entry.text else []
        lines += [f"📎 {one_line(file.filename)}" for file in files.get(entry.entry_id, ())]
        who = ""
        if entry.internal:
            who = _("Note:") + " "
        elif entry.author == "agent":
            who = _("Answer:") + " "
        said.append(who + "\n".join(lines))
    return "\n\n".join(part for part in said if part)


def state(
    ticket: Ticket, shown: str, who: str, _: Translate, words: str = ""
) -> list[OutgoingMessage]:
    """A ticket without actions: its status, and its assignee."""
    kind, _sep, value = shown.partition(":")
    said = {
        "again": lambda: _("There is a newer message about this ticket below."),
        "mine": lambda: _("Assigned to you."),
        "taken": lambda: _("Assigned to {agent}.", agent=who),
        "closed": lambda: _("Closed."),
        "merged": lambda: _("Merged into another ticket."),
        "snoozed": lambda: _snoozed(value, _),
    }[kind]()
    buttons: tuple[tuple[Button, ...], ...] = ()
    if kind == "snoozed":
        buttons = ((button(_("Resume"), "reopen", ticket.ticket_id),),)
    if kind == "closed":
        buttons = ((button(_("Reopen"), "reopen", ticket.ticket_id),),)
    return _messages(head(ticket, _), words, said, buttons)


def _snoozed(until_ms: str, _: Translate) -> str:
    if not until_ms:
        return _("Snoozed until the customer writes.")
    return _("Snoozed until {time}.", time=to_rfc3339(int(until_ms)))


def _messages(
    title: str, words: str, hint: str, buttons: tuple[tuple[Button, ...], ...]
) -> list[OutgoingMessage]:
    parts = list(_parts(words, MOST_UNITS))
    texts = ["\n\n".join([title, *parts[:1]]), *parts[1:]]
    if hint:
        texts[-1] = f"{texts[-1]}\n\n{hint}"
    *first, last = texts
    return [*map(OutgoingMessage, first), OutgoingMessage(last, buttons=buttons)]


def _parts(text: str, limit: int) -> Iterator[str]:
    """A text in pieces that a messenger takes, broken at a line or a space where there is one near."""
    while utf16_length(text) > limit:
        end = limit
        while utf16_length(text[:end]) > limit:
            end -= max(1, (utf16_length(text[:end]) - limit) // 2)
        broken = max(text.rfind(sign, end // 2, end) for sign in "\n ")
        end = end if broken < 0 else broken + 1
        yield text[:end]
        text = text[end:]
    if text.strip():
        yield text


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MOST_OF_LINE else line[: MOST_OF_LINE - 1] + "…"
