"""The section `[helpdesk]` of the configuration."""

from pydantic import Field

from msgsvc_core.config.sections import Section
from msgsvc_helpdesk.team.models import Method

#: How many times the budget of automatic answers those about a ticket have: a person may have several.
TICKETS_AT_ONCE = 3


class HelpdeskSettings(Section):
    """Limits of tickets, and what time does to them."""

    reopen_days: int = Field(
        7,
        ge=0,
        le=365,
        description="Days after its end within which a customer's message reopens a ticket; later it"
        " opens a new one.",
    )
    unanswered_hours: int = Field(
        24,
        ge=1,
        le=720,
        description="Hours without an agent's reply after which `ticket.unanswered_24h` is emitted "
        "for an open ticket.",
    )
    assignment: Method = Field(
        "manual",
        description="Who gets tickets that are opened or reopened unassigned, in projects that have not"
        " chosen: nobody (`manual`), agents in turn (`round_robin`), or the one with the fewest open"
        " tickets (`least_busy`).",
    )
    acknowledge: bool = Field(
        True, description="Whether the bot confirms that a message opened a ticket."
    )
    ask_rating: bool = Field(
        True, description="Whether customers are asked for a rating when their ticket is closed."
    )
    csat_comment_minutes: int = Field(
        15,
        ge=1,
        le=1440,
        description="Minutes after a rating in which what the customer writes is its comment.",
    )
    look_s: float = Field(
        10.0,
        gt=0,
        le=600,
        description="Seconds between checks for ended snoozes and waiting customers.",
    )
    snooze_days: int = Field(365, ge=1, description="Longest snooze of a ticket, in days.")
    tags_per_ticket: int = Field(20, ge=1, le=100, description="Labels on one ticket.")
    bulk_action_tickets: int = Field(
        100_000, ge=1, description="Tickets that one bulk action may change."
    )
    canned_answers: int = Field(100, ge=1, description="Canned answers of one project.")
    edits_kept: int = Field(
        20, ge=1, le=1000, description="Earlier texts that are kept of one customer's message."
    )
    closed_ticket_days: int = Field(
        730, ge=1, description="Days after its end for which a ticket is kept."
    )
