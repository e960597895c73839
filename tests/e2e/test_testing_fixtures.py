"""The fixtures of `msgsvc-core[testing]`: a service for each test, behind one URL."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.security import InvalidWebhook, open_webhook
from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc, Msgsvc
from msgsvc_devkit.ephemeral.thread import ServiceThread
from msgsvc_devkit.webhooks import WebhookReceiver

SEEN: dict[str, list[str]] = {"urls": [], "keys": []}


@pytest.fixture
def msgsvc_settings(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = getattr(request, "param", {})
    return settings


@pytest.fixture
def client(msgsvc: Msgsvc) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {msgsvc.api_key}"}
    with httpx2.Client(base_url=msgsvc.base_url, headers=headers, timeout=60) as made:
        yield made


def sign_in(msgsvc: Msgsvc, client: httpx2.Client, name: str) -> None:
    session = client.post("/v1/auth/session", json={}).json()
    person = msgsvc.person(name)
    person.open(session["links"]["messenger_a"])
    person.press("Yes")


@pytest.mark.parametrize("turn", [1, 2])
def test_a_test_finds_nothing_of_the_one_before_behind_the_same_url(
    msgsvc: Msgsvc, client: httpx2.Client, turn: int
) -> None:
    before = client.get("/v1/subscribers").json()["data"]
    sign_in(msgsvc, client, "Ann")
    msgsvc.advance(days=1)
    SEEN["urls"].append(msgsvc.base_url)
    SEEN["keys"].append(msgsvc.api_key)

    assert before == []
    assert len(set(SEEN["urls"])) == len(set(SEEN["keys"])) == 1
    assert len(client.get("/v1/subscribers").json()["data"]) == 1


def test_time_is_the_machine_s_until_it_is_moved(msgsvc: Msgsvc) -> None:
    started = datetime.now(UTC)
    at_first = msgsvc.now
    msgsvc.advance(hours=2)
    moved = msgsvc.now

    assert abs(at_first - started) < timedelta(minutes=1)
    assert timedelta(hours=2) <= moved - at_first < timedelta(hours=2, minutes=1)


def test_time_does_not_move_back(msgsvc: Msgsvc) -> None:
    with pytest.raises(ValueError, match="forward"):
        msgsvc.advance(minutes=-5)


def test_events_come_in_their_order_and_by_name(msgsvc: Msgsvc, client: httpx2.Client) -> None:
    sign_in(msgsvc, client, "Ann")

    assert [event.event for event in msgsvc.events()] == ["subscription.created", "auth.completed"]
    assert [event.event for event in msgsvc.events("auth.completed")] == ["auth.completed"]


def test_kept_webhooks_are_those_that_the_service_signs(
    msgsvc: Msgsvc, client: httpx2.Client
) -> None:
    webhook = msgsvc.webhook(events=["auth.completed"])
    other = msgsvc.webhook()
    sign_in(msgsvc, client, "Ann")
    (request,) = msgsvc.take(webhook)
    delivery = open_webhook(request.headers, request.body, webhook.secret)

    assert delivery.event == request.event == "auth.completed"
    assert delivery.data["first_name"] == "Ann"
    assert msgsvc.take(webhook) == []
    assert len(msgsvc.take(other)) == 2
    with pytest.raises(InvalidWebhook):
        open_webhook(request.headers, request.body, other.secret)


def test_a_webhook_with_a_url_of_its_own_keeps_nothing(msgsvc: Msgsvc) -> None:
    with pytest.raises(ValueError, match="a URL of its own"):
        msgsvc.take(msgsvc.webhook("http://127.0.0.1:3000/hook/1"))


async def test_coroutines_await_the_same(msgsvc_async: AsyncMsgsvc) -> None:
    headers = {"Authorization": f"Bearer {msgsvc_async.api_key}"}
    async with (
        WebhookReceiver() as receiver,  # in this loop, which goes on meanwhile
        httpx2.AsyncClient(base_url=msgsvc_async.base_url, headers=headers, timeout=60) as client,
    ):
        webhook = await msgsvc_async.webhook(receiver.url)
        receiver.secret = webhook.secret
        session = (await client.post("/v1/auth/session", json={})).json()
        ann = await msgsvc_async.person("Ann")
        await ann.open(session["links"]["messenger_a"])
        await ann.press("Yes")
        await msgsvc_async.advance(minutes=1)
        delivery = await receiver.next("auth.completed", timeout_s=0.01)

        assert delivery.data["first_name"] == "Ann"
        assert len(await msgsvc_async.events()) == 2
        assert (await ann.messages())[-1].channel == "messenger_a"


async def test_both_kinds_act_on_one_service(msgsvc: Msgsvc, msgsvc_async: AsyncMsgsvc) -> None:
    ann = msgsvc.person("Ann")
    ann.start("messenger_a")
    bob = await msgsvc_async.person("Bob")
    await bob.start("messenger_b")

    assert msgsvc.now - msgsvc_async.now < timedelta(minutes=1)
    assert ann.wait_for(channel="messenger_a").author == "bot"
    assert (await bob.wait_for(channel="messenger_b")).author == "bot"


@pytest.mark.parametrize("msgsvc_settings", [{"limits": {"requests_per_minute": 2}}], indirect=True)
def test_a_test_sets_limits_of_its_own(client: httpx2.Client) -> None:
    statuses = [client.get("/v1/subscribers").status_code for _ in range(3)]

    assert statuses == [200, 200, 429]


def test_settings_that_there_are_not_are_refused_and_the_next_test_goes_on(
    msgsvc_thread: ServiceThread,
) -> None:
    with pytest.raises(SettingsError, match="requests_per_hour"):
        msgsvc_thread.renew({"limits": {"requests_per_hour": 2}})
    msgsvc_thread.renew({})
    running = httpx2.get(f"{msgsvc_thread.base_url}/healthz")
    msgsvc_thread.end()
    ended = httpx2.get(f"{msgsvc_thread.base_url}/healthz")

    assert (running.status_code, ended.status_code) == (200, 503)


def test_a_messenger_fails_until_it_is_well_again(msgsvc: Msgsvc, client: httpx2.Client) -> None:
    sign_in(msgsvc, client, "Ann")
    (subscriber,) = client.get("/v1/subscribers").json()["data"]
    msgsvc.fail("messenger_a", "platform_unavailable")
    body = {"subscriber_id": subscriber["subscriber_id"], "text": "Hello"}
    message_id = client.post("/v1/send", json=body).json()["message_id"]
    msgsvc.settle()
    before = client.get(f"/v1/messages/{message_id}").json()["status"]
    msgsvc.heal("messenger_a")
    msgsvc.advance(minutes=5)

    assert before == "queued"
    assert client.get(f"/v1/messages/{message_id}").json()["status"] == "sent"


# ---- one service for all tests -------------------------------------------------------------------


@pytest.fixture(scope="session")
def msgsvc_session_settings() -> Mapping[str, Any]:
    return {"auth": {"session_lifetime_s": 120}}


@pytest.fixture(scope="module")
def shop_url(msgsvc_session: Msgsvc) -> str:
    """A program under test that is started once."""
    return msgsvc_session.base_url


def opened(msgsvc: Msgsvc | AsyncMsgsvc) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {msgsvc.api_key}"}
    return httpx2.Client(base_url=msgsvc.base_url, headers=headers, timeout=60)


def customers(msgsvc: Msgsvc) -> list[str]:
    with opened(msgsvc) as client:
        people = client.get("/v1/subscribers").json()["data"]
    return [each["first_name"] for each in people]


@pytest.mark.parametrize("turn", [1, 2])
def test_the_service_of_the_session_keeps_what_tests_leave(
    msgsvc_session: Msgsvc, msgsvc: Msgsvc, shop_url: str, turn: int
) -> None:
    with opened(msgsvc_session) as client:
        sign_in(msgsvc_session, client, f"Ann {turn}")

    assert sorted(customers(msgsvc_session)) == [f"Ann {each + 1}" for each in range(turn)]
    # That of each test is another one.
    assert customers(msgsvc) == []
    assert shop_url == msgsvc_session.base_url != msgsvc.base_url


async def test_coroutines_act_on_the_service_of_the_session(
    msgsvc_session: Msgsvc, msgsvc_session_async: AsyncMsgsvc
) -> None:
    before = len(msgsvc_session.events())
    with opened(msgsvc_session_async) as client:
        session = client.post("/v1/auth/session", json={}).json()
    bob = await msgsvc_session_async.person("Bob")
    await bob.open(session["links"]["messenger_a"])
    await bob.press("Yes")

    assert msgsvc_session_async.base_url == msgsvc_session.base_url
    assert len(msgsvc_session.events()) > before


def test_the_service_of_the_session_has_settings_of_its_own(msgsvc_session: Msgsvc) -> None:
    with opened(msgsvc_session) as client:
        session = client.post("/v1/auth/session", json={}).json()
        msgsvc_session.advance(seconds=121)
        found = client.get(f"/v1/auth/session/{session['session_id']}/status").json()

    assert found["status"] == "expired"
