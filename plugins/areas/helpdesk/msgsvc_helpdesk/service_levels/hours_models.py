"""Business hours as the API takes and shows them."""

import json
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.time_zones import Zone, zone
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)

#: Openings of one desk in a week, and its holidays.
MOST_OPENINGS, MOST_HOLIDAYS = 70, 200


def _check_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise InvalidValue("there is no such date") from None
    return text


_DAY = "The day of the week."
_OPENS = "Local time at which it opens, `HH:MM`."
_CLOSES = "Local time at which it closes, `HH:MM`; `24:00` for the end of the day."
_DATE = "The local day, `YYYY-MM-DD`."
_NAME = "What the day is, for agents; null for nothing."
_ZONE = "IANA time zone of the hours and days."
_OPENINGS = (
    "When it is open in a week; empty for around the clock. Hours past midnight are two openings."
)
_HOLIDAYS = "Days on which it is closed."
_AWAY = (
    "The bot's answer to a customer who writes outside these hours, once for each ticket and closed"
    " period: a text, or one by language. Null for nothing."
)

#: Characters of the text for closed hours.
AWAY_LENGTH = 1000

AwayText = Annotated[Localized, visible(AWAY_LENGTH)]

Opens = Annotated[
    str,
    Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description=_OPENS, examples=["09:00"]),
]
Closes = Annotated[
    str,
    Field(
        pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", description=_CLOSES, examples=["18:00"]
    ),
]


def _or_null(text: str | None) -> str | None:
    return text or None


HolidayName = Annotated[Annotated[str, Field(max_length=100)] | None, AfterValidator(_or_null)]


class Opening(RequestModel):
    """Hours of one day of the week."""

    model_config = ConfigDict(title="OpeningBody")

    day: Weekday = Field(description=_DAY, examples=["monday"])
    opens: Opens
    closes: Closes

    @model_validator(mode="after")
    def _in_order(self) -> "Opening":
        """`closes` is later than `opens`."""
        if minutes_of(self.closes) <= minutes_of(self.opens):
            raise wrong_field("closes", "must be later than opens")
        return self


class Holiday(RequestModel):
    """A day on which the desk is closed."""

    model_config = ConfigDict(title="HolidayBody")

    date: Annotated[
        str,
        Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description=_DATE, examples=["2026-12-25"]),
        AfterValidator(_check_date),
    ]
    name: HolidayName = Field(None, description=_NAME, examples=["Christmas"])


def _check_openings(openings: list[Opening]) -> list[Opening]:
    for day in WEEKDAYS:
        hours = sorted(minutes(one) for one in openings if one.day == day)
        if any(after[0] < before[1] for before, after in pairwise(hours)):
            raise InvalidValue("must not overlap")
    return openings


def _check_holidays(holidays: list[Holiday]) -> list[Holiday]:
    dates = [holiday.date for holiday in holidays]
    if len(set(dates)) < len(dates):
        raise InvalidValue("must be different days")
    return holidays


Openings = Annotated[
    list[Opening], Field(max_length=MOST_OPENINGS), AfterValidator(_check_openings)
]
Holidays = Annotated[
    list[Holiday], Field(max_length=MOST_HOLIDAYS), AfterValidator(_check_holidays)
]


class HoursSettings(RequestModel):
    """The business hours of a project's helpdesk. What is left out has its default."""

    timezone: Zone = Field("UTC", description=_ZONE, examples=["Europe/Berlin"])
    openings: Openings = Field(default_factory=list, description=_OPENINGS)
    holidays: Holidays = Field(default_factory=list, description=_HOLIDAYS)
    away_message: AwayText | None = Field(
        None, description=_AWAY, examples=[{"en": "We are back at nine."}]
    )


class UpdateHoursBody(RequestModel):
    """Changes of a project's business hours. A list is replaced whole; omitted fields stay unchanged."""

    timezone: Kept[Zone] = Field(None, description=_ZONE, examples=["Europe/Berlin"])
    openings: Kept[Openings] = Field(None, description=_OPENINGS)
    holidays: Kept[Holidays] = Field(None, description=_HOLIDAYS)
    away_message: AwayText | None = Field(
        None, description=_AWAY, examples=[{"en": "We are back at nine."}]
    )


class OpeningAnswer(ResponseModel):
    """Hours of one day of the week."""

    day: Weekday = Field(description=_DAY, examples=["monday"])
    opens: str = Field(description=_OPENS, examples=["09:00"])
    closes: str = Field(description=_CLOSES, examples=["18:00"])


class HolidayAnswer(ResponseModel):
    """A day on which the desk is closed."""

    date: str = Field(description=_DATE, examples=["2026-12-25"])
    name: str | None = Field(description=_NAME, examples=["Christmas"])


class TicketHoursAnswer(ResponseModel):
    """The business hours of a project's helpdesk."""

    timezone: str = Field(description=_ZONE, examples=["Europe/Berlin"])
    openings: list[OpeningAnswer] = Field(description=_OPENINGS)
    holidays: list[HolidayAnswer] = Field(description=_HOLIDAYS)
    away_message: Localized | None = Field(
        description=_AWAY, examples=[{"en": "We are back at nine."}]
    )

    @classmethod
    def of(cls, hours: HoursSettings) -> "TicketHoursAnswer":
        return cls(**hours.model_dump())


def minutes_of(text: str) -> int:
    """The minute of the day of `HH:MM`."""
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def minutes(opening: Opening) -> tuple[int, int]:
    """When it opens and closes, in minutes of the day."""
    return minutes_of(opening.opens), minutes_of(opening.closes)


def in_order(openings: Sequence[Opening]) -> list[Opening]:
    """From Monday's first on."""
    return sorted(openings, key=lambda one: (WEEKDAYS.index(one.day), one.opens))


@lru_cache(maxsize=256)
def read_hours(column: str | None) -> HoursSettings:
    """The hours of a row, without what only a newer version knows; cached by their text, so that none can be
    stale."""
    if column is None:
        return HoursSettings()
    stored = json.loads(column)
    known = {name: value for name, value in stored.items() if name in HoursSettings.model_fields}
    return HoursSettings.model_validate_json(to_json(known))


def business_hours(hours: HoursSettings) -> BusinessHours:
    """The arithmetic of these hours."""
    weekly: dict[int, tuple[tuple[int, int], ...]] = {}
    for opening in in_order(hours.openings):
        weekday = WEEKDAYS.index(opening.day)
        weekly[weekday] = (*weekly.get(weekday, ()), minutes(opening))
    holidays = frozenset(date.fromisoformat(holiday.date) for holiday in hours.holidays)
    return BusinessHours(zone=zone(hours.timezone), weekly=weekly, holidays=holidays)
