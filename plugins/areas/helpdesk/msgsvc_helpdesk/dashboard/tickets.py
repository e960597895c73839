"""The page of a ticket: conversation, customer, and actions."""

from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import PageContext, Render
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import in_language
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk.canned_answers.models import CannedAnswerAnswer
from msgsvc_helpdesk.canned_answers.service import CannedAnswers
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.dashboard.conversation import Conversations
from msgsvc_helpdesk.dashboard.inbox import TicketList
from msgsvc_helpdesk.models import Ticket, TicketQuery
from msgsvc_helpdesk.service import Tickets

#: Other tickets of the customer that are named.
OTHERS = 5

#: Canned answers to choose from.
MOST_CANNED = 100


@pages.get("/tickets/{ticket_id}", access="customers:read")
async def ticket(
    page: PageContext,
    settings: Settings,
    subscribers: Subscribers,
    tickets: Tickets,
    answers: CannedAnswers,
    listing: TicketList,
    conversations: Conversations,
) -> Render:
    """A ticket, with the list beside it on wide screens."""
    found = await tickets.get(page.tx, page.project_id, page.params["ticket_id"])
    before = page.query.get("before", "")
    values = {
        **await listing.listed(page, found.ticket_id),
        "ticket": found,
        "before": before,
        "talk": await conversations.page(page, found, before),
        "subscriber": await _subscriber(page, found, subscribers),
        "others": await _others(page, found, tickets),
        "canned": await _canned(page, answers) if page.may("customers:write") else [],
        "draft": await _drafted(page, found, tickets, answers, settings.default_lang),
    }
    return Render("ticket.html", values)


@pages.get("/tickets/{ticket_id}/conversation", access="customers:read")
async def talk(page: PageContext, tickets: Tickets, conversations: Conversations) -> Render:
    """The conversation as a fragment, polled by the open page; empty if nothing has changed."""
    found = await tickets.get(page.tx, page.project_id, page.params["ticket_id"])
    said = await conversations.page(page, found)
    if page.query.get("seen") == said.marker:
        return Render("unchanged.html", status=204)
    values = {"ticket": found, "talk": said, "before": "", "is_update": True}
    return Render("talk.html", values)


@pages.get("/tickets/{ticket_id}/canned", access="customers:write")
async def canned_text(
    page: PageContext, settings: Settings, tickets: Tickets, answers: CannedAnswers
) -> Render:
    """A canned answer, for the script that inserts it into a reply."""
    found = await tickets.get(page.tx, page.project_id, page.params["ticket_id"])
    draft = await _drafted(page, found, tickets, answers, settings.default_lang)
    return Render("canned_text.html", {"draft": draft})


async def _subscriber(page: PageContext, ticket: Ticket, subscribers: Subscribers) -> Any:
    key = (page.project_id, ticket.subscriber_id or "")
    return (await subscribers.get_many(page.tx, [key])).get(key)


async def _others(page: PageContext, ticket: Ticket, tickets: Tickets) -> list[Ticket]:
    """The customer's newest other tickets."""
    if ticket.subscriber_id is None:
        return []
    query = TicketQuery(subscriber_id=ticket.subscriber_id, limit=OTHERS)
    found = await tickets.page(page.tx, page.project_id, query)
    return [one for one in found if one.ticket_id != ticket.ticket_id][:OTHERS]


async def _canned(page: PageContext, answers: CannedAnswers) -> list[CannedAnswerAnswer]:
    found = await answers.page(page.tx, page.project_id, None, MOST_CANNED)
    return [answers.shown(each) for each in found]


async def _drafted(
    page: PageContext,
    ticket: Ticket,
    tickets: Tickets,
    answers: CannedAnswers,
    default_lang: str,
) -> dict[str, str]:
    """The canned answer of the URL: text and format, to be sent or edited.

    Placeholders that only the agent can fill stay as they are.
    """
    key = page.query.get("canned", "")
    if not key:
        return {"text": "", "format": "plain"}
    try:
        answer = answers.shown(await answers.get(page.tx, page.project_id, key))
    except NotFound:
        return {"text": "", "format": "plain"}
    lang = await tickets.lang_of(page.tx, page.project_id, ticket.ticket_id)
    known = {"name": ticket.customer_name, "first_name": ticket.customer_name}
    known["number"] = str(ticket.number)
    given = {name: known[name] for name in answer.variables if known.get(name)}
    try:
        content = await answers.render(page.tx, page.project_id, key, given, lang)
    except ValidationFailed:
        text = in_language(answer.text, lang, default_lang)
        return {"text": text, "format": answer.format}
    return {"text": content.text, "format": content.format}
