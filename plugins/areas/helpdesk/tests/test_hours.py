"""Business hours of a project: settings by the API and on their page."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service

from .conftest import refusal

HOURS = "/v1/tickets/hours"
MONDAY = {"day": "monday", "opens": "09:00", "closes": "18:00"}


async def test_a_project_is_open_around_the_clock_until_it_says_otherwise(
    client: httpx2.AsyncClient,
) -> None:
    before = (await client.get(HOURS)).json()
    late = {"day": "monday", "opens": "20:00", "closes": "24:00"}
    tuesday = {"day": "tuesday", "opens": "00:00", "closes": "02:00"}
    holidays = [{"date": "2027-01-01", "name": "New Year"}, {"date": "2026-12-25"}]
    wanted = {
        "timezone": "Europe/Berlin",
        "openings": [tuesday, late, MONDAY],
        "holidays": holidays,
    }
    put = await client.patch(HOURS, json=wanted)
    after = (await client.get(HOURS)).json()
    same = await client.patch(HOURS, json={})
    moved = await client.patch(HOURS, json={"timezone": "UTC", "away_message": "At nine."})
    cleared = await client.patch(HOURS, json=before)

    nothing = {"openings": [], "holidays": [], "away_message": None}
    assert before == {"timezone": "UTC", **nothing}
    assert put.json() == after
    assert after["openings"] == [MONDAY, late, tuesday]
    assert [day["date"] for day in after["holidays"]] == ["2026-12-25", "2027-01-01"]
    assert [day["name"] for day in after["holidays"]] == [None, "New Year"]
    assert same.json() == after
    assert moved.json() == {**after, "timezone": "UTC", "away_message": "At nine."}
    assert cleared.json() == before


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"openings": [{**MONDAY, "closes": "09:00"}]}, "closes"),
        ({"openings": [{**MONDAY, "opens": "24:00"}]}, "opens"),
        ({"openings": [{**MONDAY, "day": "Monday"}]}, "day"),
        (
            {"openings": [MONDAY, {"day": "monday", "opens": "17:59", "closes": "20:00"}]},
            "openings",
        ),
        ({"holidays": [{"date": "2026-02-30"}]}, "date"),
        ({"holidays": [{"date": "2026-12-25"}] * 2}, "holidays"),
    ],
)
async def test_wrong_hours_are_refused(
    client: httpx2.AsyncClient, wrong: dict[str, Any], field: str
) -> None:
    answer = await client.patch(HOURS, json=wrong)

    assert refusal(answer) == (400, "validation_failed")
    assert field in answer.json()["error"]
    assert (await client.get(HOURS)).json()["openings"] == []


async def test_each_project_has_its_own_hours_beside_its_other_settings(
    client: httpx2.AsyncClient, service: Service, make_tenant: Any
) -> None:
    other = (await make_tenant(service, "Other")).client
    await client.patch("/v1/tickets/settings", json={"assignment": "least_busy"})
    await client.patch(HOURS, json={"openings": [MONDAY]})

    assert (await other.get(HOURS)).json()["openings"] == []
    assert (await client.get("/v1/tickets/settings")).json()["assignment"] == "least_busy"
    assert (await client.get(HOURS)).json()["openings"] == [MONDAY]
