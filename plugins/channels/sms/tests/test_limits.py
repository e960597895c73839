"""Limits against toll fraud, over the whole way: a service, its API, and a message centre."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.failures import LimitReached
from msgsvc_core.channels.health.problems import ChannelTroubles
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.sms import FakeSmsCentre
from msgsvc_otp import plugin as otp
from msgsvc_sms import plugin
from msgsvc_sms.smpp import SmppChannel

from .conftest import UNLIMITED, failure_of

pytestmark = pytest.mark.both_databases

#: Numbers of one prefix, rising, as fraud uses them.
PUMPED = [f"+7999555{number:04}" for number in range(40)]


@pytest.fixture
def limits() -> dict[str, Any]:
    return {}


@pytest.fixture
async def service(
    make_service: ServiceFactory, centre: FakeSmsCentre, limits: dict[str, Any]
) -> Service:
    service = await make_service(
        extra_plugins=[("sms", plugin), ("otp", otp)],
        # It stands still, so that no hour ends within a test.
        use_clock=FakeClock(),
        channels={"sms": {**centre.settings, **limits}},
    )

    async def asked() -> bool:
        channel = service.channels["sms"]
        return channel.profile is not None or channel.receiving == "nothing"

    # So that what the centre refuses next is a message.
    await until(asked)
    return service


async def send_to(channel: Any, number: str, text: str = "Hello", **fields: Any) -> str:
    return str(await channel.send(number, OutgoingMessage(text, key=f"k-{number[1:]}", **fields)))


class TestPumping:
    """Codes to rising numbers of one prefix."""

    @pytest.fixture
    def limits(self) -> dict[str, Any]:
        return {"new_numbers_hour": 5, "new_numbers_day": 8}

    async def test_it_is_stopped_within_its_budget_and_told(
        self, service: Service, tenant: Tenant, client: httpx2.AsyncClient, centre: FakeSmsCentre
    ) -> None:
        for number in PUMPED[:12]:
            answer = await client.post(
                "/v1/otp/send", json={"channel": "sms", "address": number, "purpose": "login"}
            )
            assert answer.status_code == 202, answer.text

        async def all_ended() -> bool:
            async with service.db.read() as tx:
                left = await tx.fetch_val(
                    "SELECT count(*) AS count FROM core_jobs WHERE lane = 'channel:sms'"
                )
            return int(left) == 0

        await until(all_ended)

        assert len(centre.submitted) == 5
        events = (await client.get("/v1/events", params={"event": "sms.limit_reached"})).json()
        [told] = events["data"]
        assert told["data"]["channel"] == "sms"
        assert told["data"]["limit"] == "new_numbers_hour"
        assert told["data"]["detail"] == "5 new numbers an hour that begin with +7999555"
        assert not any(number[1:] in str(told) for number in PUMPED)
        async with service.db.read() as tx:
            [trouble] = await service.get(ChannelTroubles).of_project(tx, tenant.project.project_id)
        assert trouble.kind == "limited"
        assert "7 stopped" in trouble.detail

    async def test_others_are_sent_to_meanwhile_and_an_operator_ends_it(
        self, service: Service, centre: FakeSmsCentre
    ) -> None:
        channel = service.channels["sms"]
        for number in PUMPED[:5]:
            await send_to(channel, number)
        error = await failure_of(send_to(channel, PUMPED[5]))
        await send_to(channel, "+4915120000009")
        again = await send_to(channel, PUMPED[0])

        assert isinstance(error, LimitReached)
        assert again
        async with service.db.transaction() as tx:
            assert await channel.lift_limitation(tx)
            assert await channel.limitation(tx) is None
        await send_to(channel, PUMPED[5])
        async with service.db.transaction() as tx:
            assert not await channel.lift_limitation(tx)


class TestManyProcesses:
    """Counters are shared."""

    @pytest.fixture
    def limits(self) -> dict[str, Any]:
        # Nothing but messages asks the centre, which refuses whatever comes next.
        return {**UNLIMITED, "segments_day": 10, "receives": False, "enquire_s": 3600}

    @pytest.mark.database_file
    async def test_concurrent_workers_send_no_more_than_the_budget(
        self, service: Service, centre: FakeSmsCentre
    ) -> None:
        channel = service.channels["sms"]
        assert isinstance(channel, SmppChannel)
        results = await asyncio.gather(
            *(send_to(channel, number) for number in PUMPED), return_exceptions=True
        )
        stopped = [each for each in results if isinstance(each, LimitReached)]

        assert len(centre.submitted) == 10
        assert len(stopped) == len(PUMPED) - 10

    async def test_a_long_text_counts_for_each_of_its_parts(
        self, service: Service, centre: FakeSmsCentre
    ) -> None:
        channel = service.channels["sms"]
        for number in PUMPED[:3]:
            await send_to(channel, number, "x" * 400)
        error = await failure_of(send_to(channel, PUMPED[3], "x" * 400))

        assert len(centre.submitted) == 9
        assert "10 segments a day for the channel" in error.text

    async def test_what_the_centre_refused_does_not_count(
        self, service: Service, centre: FakeSmsCentre
    ) -> None:
        channel = service.channels["sms"]
        for number in PUMPED[:20]:
            centre.statuses.append(0x58)
            error = await failure_of(send_to(channel, number))
            assert error.reason is Reason.RATE_LIMITED
            assert not isinstance(error, LimitReached)

        for number in PUMPED[:10]:
            await send_to(channel, number)


class TestOneNumber:
    @pytest.fixture
    def limits(self) -> dict[str, Any]:
        return {**UNLIMITED, "number_hour": 2, "project_hour": 3}

    async def test_a_message_that_is_stopped_fails_as_rate_limited(
        self, service: Service, client: httpx2.AsyncClient, centre: FakeSmsCentre
    ) -> None:
        added = await client.post(
            "/v1/subscribers", json={"channel": "sms", "address": "+49 1512 0000001"}
        )
        assert added.status_code == 201, added.text
        subscriber_id = added.json()["subscriber_id"]
        messages = []
        for _ in range(3):
            sent = await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "x"})
            messages.append(sent.json()["message_id"])

        async def last() -> dict[str, Any]:
            found: dict[str, Any] = (await client.get(f"/v1/messages/{messages[-1]}")).json()
            return found if found["status"] not in {"queued", "sending"} else {}

        ended = await until(last)

        assert (ended["status"], ended["reason"]) == ("failed", "rate_limited")
        assert len(centre.submitted) == 2
        person = (await client.get(f"/v1/subscribers/{subscriber_id}")).json()
        assert person["status"] == "active", "a limit is not the person's will"

    async def test_a_number_that_has_had_enough_is_no_trouble_of_the_channel(
        self, service: Service
    ) -> None:
        channel = service.channels["sms"]
        for _ in range(2):
            await send_to(channel, PUMPED[0])
        await failure_of(send_to(channel, PUMPED[0]))

        async with service.db.read() as tx:
            assert await channel.limitation(tx) is None

    async def test_projects_are_counted_apart(self, service: Service) -> None:
        channel = service.channels["sms"]
        for number in PUMPED[:3]:
            await send_to(channel, number, project_id="prj_a")
        error = await failure_of(send_to(channel, PUMPED[3], project_id="prj_a"))
        await send_to(channel, PUMPED[3], project_id="prj_b")

        assert "3 segments an hour for one project" in error.text


async def test_a_country_that_is_not_allowed_is_refused_before_anything_is_sent(
    service: Service, client: httpx2.AsyncClient, centre: FakeSmsCentre
) -> None:
    refused = await client.post(
        "/v1/subscribers", json={"channel": "sms", "address": "+216 20 000 000"}
    )
    with pytest.raises(DeliveryError) as caught:
        await send_to(service.channels["sms"], "+21620000000")

    assert refused.status_code == 400
    assert "20000000" not in refused.text
    assert caught.value.reason is Reason.INVALID_MESSAGE
    assert not centre.submitted


async def test_a_limit_ends_with_its_hour(
    make_service: ServiceFactory, centre: FakeSmsCentre
) -> None:
    clock = FakeClock()
    service = await make_service(
        extra_plugins=[("sms", plugin)],
        use_clock=clock,
        channels={"sms": {**centre.settings, **UNLIMITED, "prefix_hour": 1}},
    )
    channel = service.channels["sms"]
    await send_to(channel, PUMPED[0])
    await failure_of(send_to(channel, PUMPED[1]))
    async with service.db.read() as tx:
        assert await channel.limitation(tx)

    clock.advance(3600)

    async with service.db.read() as tx:
        assert await channel.limitation(tx) is None
    await send_to(channel, PUMPED[1])
