"""Times by the reader's clock, and where that is learnt from."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgsvc_core.dashboard import PageContext
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import Accounts
from msgsvc_dashboard.frame import formats
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import MemoryCore
from msgsvc_devkit.dashboard import Visitor
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.browsers import new_account
from plugins.areas.dashboard.tests.unit.browsers import page

NOWHERE: Any = {}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ms(text: str) -> int:
    return int(at(text).timestamp() * 1000)


def reader(core: MemoryCore, now: str, timezone: str, lang: str = "en") -> PageContext:
    return replace(page(core), clock=FakeClock(at(now)), timezone=ZoneInfo(timezone), lang=lang)


@pytest.mark.parametrize(
    ("at_text", "timezone", "shown"),
    [
        ("2026-11-27T11:55", "UTC", "11:55"),
        # It is 28 November in Tokyo when it is noon of the 27th in London, from 15:00 on.
        ("2026-11-27T14:30", "Asia/Tokyo", "27 Nov, 23:30"),
        ("2026-11-27T15:30", "Asia/Tokyo", "00:30"),
        ("2026-03-29T01:30", "Europe/Berlin", "29 Mar, 03:30"),
        ("2025-12-31T23:30", "UTC", "31 Dec 2025, 23:30"),
        ("2025-12-31T23:30", "Europe/Berlin", "1 Jan, 00:30"),
    ],
)
async def test_a_time_is_as_short_as_the_readers_day_and_year_allow(
    core: MemoryCore, at_text: str, timezone: str, shown: str
) -> None:
    late = reader(core, "2026-11-27T16:00", timezone)

    assert formats.brief(NOWHERE, ms(at_text), page=late) == shown


@pytest.mark.parametrize(
    ("timezone", "shown"),
    [
        ("UTC", "Friday, 27 November 2026, 11:55:00, UTC"),
        ("Europe/Berlin", "Friday, 27 November 2026, 12:55:00, Europe/Berlin, UTC+1"),
        ("Asia/Kolkata", "Friday, 27 November 2026, 17:25:00, Asia/Kolkata, UTC+5:30"),
        ("America/St_Johns", "Friday, 27 November 2026, 08:25:00, America/St_Johns, UTC-3:30"),
    ],
)
async def test_a_time_in_full_has_its_zone_as_it_was_then(
    core: MemoryCore, timezone: str, shown: str
) -> None:
    asked = reader(core, "2026-11-27T12:00", timezone)

    assert formats.in_full(NOWHERE, ms("2026-11-27T11:55"), page=asked) == shown


async def test_how_long_ago_is_told_for_a_week_in_either_direction(core: MemoryCore) -> None:
    asked = reader(core, "2026-11-27T12:00", "UTC", "ru")
    near = [ms("2026-11-20T12:01"), ms("2026-12-04T11:59")]
    far = [ms("2026-11-20T12:00"), ms("2026-12-04T12:00")]

    assert [formats.is_near(NOWHERE, each, page=asked) for each in near] == [True, True]
    assert [formats.is_near(NOWHERE, each, page=asked) for each in far] == [False, False]
    assert formats.ago(NOWHERE, ms("2026-11-27T11:55"), page=asked) == "5 минут назад"


async def enter(service: Service) -> Visitor:
    ann = await new_account(service)
    visitor = Visitor(service, "", ann.account_id)
    await visitor.sign_in()
    return visitor


async def zone_of(service: Service, ann: Visitor) -> str | None:
    async with service.db.read() as tx:
        return (await service.get(Accounts).find(tx, ann.account_id)).timezone


async def test_the_first_page_asks_for_the_browsers_zone_and_later_ones_no_more(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(extra_plugins=[("dashboard", plugin)])
    ann = await enter(service)
    first = await ann.get("/dashboard/account")
    unknown = await ann.post("/dashboard/account/timezone", {"timezone": "Moon/Crater"})
    kept = await zone_of(service, ann)
    told = await ann.post("/dashboard/account/timezone", {"timezone": "Asia/Tomsk"})
    again = await ann.post("/dashboard/account/timezone", {"timezone": "Europe/Berlin"})
    forged = await ann.client.post("/dashboard/account/timezone", data={"timezone": "Asia/Tokyo"})
    then = await ann.get("/dashboard/account")
    chosen = await zone_of(service, ann)
    await ann.client.aclose()

    asks = '<meta name="timezone" content="UTC" data-url="/dashboard/account/timezone">'
    assert asks in first.text
    assert (unknown.status_code, kept) == (204, None)
    assert (told.status_code, again.status_code, forged.status_code) == (204, 204, 403)
    assert chosen == "Asia/Tomsk"
    assert '<meta name="timezone"' not in then.text
    assert re.search(r'title="[^"]* 2026, [0-9:]{8}, Asia/Tomsk, UTC\+7">', then.text)


async def test_without_a_script_times_are_in_the_zone_of_the_installation(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(
        extra_plugins=[("dashboard", plugin)], dashboard={"timezone": "Asia/Tokyo"}
    )
    ann = await enter(service)
    account = await ann.get("/dashboard/account")
    await ann.client.aclose()

    assert "Asia/Tokyo, UTC+9 <span" in account.text
    assert re.search(r'name="timezone"[^>]* value="Asia/Tokyo"', account.text)
