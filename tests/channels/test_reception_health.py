"""Whether a bot receives is known apart from whether it sends: told once it lasts, ended by a good poll."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Channel
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.reception.health import CONTESTED_MS, ReceptionHealth
from msgsvc_core.channels.reception.models import InterruptionReason
from msgsvc_core.channels.reception.receiver import UpdateReceiver
from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.channels.conftest import AddBot, knows_bot
from tests.channels.messenger import Platform

LASTING_S = 30  # jobs.reception_failing_s

CONFLICT = "Conflict: terminated by other getUpdates request"


@pytest.fixture
async def polled_in_vain(platform: Platform, add_bot: AddBot, clock: FakeClock) -> str:
    """The key of a project's own bot `messenger_a` whose polls have failed for longer than `LASTING_S`."""
    made = await add_bot(token="own")
    await fails_for_long(platform, "own", clock)
    return str(made["channel_id"])


async def fails_for_long(platform: Platform, token: str, clock: FakeClock) -> None:
    """Its platform refuses polls alone, first now and again after `LASTING_S`."""
    bot = platform.bots[token]
    bot.poll_error = CONFLICT
    before = bot.failed_polls

    async def failed() -> bool:
        return bot.failed_polls > before

    await until(failed)
    clock.advance(LASTING_S + 1)


async def reception(client: httpx2.AsyncClient) -> dict[str, Any]:
    shown: dict[str, Any] = (await client.get("/v1/channels/messenger_a")).json()
    return dict(shown["reception"])


async def is_interrupted(client: httpx2.AsyncClient) -> bool:
    return bool((await reception(client))["status"] == "interrupted")


async def told(tenant: Tenant) -> list[tuple[str, dict[str, Any]]]:
    events = (await tenant.client.get("/v1/events")).json()["data"]
    return [(event["event"], event["data"]) for event in reversed(events)]


async def test_a_bot_that_receives_says_so(tenant: Tenant, add_bot: AddBot) -> None:
    made = await add_bot(token="own")

    assert made["reception"] == {
        "status": "receiving",
        "since": None,
        "reason": None,
        "detail": None,
    }


async def test_a_bot_that_is_to_receive_nothing_has_no_reception(
    tenant: Tenant, add_bot: AddBot
) -> None:
    made = await add_bot(token="own", receiving="nothing")

    assert made["reception"] is None


async def test_a_project_sees_since_when_and_why_its_bot_receives_nothing(
    tenant: Tenant, polled_in_vain: str
) -> None:
    await until(lambda: is_interrupted(tenant.client))
    listed = (await tenant.client.get("/v1/channels")).json()["data"][0]
    checked = (await tenant.client.post("/v1/channels/messenger_a/check")).json()
    events = await told(tenant)

    found = await reception(tenant.client)
    assert (found["reason"], found["detail"]) == ("polling_failed", CONFLICT)
    assert found["since"].startswith("20")
    # It sends as ever.
    assert listed["status"] == "working"
    assert (checked["ok"], checked["reception"]) == (True, found)
    assert listed["reception"] == found
    (name, data) = events[-1]
    assert name == "channel.reception_interrupted"
    assert {key: data[key] for key in ("channel", "since", "reason", "detail")} == {
        "channel": "messenger_a",
        **{key: found[key] for key in ("since", "reason", "detail")},
    }


async def test_the_first_good_poll_ends_it(
    tenant: Tenant, platform: Platform, polled_in_vain: str
) -> None:
    await until(lambda: is_interrupted(tenant.client))
    platform.bots["own"].poll_error = None

    async def receives() -> bool:
        return not await is_interrupted(tenant.client)

    await until(receives)
    names = [name for name, _ in await told(tenant)]
    assert names[-2:] == ["channel.reception_interrupted", "channel.reception_recovered"]


async def test_operators_see_it_of_a_shared_bot(
    service: Service, tenant: Tenant, platform: Platform, clock: FakeClock
) -> None:
    since_s = clock.time()
    await fails_for_long(platform, "shared", clock)

    async def degraded() -> Any:
        answer = await tenant.client.get("/readyz")
        return answer if answer.json()["status"] == "degraded" else None

    answer = await until(degraded)
    text = (await service.metrics.scrape())[0].decode()

    check = answer.json()["checks"]["channel:messenger_a"]
    assert (answer.status_code, check["ok"]) == (200, False)
    assert f"receives nothing: {CONFLICT}" in check["detail"]
    assert check["reception"]["reason"] == "polling_failed"
    gauge = 'msgsvc_channel_reception_interrupted_since_timestamp_seconds{channel="messenger_a"}'
    (line,) = [each for each in text.splitlines() if each.startswith(gauge)]
    assert float(line.split()[-1]) == pytest.approx(since_s, abs=1)


async def test_readiness_counts_projects_bots_that_receive_nothing(
    tenant: Tenant, polled_in_vain: str
) -> None:
    await until(lambda: is_interrupted(tenant.client))
    checks = (await tenant.client.get("/readyz")).json()["checks"]

    assert checks["own_channels"]["detail"] == {"stopped": 0, "unavailable": 0, "interrupted": 1}


async def test_the_next_process_keeps_since_when(
    service: Service,
    tenant: Tenant,
    platform: Platform,
    polled_in_vain: str,
    make_service: ServiceFactory,
    settings: dict[str, Any],
    make_tenant: Any,
) -> None:
    await until(lambda: is_interrupted(tenant.client))
    before = await reception(tenant.client)
    await service.get(UpdateReceiver).stop()
    url = service.settings.database_url
    polls = platform.bots["own"].failed_polls
    await make_service(extra_plugins=[("fake", platform)], database_url=url, **settings)

    async def polled_again() -> bool:
        return platform.bots["own"].failed_polls > polls + 1

    await until(polled_again)
    assert await reception(tenant.client) == before


# ---- the watch by itself ------------------------------------------------------------------------


@pytest.fixture
async def shared(service: Service) -> Channel:
    """The service's bot, which nothing else is received for."""
    await knows_bot(service, "messenger_a")
    await service.get(UpdateReceiver).stop()
    return service.channels["messenger_a"]


@pytest.fixture
def writes(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements on the states of channels that have changed something, or might have."""
    made: list[str] = []
    execute = Tx.execute

    async def noted(tx: Tx, sql: str, *args: Any, **options: Any) -> int:
        if "core_channel_states" in sql:
            made.append(sql)
        return await execute(tx, sql, *args, **options)

    monkeypatch.setattr(Tx, "execute", noted)
    return made


async def interrupted_since(service: Service) -> int | None:
    async with service.db.read() as tx:
        state = await service.get(ChannelStates).find(tx, "messenger_a")
    return None if state is None else state.interrupted_since_ms


async def test_what_passes_is_not_told(service: Service, shared: Channel, clock: FakeClock) -> None:
    watch = service.get(ReceptionHealth).watch(shared)
    for _ in range(5):
        await watch.failed(InterruptionReason.POLLING_FAILED, "502")
        clock.advance(LASTING_S - 1)
        await watch.failed(InterruptionReason.POLLING_FAILED, "502")
        await watch.worked()

    assert await interrupted_since(service) is None


async def test_what_lasts_is_told_since_its_first_failure(
    service: Service, shared: Channel, clock: FakeClock
) -> None:
    watch, since_ms = service.get(ReceptionHealth).watch(shared), clock.now_ms()
    await watch.failed(InterruptionReason.POLLING_FAILED, "502")
    clock.advance(LASTING_S)
    await watch.failed(InterruptionReason.POLLING_FAILED, "502")

    assert await interrupted_since(service) == since_ms


@pytest.mark.both_databases
async def test_what_has_lasted_before_it_was_noticed_is_told_at_once(
    service: Service, shared: Channel, clock: FakeClock
) -> None:
    watch, hours_ms = service.get(ReceptionHealth).watch(shared), 8 * 3_600_000
    reason = InterruptionReason.WEBHOOK_NOT_CALLED
    await watch.failed(reason, "given up", failing_ms=hours_ms)
    since_ms = clock.now_ms() - hours_ms

    assert await interrupted_since(service) == since_ms


async def test_polls_write_nothing_while_nothing_changes(
    service: Service, shared: Channel, clock: FakeClock, writes: list[str]
) -> None:
    watch = service.get(ReceptionHealth).watch(shared)
    for _ in range(100):
        await watch.worked()
    while_well = len(writes)
    for _ in range(100):
        await watch.failed(InterruptionReason.POLLING_FAILED, "502")
        clock.advance(LASTING_S)
    while_ill = len(writes) - while_well
    await watch.worked()

    assert while_well == 0
    assert while_ill == 1
    assert await interrupted_since(service) is None


@pytest.mark.both_databases
async def test_another_reason_takes_the_place_of_the_first(
    service: Service, shared: Channel, clock: FakeClock
) -> None:
    watch, since_ms = service.get(ReceptionHealth).watch(shared), clock.now_ms()
    await watch.failed(InterruptionReason.POLLING_FAILED, "502")
    clock.advance(LASTING_S)
    await watch.failed(InterruptionReason.POLLING_FAILED, "502")
    await watch.failed(InterruptionReason.POLLING_FAILED, CONFLICT)
    async with service.db.read() as tx:
        state = await service.get(ChannelStates).find(tx, "messenger_a")

    assert state is not None
    assert (state.interrupted_since_ms, state.interrupted_detail) == (since_ms, CONFLICT)


async def test_two_programs_that_take_updates_by_turns_are_told(
    service: Service, shared: Channel, clock: FakeClock
) -> None:
    watch, since_ms = service.get(ReceptionHealth).watch(shared), clock.now_ms()
    for _ in range(LASTING_S // 5 + 1):
        await watch.failed(InterruptionReason.POLLING_FAILED, CONFLICT, contested=True)
        clock.advance(5)
        await watch.worked()
    contested = await interrupted_since(service)
    clock.advance(CONTESTED_MS / 1000)
    await watch.worked()

    assert contested == since_ms
    assert await interrupted_since(service) is None
