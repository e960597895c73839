"""Why a message or a job is where it is: each state has its sentence."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.jobs import NewJob, inspection
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.telemetry.explanations import Explainer, Explanation, TimelineEntry, duration
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.subscribing import subscribing

PERSON = "sub_0000001"


async def explained(service: Service, what: str) -> Explanation:
    async with service.db.read() as tx:
        for each in service.explainers():
            if what.startswith(f"{each.prefix}_") and (found := await each.explain(tx, what)):
                return found
    raise LookupError(what)


async def queue(service: Service, tenant: Tenant, subscriber_id: str, **body: Any) -> str:
    async with service.db.transaction() as tx:
        message = await service.messages.queue(
            tx,
            tenant.project.project_id,
            SendBody(subscriber_id=subscriber_id, **{"text": "Hi", **body}),
        )
    return message.message_id


def at(seconds: int) -> str:
    """A moment by the tests' clock, which starts at noon."""
    hours, rest = divmod(seconds, 3600)
    return f"2026-01-15 {12 + hours}:{rest // 60:02}:{rest % 60:02} UTC"


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 s"), (59_999, "59 s"), (150_000, "2 min"), (7_200_000, "2 h"), (172_800_000, "2 d")],
)
def test_durations_are_in_their_largest_unit(ms: int, text: str) -> None:
    assert duration(ms) == text


# ---- outcomes -----------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
async def test_a_sent_message_says_when_and_where(
    service: Service, tenant: Tenant, ann: str
) -> None:
    message_id = await queue(service, tenant, ann)
    await settled(service)

    found = await explained(service, message_id)
    assert found.summary == f"Sent at {at(0)} on messenger_a."
    assert found.facts["project"] == "Shop"
    assert found.facts["subscriber_status"] == "active"
    texts = [entry.text for entry in found.timeline]
    assert texts[:2] == ["accepted", "sent"]
    assert texts[2].startswith("event delivery.success, evt_")


class Follower:
    """A plugin that explains ids of its own, and follows events."""

    @hookimpl
    def register_explainers(self) -> list[Explainer]:
        return [Explainer("fax", self.explain, self.follow)]

    async def explain(self, _tx: Any, what: str) -> Explanation:
        return Explanation(f"Sent: {what}.", {})

    async def follow(self, _tx: Any, _project_id: str, events: Any) -> list[TimelineEntry]:
        return [TimelineEntry(1, f"{len(events)} event was followed")]


async def test_plugins_explain_their_ids_and_follow_the_events_of_a_message(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    service = await make_service(extra_plugins=[("follower", Follower())])
    tenant = await make_tenant(service)
    message_id = await queue(service, tenant, await subscribing(service, tenant)("Ann"))
    await settled(service)

    found = await explained(service, message_id)
    assert "1 event was followed" in [entry.text for entry in found.timeline]
    assert (await explained(service, "fax_1")).summary == "Sent: fax_1."


async def test_a_refused_message_says_why(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    channel.failures = [DeliveryError(Reason.USER_BLOCKED_BOT, "bot was blocked by the user")]
    message_id = await queue(service, tenant, ann)
    await settled(service)

    assert (await explained(service, message_id)).summary == (
        f"Failed at {at(0)}, at attempt 1: bot was blocked by the user (user_blocked_bot)."
    )


async def test_a_skipped_message_says_which_permission_was_not_granted(
    service: Service, tenant: Tenant, ann: str
) -> None:
    await tenant.client.post("/v1/permissions", json={"key": "news", "title": "News"})
    message_id = await queue(service, tenant, ann, permission="news")
    await settled(service)

    assert (await explained(service, message_id)).summary == (
        f"Skipped at {at(0)}, without being sent: the permission 'news' is not granted."
    )


async def test_a_message_in_doubt_is_said_to_be_unknown(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "cut off", in_doubt=True)]
    message_id = await queue(service, tenant, ann)
    await settled(service)

    assert (await explained(service, message_id)).summary.startswith(
        f"Unknown since {at(0)}: nobody can tell whether the person got it (cut off)."
    )


# ---- changes of sent messages -------------------------------------------------------------------


async def test_a_deleted_message_says_so(service: Service, tenant: Tenant, ann: str) -> None:
    message_id = await queue(service, tenant, ann)
    await settled(service)
    await tenant.client.delete(f"/v1/messages/{message_id}")
    await settled(service)

    assert (await explained(service, message_id)).summary == (
        f"Sent at {at(0)} on messenger_a, and deleted at {at(0)}."
    )


async def test_a_refused_edit_is_told(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    message_id = await queue(service, tenant, ann)
    await settled(service)
    channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "message is too old")]
    await tenant.client.post(f"/v1/messages/{message_id}/edit", json={"text": "Hello"})
    await settled(service)

    assert (await explained(service, message_id)).summary == (
        f"Sent at {at(0)} on messenger_a. The last change was refused: edit: message is too old."
    )


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
async def test_an_edit_that_waits_says_why(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    message_id = await queue(service, tenant, ann)
    await settled(service)
    channel.refusals = [DeliveryError(Reason.RATE_LIMITED, "wait", 60)]
    await tenant.client.post(f"/v1/messages/{message_id}/edit", json={"text": "Hello"})
    await settled(service)

    found = await explained(service, message_id)
    assert "A change waits: channel messenger_a is paused until" in found.summary
    assert found.facts["job"] == "message.change"


# ---- waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
async def test_a_paused_channel_is_the_reason(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", 190)]
    message_id = await queue(service, tenant, ann)
    await settled(service)

    found = await explained(service, message_id)
    assert found.summary.startswith(
        f"Waiting: channel messenger_a is paused until {at(190)} (in 3 min) because its platform asked the"
        " bot to wait (429)"
    )
    assert found.summary.endswith("The last attempt failed: wait.")
    assert "the platform first asked to wait" in [entry.text for entry in found.timeline]


async def test_a_stopped_bot_is_the_reason(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    channel.failures = [DeliveryError(Reason.BOT_BANNED, "the token was revoked")]
    await queue(service, tenant, ann)
    await settled(service)
    message_id = await queue(service, tenant, ann)

    assert (await explained(service, message_id)).summary == (
        f"Waiting: the bot of channel messenger_a has been stopped since {at(0)} (0 s ago) because its"
        " platform refuses it (bot_banned: the token was revoked)."
    )


async def test_an_outage_is_the_reason(service: Service, tenant: Tenant, ann: str) -> None:
    async with service.db.transaction() as tx:
        channel = service.channels["messenger_a"]
        await service.get(ChannelOutages).start(tx, channel, "connection refused")
    service.get(OutboundGates)["messenger_a"]._circuit.synchronize(is_out=True, trial=0)
    message_id = await queue(service, tenant, ann)

    summary = (await explained(service, message_id)).summary
    assert summary.startswith(
        f"Waiting: the platform of channel messenger_a has not answered since {at(0)} (0 s ago)"
        " (connection refused); the next check is at 2026-01-15"
    )


async def test_a_failed_attempt_and_the_time_of_the_next_are_told(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")]
    message_id = await queue(service, tenant, ann)
    await settled(service)

    found = await explained(service, message_id)
    assert found.summary.startswith("Waiting: the next attempt is at 2026-01-15 12:00:0")
    assert "after one attempt failed" in found.summary
    assert found.summary.endswith("The last attempt failed: 502.")


# ---- without a process that runs jobs -----------------------------------------------------------


@pytest.fixture
async def idle(make_service: ServiceFactory) -> Service:
    """A service beside which no process runs jobs."""
    return await make_service(jobs={"runner": "none"})


@pytest.fixture
async def shop(idle: Service, make_tenant: Callable[..., Awaitable[Tenant]]) -> Tenant:
    """A project with one subscriber, `PERSON`."""
    tenant = await make_tenant(idle)
    async with idle.db.transaction() as tx:
        await tx.insert(
            "core_subscribers",
            {
                "project_id": tenant.project.project_id,
                "subscriber_id": PERSON,
                "channel": "messenger_a",
                "bot": "messenger_a",
                "user_id": "u",
                "chat_id": "c",
                "first_name": "Ann",
                "lang": "en",
                "status": "active",
                "source": "api",
                "created_at_ms": 0,
                "last_seen_at_ms": 0,
            },
        )
    return tenant


async def execute(service: Service, sql: str, **params: Any) -> None:
    async with service.db.transaction() as tx:
        await tx.execute(sql, params)


async def pretend_runner(service: Service) -> None:
    """Has the database say that a process runs jobs; it never takes one."""
    async with service.db.transaction() as tx:
        row = {"runner_id": "r", "name": "r", "leased_until_ms": service.clock.now_ms() + 60_000}
        await tx.insert("core_runners", row)


async def test_no_process_that_runs_jobs_is_the_reason(idle: Service, shop: Tenant) -> None:
    message_id = await queue(idle, shop, PERSON)

    assert (await explained(idle, message_id)).summary == (
        "Waiting: no process runs jobs; start `msgsvc serve` or `msgsvc worker`."
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
async def test_the_jobs_ahead_are_counted(idle: Service, shop: Tenant) -> None:
    await pretend_runner(idle)
    first = await queue(idle, shop, PERSON)
    await queue(idle, shop, PERSON)
    third = await queue(idle, shop, PERSON)

    assert (await explained(idle, first)).summary == (
        "Waiting: it is next in its lane, and is taken within a second or two."
    )
    assert (await explained(idle, third)).summary == (
        "Waiting: 2 jobs are ahead of it in the lane channel:messenger_a."
    )


async def test_two_reasons_are_both_told(idle: Service, shop: Tenant) -> None:
    message_id = await queue(idle, shop, PERSON)
    async with idle.db.transaction() as tx:
        await idle.get(ChannelStates).pause(tx, "messenger_a", idle.clock.now_ms() + 30_000)

    summary = (await explained(idle, message_id)).summary
    assert summary.startswith("Waiting: channel messenger_a is paused until")
    assert "(429); besides, no process runs jobs" in summary


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE core_subscribers SET status = 'unsubscribed'", "not subscribed"),
        ("UPDATE core_messages SET expires_at_ms = 1", "expired"),
        ("UPDATE core_messages SET bot = 'gone'", "its channel is gone"),
        ("UPDATE core_messages SET permission = 'news'", "the permission 'news' is not granted"),
        ("UPDATE core_subscribers SET bot = 'other'", "the person has gone over to another bot"),
    ],
)
async def test_what_will_be_skipped_is_told_before(
    idle: Service, shop: Tenant, change: str, reason: str
) -> None:
    message_id = await queue(idle, shop, PERSON)
    await execute(idle, change)

    summary = (await explained(idle, message_id)).summary
    assert summary.startswith(f"Will be skipped: {reason}. Until then it waits: no process")


async def test_a_message_deleted_in_time_says_so(idle: Service, shop: Tenant) -> None:
    message_id = await queue(idle, shop, PERSON)
    await shop.client.delete(f"/v1/messages/{message_id}")

    assert (await explained(idle, message_id)).summary == (
        f"Deleted at {at(0)}, before it was sent."
    )


async def test_a_dead_letter_is_named_with_its_error(idle: Service, shop: Tenant) -> None:
    message_id = await queue(idle, shop, PERSON)
    async with idle.db.transaction() as tx:
        [waiting] = await inspection.list_jobs(tx, inspection.Filter(name="message.deliver"), 9)
        locked = await inspection.lock(tx, waiting.job_id)
        assert locked is not None
        await idle.get(MessageOutcomes).settle_dead(tx, locked.job, "OSError")
        await tx.execute(
            "UPDATE core_jobs SET state = 'dead', attempts = 10, last_error = 'OSError'"
        )

    assert (await explained(idle, message_id)).summary == (
        f"Failed at {at(0)}, without a call: the service could not deliver it (unknown). Its delivery job"
        f" failed for good after 10 attempts (OSError); see `msgsvc jobs show {waiting.job_id}`."
    )


RUNNING = (
    "UPDATE core_jobs SET state = 'running', leased_by = 'host:7', leased_until_ms = :until_ms"
)
SENDING = "UPDATE core_messages SET status = 'sending', attempts = 1"


async def test_a_message_that_is_being_sent_names_the_process(idle: Service, shop: Tenant) -> None:
    message_id = await queue(idle, shop, PERSON)
    await execute(idle, RUNNING, until_ms=idle.clock.now_ms() + 10_000)
    await execute(idle, SENDING)

    assert (await explained(idle, message_id)).summary == (
        "Being sent: the process host:7 is working on it, attempt 1."
    )


@pytest.mark.parametrize(
    ("repeatable", "then"),
    [
        (False, "Then it ends as `unknown`, and is not sent again."),
        (True, "Then it is sent again with the same key, which the platform recognises."),
    ],
)
async def test_a_message_whose_process_died_is_in_doubt(
    idle: Service, shop: Tenant, monkeypatch: pytest.MonkeyPatch, repeatable: bool, then: str
) -> None:
    channel = idle.channels["messenger_a"]
    capabilities = type(channel.capabilities)(repeatable=repeatable)
    monkeypatch.setattr(channel, "capabilities", capabilities)
    message_id = await queue(idle, shop, PERSON)
    await execute(idle, RUNNING, until_ms=idle.clock.now_ms() - 10_000)
    await execute(idle, SENDING)

    summary = (await explained(idle, message_id)).summary
    assert summary.startswith("In doubt: the process host:7 stopped while it was working on it")
    assert summary.endswith(then)


async def test_a_queued_message_without_a_job_is_said_not_to_move(
    idle: Service, shop: Tenant
) -> None:
    message_id = await queue(idle, shop, PERSON)
    await execute(idle, "DELETE FROM core_jobs")

    assert (await explained(idle, message_id)).summary.startswith("Not moving: its delivery job is")


# ---- jobs ---------------------------------------------------------------------------------------


async def job(service: Service, new: NewJob) -> str:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, new)
        return str(
            await tx.fetch_val("SELECT job_id FROM core_jobs WHERE name = :n", {"n": new.name})
        )


async def test_a_job_of_a_plugin_that_is_not_loaded_says_so(idle: Service) -> None:
    await pretend_runner(idle)
    job_id = await job(idle, NewJob("gone.plugin", {}))

    assert (await explained(idle, job_id)).summary == (
        "Waiting: no loaded plugin runs jobs named gone.plugin."
    )


async def test_a_dead_job_says_its_error(idle: Service) -> None:
    job_id = await job(idle, NewJob("channel.probe", {}))
    await execute(
        idle, "UPDATE core_jobs SET state = 'dead', attempts = 3, last_error = 'OSError: away'"
    )

    assert (await explained(idle, job_id)).summary == (
        "Dead: channel.probe failed for good after 3 attempts (OSError: away);"
        f" see `msgsvc jobs show {job_id}`."
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
async def test_a_delayed_job_says_its_time(idle: Service, clock: FakeClock) -> None:
    await pretend_runner(idle)
    job_id = await job(idle, NewJob("channel.probe", {}, run_at_ms=clock.now_ms() + 3_600_000))

    assert (await explained(idle, job_id)).summary == f"Waiting: it is due at {at(3600)} (in 1 h)."


async def test_an_unknown_message_has_no_explanation(service: Service) -> None:
    with pytest.raises(LookupError):
        await explained(service, "msg_0000000000000000000000")
