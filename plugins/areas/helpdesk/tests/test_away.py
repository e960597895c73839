"""What customers are told who write outside business hours."""

from datetime import UTC, datetime

import httpx2
import pytest

from msgsvc_devkit import FakeClock
from msgsvc_helpdesk.customers.away import is_due
from msgsvc_helpdesk.service_levels.hours_models import HoursSettings, Opening, business_hours

from .conftest import Person, change, listed

HOURS = "/v1/tickets/hours"
OPENINGS = [
    {"day": day, "opens": "09:00", "closes": "18:00"}
    for day in ("monday", "tuesday", "wednesday", "thursday", "friday")
]
AWAY = {"en": "We are back at nine.", "ru": "Ответим после девяти."}


def at(clock: FakeClock, moment: str) -> None:
    """The time is `moment`, UTC: the clock starts on Thursday, 15 January 2026, at noon."""
    clock.advance(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() - clock.time())


async def set_hours(client: httpx2.AsyncClient, **body: object) -> None:
    answer = await client.patch(HOURS, json={"openings": OPENINGS, **body})
    assert answer.status_code == 200, answer.text


def told(person: Person) -> int:
    return sum(message.message.text in AWAY.values() for message in person.messages)


async def test_a_customer_is_told_once_until_the_desk_has_been_open_again(
    client: httpx2.AsyncClient, ann: Person, clock: FakeClock
) -> None:
    await set_hours(client, away_message=AWAY)
    at(clock, "2026-01-15T17:59:59.999")
    await ann.ask(client, "Hello?")
    open_ = told(ann)
    at(clock, "2026-01-15T18:00")
    await ann.write("Nobody?")
    closed = told(ann)
    at(clock, "2026-01-16T08:59:59.999")
    await ann.write("Still nobody?")
    night = told(ann)
    at(clock, "2026-01-16T09:00")
    await ann.write("Good morning")
    morning = told(ann)
    at(clock, "2026-01-16T18:00")
    await ann.write("Friday evening")
    evening = told(ann)
    at(clock, "2026-01-18T12:00")
    await ann.write("Sunday")

    assert (open_, closed, night, morning, evening, told(ann)) == (0, 1, 1, 1, 2, 2)
    assert len(await listed(client)) == 1


@pytest.mark.both_databases
async def test_each_ticket_has_it_and_each_customer_in_their_language(
    client: httpx2.AsyncClient, ann: Person, bob: Person, clock: FakeClock
) -> None:
    await set_hours(client, away_message=AWAY)
    at(clock, "2026-01-17T12:00")
    await ann.ask(client, "Hello?")
    await bob.ask(client, "Привет")
    [first] = [one for one in await listed(client) if one["customer_name"] == "Ann"]
    clock.advance(60)
    await change(client, first, status="closed")
    assert (await client.delete(f"/v1/tickets/{first['ticket_id']}")).is_success
    await ann.write("Another question")

    assert told(ann) == 2
    assert bob.shown == AWAY["ru"]
    # After the confirmation that the message has opened a ticket.
    texts = [message.message.text for message in bob.messages]
    assert "1" in texts[-2] or "2" in texts[-2]


async def test_nothing_is_told_without_a_text_or_without_hours(
    client: httpx2.AsyncClient, ann: Person, clock: FakeClock
) -> None:
    await set_hours(client)
    at(clock, "2026-01-17T12:00")
    await ann.ask(client, "Hello?")
    await set_hours(client, openings=[], away_message="We are back at nine.")
    await ann.write("Nobody?")

    assert told(ann) == 0
    assert (await client.get(HOURS)).json()["away_message"] == "We are back at nine."


async def test_a_holiday_is_one_closed_period_with_the_nights_around_it(
    client: httpx2.AsyncClient, ann: Person, clock: FakeClock
) -> None:
    await set_hours(client, away_message=AWAY, holidays=[{"date": "2026-01-16"}])
    for moment in ("2026-01-15T19:00", "2026-01-16T12:00", "2026-01-18T23:00"):
        at(clock, moment)
        await (ann.write("Hello?") if told(ann) else ann.ask(client, "Hello?"))

    assert told(ann) == 1


def test_an_opening_that_has_just_begun_ends_the_closed_period() -> None:
    hours = business_hours(
        HoursSettings(openings=[Opening(day="friday", opens="09:00", closes="09:01")])
    )
    told_ms, minute = 1_768_500_000_000, 60_000
    opens_ms = hours.next_opening(told_ms)
    assert opens_ms is not None

    assert is_due(hours, None, told_ms)
    assert not is_due(hours, told_ms, opens_ms)
    assert is_due(hours, told_ms, opens_ms + minute)
