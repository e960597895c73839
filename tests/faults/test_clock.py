"""The clock is set an hour forward or back, and back again, while things are on their way."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import (
    ButtonPressed,
    Channel,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    OutgoingMessage,
    Started,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.channel import SendOnlyChannel
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.faults.conftest import Figure

pytestmark = pytest.mark.faults

HOUR_S = 3600.0

LEASE_S = 0.3

#: Sweeps and renewals come many times in `A_WHILE_S`, which passes in steps of `STEP_S`.
JOBS = {"sweep_s": 0.02, "lease_s": LEASE_S}
A_WHILE_S, STEP_S = 0.5, 0.02

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["forward", "back"])
def set_by_s(request: pytest.FixtureRequest) -> float:
    return float(request.param)


async def set_there_and_back(service: Service, clock: FakeClock, set_by_s: float) -> None:
    """Sets the clock, lets the runners look at it for a while, and sets it right again."""
    for by in (set_by_s, -set_by_s):
        clock.set_by(by)
        await pass_by(service, clock, A_WHILE_S)


async def pass_by(service: Service, clock: FakeClock, seconds: float) -> None:
    """Lets the test's time pass beside the real one, by which the runners' own tasks come round.

    It waits for runners that a busy machine keeps from renewing their leases in time: that the clock
    was set is what is tested, not that they stood still.
    """

    async def kept_up() -> bool:
        async with service.db.read() as tx:
            until_ms = await tx.fetch_val("SELECT MIN(leased_until_ms) FROM core_runners")
        # A renewal comes each third of a lease.
        return bool(until_ms >= clock.now_ms() + round(LEASE_S * 1000 / 2))

    for _ in range(round(seconds / STEP_S)):
        clock.advance(STEP_S)
        await asyncio.sleep(STEP_S)
        await until(kept_up)


class Work:
    """A job that is asked to last, and one that recurs every ten minutes."""

    def __init__(self) -> None:
        self.begun = self.recurred = 0
        self.may_end = asyncio.Event()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [
            JobSpec("work", self.work),
            JobSpec("recurring", self.recur, every_s=600),
        ]

    async def work(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        self.begun += 1
        await self.may_end.wait()

    async def recur(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        self.recurred += 1


@pytest.mark.parametrize("runners", [1, 2])
async def test_a_job_that_runs_is_not_begun_again(
    make_service: ServiceFactory, clock: FakeClock, set_by_s: float, runners: int, figure: Figure
) -> None:
    work = Work()
    service = await make_service(extra_plugins=[("work", work)], jobs=JOBS)
    for _ in range(runners - 1):
        await make_service(
            extra_plugins=[("work", work)], jobs=JOBS, database_url=service.settings.database_url
        )
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("work"), NewJob("work"))

    async def both_run() -> bool:
        return work.begun == 2

    await until(both_run)
    await set_there_and_back(service, clock, set_by_s)
    begun = work.begun
    work.may_end.set()
    await settled(service)

    figure(
        f"clock set by an hour, running jobs, {runners} runners, {service.db.dialect}",
        f"2 jobs, begun {begun} times",
        begun=begun,
    )
    assert begun == 2
    assert work.begun == 2


async def test_what_a_dead_runner_held_is_taken_over(
    make_service: ServiceFactory, clock: FakeClock, set_by_s: float
) -> None:
    work = Work()
    work.may_end.set()
    service = await make_service(extra_plugins=[("work", work)], jobs=JOBS, start=False)
    await service.open_database()
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("work"))
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_dead', deliveries = 1,"
            " leased_until_ms = :until_ms",
            {"until_ms": clock.now_ms() + round(LEASE_S * 1000)},
        )
    await service.db.disconnect()
    clock.set_by(set_by_s)
    successor = await make_service(
        extra_plugins=[("work", work)], jobs=JOBS, database_url=service.settings.database_url
    )

    async def taken_over() -> bool:
        await pass_by(successor, clock, STEP_S)
        return work.begun > 0

    await until(taken_over)
    await pass_by(successor, clock, 2 * LEASE_S)

    assert work.begun == 1


async def test_what_recurs_runs_once_for_each_time_that_comes(
    make_service: ServiceFactory, clock: FakeClock, set_by_s: float, figure: Figure
) -> None:
    work = Work()
    service = await make_service(extra_plugins=[("work", work)], jobs=JOBS)

    async def ran_once() -> bool:
        return work.recurred == 1

    await until(ran_once)
    await settled(service)
    for by in (set_by_s, -set_by_s):
        clock.set_by(by)
        await settled(service)
        await pass_by(service, clock, A_WHILE_S)
    await settled(service)

    # An hour forward its time has come, once; an hour back it has not.
    times = 2 if set_by_s > 0 else 1
    figure(
        f"clock set {set_by_s / HOUR_S:+.0f} h and right again, {service.db.dialect}",
        f"a recurring job ran {work.recurred} of {times} times",
        ran=work.recurred,
    )
    assert work.recurred == times


class SlowChannel(SendOnlyChannel):
    """Holds a message until it may go."""

    def __init__(self, identity: ChannelIdentity, texts: list[str], may_go: asyncio.Event) -> None:
        super().__init__(identity)
        self._texts = texts
        self._may_go = may_go

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self._texts.append(message.text)
        await self._may_go.wait()
        return f"{chat_id}-{len(self._texts)}"


class SlowPlugin:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.may_go = asyncio.Event()

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(_context: Any, name: str, _settings: Section) -> Channel:
            return SlowChannel(name, self.texts, self.may_go)

        return [ChannelKind("slow", Section, create)]


@pytest.mark.parametrize("runners", [1, 2])
async def test_a_message_in_the_platforms_hands_is_sent_and_known_to_be(
    make_service: ServiceFactory, clock: FakeClock, set_by_s: float, runners: int
) -> None:
    plugin = SlowPlugin()
    settings: dict[str, Any] = {
        "extra_plugins": [("slow", plugin)],
        "channels": {"messenger_a": {"plugin": "slow"}},
        "jobs": JOBS,
    }
    service = await make_service(**settings)
    for _ in range(runners - 1):
        await make_service(**settings, database_url=service.settings.database_url)
    project = await service.projects.create("Shop")
    async with service.db.transaction() as tx:
        subscriber = await service.subscribers.ensure(
            tx, project.project_id, "messenger_a", ChannelUser("1", "Ann"), "chat", source="api"
        )
    for text in ("first", "second"):
        await service.messages.send(
            project.project_id, subscriber_id=subscriber.subscriber_id, text=text
        )

    async def is_shown() -> bool:
        return plugin.texts == ["first"]

    await until(is_shown)
    await set_there_and_back(service, clock, set_by_s)
    plugin.may_go.set()
    await settled(service)
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status FROM core_messages")

    assert plugin.texts == ["first", "second"]
    assert [row["status"] for row in rows] == ["sent", "sent"]


async def test_a_stored_answer_is_given_again(
    service: Service, tenant: Tenant, clock: FakeClock, set_by_s: float
) -> None:
    async def make_link() -> Any:
        return await tenant.client.post(
            "/v1/subscribers/links", json={}, headers={"Idempotency-Key": "key-for-a-link"}
        )

    first = await make_link()
    answers = []
    for by in (set_by_s, -set_by_s):
        clock.set_by(by)
        answers.append(await make_link())

    assert first.status_code == 201
    assert [answer.text for answer in answers] == [first.text] * 2
    assert all(answer.headers["Idempotent-Replayed"] == "true" for answer in answers)


async def test_a_full_window_stays_full_until_its_time_has_passed(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock, set_by_s: float
) -> None:
    service = await make_service(limits={"requests_per_minute": 3})
    client = (await make_tenant(service)).client

    async def status() -> int:
        return (await client.get("/v1/project")).status_code

    before = [await status() for _ in range(4)]
    clock.set_by(set_by_s)
    just_after = await status()
    clock.advance(60)
    in_time = await status()

    assert before == [200, 200, 200, 429]
    assert just_after == 429
    assert in_time == 200


async def test_a_sign_in_ends_once_and_not_before_its_time(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock, set_by_s: float
) -> None:
    service = await make_service(extra_plugins=[("auth", auth)], jobs=JOBS)
    client = (await make_tenant(service)).client
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    user = ChannelUser("1", "Ann")

    session = (await client.post("/v1/auth/session", json={"state": "s"})).json()
    await set_there_and_back(service, clock, set_by_s)
    payload = session["links"]["messenger_a"].partition("start=")[2]
    await service.inbound.receive(
        "messenger_a", Started(update_id="1", chat_id="chat", user=user, payload=payload)
    )
    await settled(service)
    asked = channel.sent[-1]
    yes = asked.message.buttons[0][0].data
    assert yes is not None
    for update_id in ("2", "3"):
        press = ButtonPressed(
            update_id=update_id,
            chat_id="chat",
            user=user,
            data=yes,
            message_ref=asked.message_ref,
            button_ref=update_id,
        )
        await service.inbound.receive("messenger_a", press)
    await settled(service)
    status = (await client.get(f"/v1/auth/session/{session['session_id']}/status")).json()
    await set_there_and_back(service, clock, set_by_s)
    first = await client.post("/v1/auth/verify", json={"code": status["code"]})
    clock.set_by(set_by_s)
    second = await client.post("/v1/auth/verify", json={"code": status["code"]})
    events = (await client.get("/v1/events?event=auth.completed")).json()["data"]

    assert first.status_code == 200
    assert second.status_code == 409
    assert len(events) == 1
