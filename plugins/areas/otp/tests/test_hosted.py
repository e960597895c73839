"""The hosted page: from the site and back, and what it tells nobody."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled

from .conftest import Person

RETURN_URL = "https://shop.example/confirmed?from=code"


@dataclass(frozen=True)
class Guest:
    """Ann, with her id at the site."""

    ann: Person
    subscriber_id: str

    @property
    def code(self) -> str:
        return self.ann.code

    @property
    def wrong(self) -> str:
        return self.ann.wrong

    async def settle(self) -> None:
        await settled(self.ann.service)


@pytest.fixture
def person(ann: Person, ann_id: str) -> Guest:
    return Guest(ann, ann_id)


async def begin(client: httpx2.AsyncClient, person: Guest, **more: Any) -> dict[str, Any]:
    body = {"subscriber_id": person.subscriber_id, "return_url": RETURN_URL, **more}
    answer = await client.post("/v1/otp/send", json=body)
    assert answer.status_code == 202, answer.text
    await person.settle()
    found: dict[str, Any] = answer.json()
    return found


def path_of(begun: dict[str, Any]) -> str:
    return urlsplit(begun["url"]).path


async def enter(client: httpx2.AsyncClient, begun: dict[str, Any], code: str) -> httpx2.Response:
    return await client.post(path_of(begun), data={"code": code})


async def test_a_right_code_leads_back_with_a_result_that_works_once(
    client: httpx2.AsyncClient, person: Guest
) -> None:
    begun = await begin(client, person)
    gone = await enter(client, begun, person.code)
    back = urlsplit(gone.headers["location"])
    given = parse_qs(back.query)

    assert gone.status_code == 303
    assert (back.netloc, back.path, given["from"]) == ("shop.example", "/confirmed", ["code"])
    assert given["otp_id"] == [begun["otp_id"]]
    taken = await client.post("/v1/otp/result", json={"result": given["result"][0]})
    assert taken.json()["verified"] is True
    assert (taken.json()["otp_id"], taken.json()["subscriber_id"]) == (
        begun["otp_id"],
        person.subscriber_id,
    )
    again = await client.post("/v1/otp/result", json={"result": given["result"][0]})
    assert (again.status_code, again.json()["code"]) == (400, "otp_invalid")


async def test_the_page_asks_as_phones_expect_it(client: httpx2.AsyncClient, person: Guest) -> None:
    begun = await begin(client, person)
    page = await client.get(path_of(begun), headers={"accept-language": "ru"})

    assert page.status_code == 200
    assert 'autocomplete="one-time-code"' in page.text
    assert 'inputmode="numeric"' in page.text
    assert "осталось 3 попытки" in page.text
    assert person.code not in page.text
    assert "form-action 'self' https://shop.example" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"


async def test_wrong_codes_count_down_to_a_page_that_offers_a_new_one(
    client: httpx2.AsyncClient, person: Guest, clock: FakeClock
) -> None:
    begun = await begin(client, person, max_attempts=2)
    first = await enter(client, begun, person.wrong)
    last = await enter(client, begun, person.wrong)

    assert (first.status_code, "1 attempt left" in first.text) == (400, True)
    assert 'data-state="spent"' in last.text
    clock.advance(31)
    sent = await client.post(path_of(begun) + "/again")
    await person.settle()
    assert sent.status_code == 303
    gone = await enter(client, begun, person.code)
    # The site knows the page by the code that it was made for.
    assert parse_qs(urlsplit(gone.headers["location"]).query)["otp_id"] == [begun["otp_id"]]


async def test_another_code_waits_its_time(
    client: httpx2.AsyncClient, person: Guest, clock: FakeClock
) -> None:
    begun = await begin(client, person)
    early = await client.post(path_of(begun) + "/again")

    assert early.status_code == 400
    assert "a moment ago" in early.text
    assert int(early.headers["retry-after"]) <= 30
    assert re.search(r'data-wait="\d+"', early.text)
    clock.advance(31)
    assert "data-wait" not in (await client.get(path_of(begun))).text


async def test_an_old_page_and_one_that_never_was_look_alike(
    client: httpx2.AsyncClient, person: Guest, clock: FakeClock
) -> None:
    begun = await begin(client, person)
    clock.advance(1801)
    old = await client.get(path_of(begun))
    never = await client.get("/code/4pQ9sWv2KxT7mBzR1cYfLd6uHn3JgE8aXo5iTqPbDwM")

    assert (old.status_code, never.status_code) == (404, 404)
    assert old.text == never.text


async def test_looking_ahead_changes_nothing(client: httpx2.AsyncClient, person: Guest) -> None:
    begun = await begin(client, person)
    for _ in range(5):
        await client.get(path_of(begun))

    assert (await client.get(f"/v1/otp/{begun['otp_id']}")).json()["attempts_left"] == 3
    empty = await enter(client, begun, "  ")
    assert (empty.status_code, "3 attempts left" in empty.text) == (400, True)


async def test_a_result_of_another_project_is_unknown(
    service: Service, client: httpx2.AsyncClient, person: Guest, make_tenant: Any
) -> None:
    begun = await begin(client, person)
    gone = await enter(client, begun, person.code)
    result = parse_qs(urlsplit(gone.headers["location"]).query)["result"][0]
    stranger = await make_tenant(service)

    refused = await stranger.client.post("/v1/otp/result", json={"result": result})
    assert refused.json()["code"] == "otp_invalid"
    assert (await client.post("/v1/otp/result", json={"result": result})).status_code == 200


@pytest.mark.parametrize(
    "url",
    ["http://shop.example/", "javascript:alert(1)", "https://shop.example/#a", "//shop.example"],
)
async def test_only_https_is_returned_to(
    client: httpx2.AsyncClient, person: Guest, url: str
) -> None:
    body = {"subscriber_id": person.subscriber_id, "return_url": url}
    answer = await client.post("/v1/otp/send", json=body)

    assert answer.status_code == 400
    await person.settle()
    assert not any("Your code" in one.message.text for one in person.ann.messages)


async def test_requests_from_one_address_are_limited(
    client: httpx2.AsyncClient, person: Guest
) -> None:
    begun = await begin(client, person)
    statuses = [(await client.get(path_of(begun))).status_code for _ in range(31)]

    assert statuses.count(429) >= 1
    assert statuses[0] == 200
