"""The plugin's objects one by one, built from fakes."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.events import Event
from msgsvc_core.events.contract import NewEvent
from msgsvc_core.jobs import BULK, URGENT, Job, LeaseLost, NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import Conflict, InvalidUrl, NotFound, ValidationFailed
from msgsvc_core.security import SecretBox
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_devkit import FakeClock, FakeContext, plugin_context, until
from msgsvc_devkit.fakes import PROJECT, FakeDatabase, FakeJobContext, FakeTx, claimed
from msgsvc_webhooks import plugin
from msgsvc_webhooks.calls import CALLS, MOST_AHEAD, CallsByLane
from msgsvc_webhooks.delivering import UNREADABLE, Deliveries
from msgsvc_webhooks.events import TEST
from msgsvc_webhooks.health import Called, Health
from msgsvc_webhooks.jobs import WebhookJobs
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import (
    Attempt,
    CreateWebhookBody,
    Delivery,
    ReplayBody,
    UpdateWebhookBody,
    Webhook,
)
from msgsvc_webhooks.outcomes import Outcome, OutcomeWriter, Written
from msgsvc_webhooks.replays import CHUNK, REPLAY, Replays
from msgsvc_webhooks.retries import LAST_STEP, Verdict
from msgsvc_webhooks.service import DELIVER, MAX_VALID_SECRETS, Webhooks
from msgsvc_webhooks.settings import WebhookSettings

NOW_MS = FakeClock().now_ms()
URL = "https://shop.example/hook"
WEBHOOK = Webhook(PROJECT, "whe_1", URL, (), None, "active", 0, 0)
DELIVERY = Delivery(
    project_id=PROJECT,
    delivery_id="whd_1",
    webhook_id="whe_1",
    event_id="evt_1",
    event="event.tracked",
    body="{}",
    status="pending",
    attempts=0,
    step=0,
    created_at_ms=NOW_MS,
    first_attempt_at_ms=None,
    next_attempt_at_ms=NOW_MS,
    finished_at_ms=None,
)
#: How the core's registry of metrics calls a counter's value.
COUNTED = "msgsvc_webhooks_attempts_total"


def row_of(value: Webhook | Delivery) -> dict[str, Any]:
    """As the database has it."""
    row = {name: getattr(value, name) for name in value.__dataclass_fields__}
    return {**row, "events": json.dumps(value.events)} if isinstance(value, Webhook) else row


def job_of(delivery: Delivery = DELIVERY) -> Job:
    payload = {"delivery_id": delivery.delivery_id}
    return claimed(NewJob(DELIVER, payload, lane="webhook:whe_1", project_id=PROJECT))


class Sending(Webhooks):
    """Answers an attempt by the next of `answers`: a status, or what the other side does; `sent` holds what
    was sent."""

    def __init__(self, core: FakeContext, *answers: int | str, **settings: Any) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str]] = []
        super().__init__(
            clock=core.clock,
            settings=WebhookSettings(**settings),
            secrets=core.secrets,
            jobs=core.jobs,
            events=core.events,
            guard=OutboundGuard(),
            header_prefix="X-Shop",
        )

    async def send(self, url: str, delivery: Delivery, secrets: Any) -> Attempt:
        self.sent.append((url, delivery.delivery_id))
        answer = self.answers.pop(0)
        status = answer if isinstance(answer, int) else None
        error = answer if isinstance(answer, str) else None
        return Attempt(self._clock.now_ms(), 5, status, error)


class Plugin:
    """The parts of the plugin, with what they say to each other."""

    def __init__(self, *answers: int | str, **settings: Any) -> None:
        self.core: FakeContext = plugin_context(plugin=plugin)
        self.settings = WebhookSettings(**settings)
        self.registry = CollectorRegistry()
        self.metrics = AttemptMetrics(self.registry)
        self.sending = Sending(self.core, *answers, **settings)
        self.calls = CallsByLane(clock=self.core.clock, jobs=self.core.jobs)
        self.ctx = FakeJobContext(self.core.db)

    def webhooks(self) -> Webhooks:
        return Webhooks(
            clock=self.core.clock,
            settings=self.settings,
            secrets=self.core.secrets,
            jobs=self.core.jobs,
            events=self.core.events,
            guard=OutboundGuard(),
            header_prefix="X-Shop",
        )

    def health(self) -> Health:
        return Health(
            clock=self.core.clock,
            events=self.core.events,
            settings=self.settings,
            metrics=self.metrics,
        )

    def writer(self) -> OutcomeWriter:
        return OutcomeWriter(
            clock=self.core.clock,
            dialect="sqlite",
            settings=self.settings,
            health=self.health(),
            metrics=self.metrics,
        )

    def deliveries(self) -> Deliveries:
        return Deliveries(
            clock=self.core.clock,
            db=self.core.db,
            webhooks=self.sending,
            writer=self.writer(),
            calls=self.calls,
        )

    def replays(self) -> Replays:
        return Replays(
            clock=self.core.clock,
            events=self.core.events,
            jobs=self.core.jobs,
            webhooks=self.sending,
        )

    def jobs(self) -> WebhookJobs:
        return WebhookJobs(
            clock=self.core.clock,
            webhooks=self.webhooks(),
            deliveries=self.deliveries(),
            replays=self.replays(),
        )

    def counted(self, outcome: str) -> float | None:
        return self.registry.get_sample_value(COUNTED, {"outcome": outcome})

    def loaded(self, *deliveries: Delivery, webhook: Webhook = WEBHOOK, sealed: str = "") -> Any:
        """What the database answers when a batch is loaded."""
        sealed = sealed or self.core.secrets.encrypt(
            "whsec_x", ("webhooks_secrets.encrypted", "whe_1")
        )
        return [{**row_of(webhook), "encrypted": sealed}], [row_of(each) for each in deliveries]


# ---- webhooks --------------------------------------------------------------------------------------


async def test_a_webhook_is_made_with_a_secret_that_only_its_project_reads() -> None:
    hooks, tx = Plugin().webhooks(), FakeTx(answers=[[{"count": 0}]])
    body = CreateWebhookBody(url=URL, events=["event.tracked", "event.tracked"])
    webhook, secret = await hooks.create(tx, PROJECT, body)

    assert webhook.events == ("event.tracked",)
    [kept] = tx.rows["webhooks_secrets"]
    assert secret not in kept["encrypted"]
    assert hooks.unseal(webhook.webhook_id, [kept["encrypted"]]) == [secret]


@pytest.mark.parametrize(
    ("fields", "refusal", "match"),
    [
        ({"url": "http://shop.example/hook"}, InvalidUrl, "allow_http"),
        ({"url": "https://127.0.0.1/"}, InvalidUrl, "allow_cidrs"),
        ({"url": URL, "events": ["event.tracked", "x.y"]}, ValidationFailed, r"events\[1\]"),
    ],
)
async def test_what_can_not_be_called_or_never_happens_is_refused(
    fields: dict[str, Any], refusal: type[Exception], match: str
) -> None:
    with pytest.raises(refusal, match=match):
        await Plugin().webhooks().create(FakeTx(), PROJECT, CreateWebhookBody(**fields))


async def test_a_project_has_a_limited_number_of_webhooks() -> None:
    hooks = Plugin(endpoints_per_project=2).webhooks()

    with pytest.raises(Conflict, match="at most 2"):
        await hooks.create(FakeTx(answers=[[{"count": 2}]]), PROJECT, CreateWebhookBody(url=URL))


@pytest.mark.parametrize(
    ("change", "is_fresh"),
    [({"url": URL}, True), ({"status": "active"}, True), ({"events": []}, False)],
)
async def test_a_new_address_begins_with_a_clean_record(
    change: dict[str, Any], is_fresh: bool
) -> None:
    tx = FakeTx(answers=[1, [row_of(WEBHOOK)]])
    await Plugin().webhooks().update(tx, PROJECT, "whe_1", UpdateWebhookBody(**change))

    assert ("failing_since_ms" in tx.statements[0][1]) is is_fresh
    with pytest.raises(NotFound):
        await (
            Plugin()
            .webhooks()
            .update(FakeTx(answers=[0]), PROJECT, "whe_1", UpdateWebhookBody(**change))
        )


async def test_a_rotated_secret_signs_for_another_day_and_there_are_never_too_many() -> None:
    hooks = Plugin().webhooks()
    tx = FakeTx(answers=[1, [{"encrypted": "x"}], 0, 1])
    secret, until_ms = await hooks.rotate_secret(tx, PROJECT, "whe_1")

    assert until_ms == NOW_MS + DAY_MS
    assert hooks.unseal("whe_1", [tx.rows["webhooks_secrets"][0]["encrypted"]]) == [secret]
    many = [{"encrypted": "x"}] * MAX_VALID_SECRETS
    with pytest.raises(Conflict, match="valid secrets"):
        await hooks.rotate_secret(FakeTx(answers=[1, many]), PROJECT, "whe_1")


async def test_an_event_goes_to_those_who_want_it_with_one_body_and_a_job_each() -> None:
    shop, tx = Plugin(), FakeTx()
    wants = {"whe_1": (), "whe_2": ("event.tracked",), "whe_3": ("otp.verified",)}
    hooks = [replace(WEBHOOK, webhook_id=one, events=names) for one, names in wants.items()]
    tx = FakeTx(answers=[[row_of(each) for each in hooks]])
    event = Event("evt_1", PROJECT, "event.tracked", {"n": 1}, NOW_MS)
    await shop.webhooks().queue_deliveries(tx, [event])

    rows = tx.rows["webhooks_deliveries"]
    assert [row["webhook_id"] for row in rows] == ["whe_1", "whe_2"]
    assert {row["body"] for row in rows} == {
        '{"event":"event.tracked","data":{"event_id":"evt_1","n":1}}'
    }
    assert [job.lane for job in shop.core.jobs.named(DELIVER)] == ["webhook:whe_1", "webhook:whe_2"]


async def test_a_test_goes_out_at_once_in_one_attempt_to_an_active_webhook() -> None:
    shop, tx = Plugin(), FakeTx(answers=[[row_of(WEBHOOK)]])
    delivery = await shop.webhooks().send_test(tx, PROJECT, "whe_1")
    disabled = FakeTx(answers=[[row_of(replace(WEBHOOK, status="disabled"))]])

    assert (delivery.event, delivery.step) == (TEST, LAST_STEP)
    assert [job.priority for job in shop.core.jobs.named(DELIVER)] == [URGENT]
    with pytest.raises(Conflict, match="disabled"):
        await shop.webhooks().send_test(disabled, PROJECT, "whe_1")


async def test_a_redelivery_brings_forward_or_begins_anew_but_never_doubles() -> None:
    shop = Plugin()
    found = [[row_of(DELIVERY)], [], [row_of(WEBHOOK)], [row_of(WEBHOOK)]]
    again = [[row_of(DELIVERY)], []]
    ended = FakeTx(answers=[*found, [{"delivery_id": "whd_1"}], *again])
    await shop.webhooks().redeliver(ended, PROJECT, "whd_1")
    assert len(shop.core.jobs.enqueued) == 1

    # Its job is due now, so it is at work or about to be.
    with pytest.raises(Conflict, match="about to be"):
        await shop.webhooks().redeliver(FakeTx(answers=[*found, []]), PROJECT, "whd_1")
    assert len(shop.core.jobs.enqueued) == 1


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([[]], "no longer kept"),
        ([[row_of(replace(DELIVERY, status="delivered"))]], "succeeded"),
        ([[row_of(DELIVERY)], []], "deleted"),
        ([[row_of(DELIVERY)], *[[row_of(WEBHOOK)]] * 2, [{"job_id": "job_2"}]], "about to be"),
    ],
)
async def test_a_dead_job_is_not_restarted_where_nothing_would_be_sent(
    found: Any, why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        await Plugin().webhooks().restart(FakeTx(answers=found), job_of())


async def test_a_secret_of_an_older_key_is_sealed_by_the_current_one() -> None:
    core = plugin_context(plugin=plugin)
    old, new = "o" * 40, "n" * 40
    row = ("webhooks_secrets.encrypted", "whe_1")
    sealed = SecretBox([old]).encrypt("whsec_x", row)
    core = replace(core, secrets=SecretBox([new, old]))
    columns = ("project_id", "webhook_id", "secret_id", "encrypted")
    others = dict(zip(columns, (PROJECT, "whe_1", "whs_2", "unreadable"), strict=True))
    mine = dict(zip(columns, (PROJECT, "whe_1", "whs_1", sealed), strict=True))
    tx = FakeTx(answers=[[others, mine], 1])
    await Sending(core).reseal(tx)

    assert tx.statements[1][1]["secret_id"] == "whs_1"
    assert SecretBox([new]).decrypt(tx.statements[1][1]["sealed"], row) == "whsec_x"


# ---- outcomes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "step", "status", "verdict"),
    [
        (Attempt(NOW_MS, 5, 204), 0, "delivered", Verdict.DELIVERED),
        (Attempt(NOW_MS, 5, 500), 0, "pending", Verdict.RETRY),
        (Attempt(NOW_MS, 5, None, "no answer"), 2, "pending", Verdict.RETRY),
        (Attempt(NOW_MS, 5, 500), LAST_STEP, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 404), 0, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 429), 0, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 410), 0, "failed", Verdict.GONE),
        (Attempt(NOW_MS, 5, None, "ours", forbidden=True), 0, "failed", Verdict.FAILED),
    ],
)
def test_what_an_attempt_means_for_its_delivery(
    attempt: Attempt, step: int, status: str, verdict: Verdict
) -> None:
    written = Written(FakeJobContext(), 1)
    delivery = replace(DELIVERY, step=step)
    outcome = Plugin().writer().judged(written, job_of(), delivery, WEBHOOK, attempt)

    assert (outcome.status, outcome.verdict) == (status, verdict)
    assert (outcome.next_at_ms is None) == (status != "pending")


def test_throttling_is_retried_where_the_operator_says_so() -> None:
    writer = Plugin(retry_timeouts_and_throttling=True).writer()
    attempt = Attempt(NOW_MS, 5, 429, retry_after_s=90)
    outcome = writer.judged(Written(FakeJobContext(), 1), job_of(), DELIVERY, WEBHOOK, attempt)

    assert outcome.next_at_ms == NOW_MS + 90_000


async def test_outcomes_that_wait_together_are_written_in_one_transaction() -> None:
    shop = Plugin()
    shop.ctx.db.answers += [3]
    writer, written = shop.writer(), Written(shop.ctx, 3)
    for number in range(3):
        delivery = replace(DELIVERY, delivery_id=f"whd_{number}")
        attempt = Attempt(NOW_MS, 5, 200)
        writer.add(writer.judged(written, job_of(delivery), delivery, WEBHOOK, attempt))
    await written.all_written()

    assert shop.core.db.commits == 1
    assert [row["number"] for row in shop.core.db.rows["webhooks_attempts"]] == [1, 1, 1]
    assert shop.counted("delivered") == 3


async def test_one_outcome_that_another_runner_has_taken_over_does_not_spoil_the_others() -> None:
    shop = Plugin()
    # Together one row is missing; then the first alone is there, and the second alone is not.
    shop.ctx.db.answers += [1, 1, 0]
    writer = shop.writer()
    mine, others = Written(shop.ctx, 1), Written(shop.ctx, 1)
    for written in (mine, others):
        attempt = Attempt(NOW_MS, 5, 200)
        writer.add(writer.judged(written, job_of(), DELIVERY, WEBHOOK, attempt))
    await mine.all_written()

    with pytest.raises(LeaseLost):
        await others.all_written()
    assert shop.counted("delivered") == 1


async def test_an_absent_database_is_told_to_all_who_wait_at_once() -> None:
    class Away(FakeDatabase):
        tries = 0

        def transaction(self, **_options: Any) -> Any:
            self.tries += 1
            raise DatabaseUnavailable("away")

    db = Away()
    writer, written = Plugin().writer(), Written(FakeJobContext(db), 2)
    for _ in range(2):
        writer.add(Outcome(written, job_of()))

    with pytest.raises(DatabaseUnavailable):
        await written.all_written()
    assert db.tries == 1


async def test_a_cancelled_delivery_counts_no_attempt() -> None:
    shop = Plugin()
    shop.ctx.db.answers += [1]
    writer, written = shop.writer(), Written(shop.ctx, 1)
    writer.add(Outcome(written, job_of(), DELIVERY))
    await written.all_written()

    assert shop.core.db.statements[0][1]["status"] == "cancelled"
    assert shop.core.db.rows["webhooks_attempts"] == []
    assert {outcome: shop.counted(outcome) for outcome in ("delivered", "failed")} == {
        "delivered": 0,
        "failed": 0,
    }


def test_each_way_to_end_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    metrics = AttemptMetrics(registry)
    metrics.count(Verdict.RETRY, 2)
    metrics.count_disabled("gone")

    counts = {
        outcome: registry.get_sample_value(COUNTED, {"outcome": outcome})
        for outcome in ("delivered", "retried", "failed", "gone")
    }
    assert counts == {"delivered": 0, "retried": 2, "failed": 0, "gone": 0}
    disabled = "msgsvc_webhooks_disabled_total"
    assert registry.get_sample_value(disabled, {"reason": "gone"}) == 1
    assert registry.get_sample_value(disabled, {"reason": "failing"}) == 0


# ---- how a webhook is --------------------------------------------------------------------------------


def called(status: int, verdict: Verdict, **webhook: Any) -> Called:
    attempt = Attempt(NOW_MS, 5, status)
    return Called(replace(WEBHOOK, **webhook), DELIVERY, attempt, verdict)


async def test_a_webhook_that_works_and_did_before_costs_no_statement() -> None:
    tx = FakeTx()
    await Plugin().health().record(tx, [called(200, Verdict.DELIVERED)] * 3)

    assert tx.statements == []


async def test_one_success_ends_a_time_of_failures() -> None:
    failing = {"failing_since_ms": NOW_MS - DAY_MS}
    tx = FakeTx(answers=[1])
    several = [called(500, Verdict.RETRY, **failing), called(200, Verdict.DELIVERED, **failing)]
    await Plugin().health().record(tx, several)

    assert "failing_since_ms = NULL" in tx.statements[0][0]


async def test_a_gone_receiver_is_disabled_at_once_and_its_project_told() -> None:
    shop, tx = Plugin(disable_failing=True), FakeTx(answers=[1])
    await shop.health().record(tx, [called(410, Verdict.GONE)])
    tx.commit()

    [told] = shop.core.events.emitted
    assert (told.name, told.data["reason"]) == ("webhook.disabled", "gone")
    reason = {"reason": "gone"}
    assert shop.registry.get_sample_value("msgsvc_webhooks_disabled_total", reason) == 1


@pytest.mark.parametrize("disables", [True, False])
async def test_days_of_failures_disable_a_webhook_where_the_operator_says_so(
    disables: bool,
) -> None:
    shop = Plugin(disable_failing=disables, disable_after_days=5)
    since_ms = NOW_MS - 5 * DAY_MS
    failed = called(404, Verdict.FAILED, failing_since_ms=since_ms, failed_delivery_at_ms=NOW_MS)
    tx = FakeTx(answers=[1] if disables else [])
    await shop.health().record(tx, [failed])

    assert shop.core.events.names == ["webhook.disabled"] * disables


async def test_failures_of_one_day_are_counted_once() -> None:
    shop = Plugin(disable_failing=True, disable_after_days=5)
    failing = {"failing_since_ms": NOW_MS - 2 * DAY_MS}
    counted, again = FakeTx(answers=[1]), FakeTx()
    yesterday = called(404, Verdict.FAILED, **failing, failed_delivery_at_ms=NOW_MS - DAY_MS)
    today = called(404, Verdict.FAILED, **failing, failed_delivery_at_ms=NOW_MS - DAY_MS + 1)
    await shop.health().record(counted, [yesterday])
    await shop.health().record(again, [today])

    assert "failed_deliveries + 1" in counted.statements[0][0]
    assert again.statements == []


async def test_what_is_our_fault_or_a_test_says_nothing_of_the_receiver() -> None:
    ours = Called(WEBHOOK, DELIVERY, Attempt(NOW_MS, 0, error="x", is_ours=True), Verdict.RETRY)
    trial = Called(WEBHOOK, replace(DELIVERY, event=TEST), Attempt(NOW_MS, 5, 500), Verdict.RETRY)
    tx = FakeTx()
    await Plugin().health().record(tx, [ours, trial])

    assert tx.statements == []


# ---- calls and batches -------------------------------------------------------------------------------


async def test_eight_calls_are_made_at_once_and_the_rest_in_their_order() -> None:
    calls, at_work, began = Plugin().calls["webhook:whe_1"], set[str](), list[str]()
    free = asyncio.Event()

    async def attempt(job: Job) -> None:
        began.append(job.job_id)
        at_work.add(job.job_id)
        await free.wait()
        at_work.discard(job.job_id)

    jobs = [job_of() for _ in range(CALLS + 3)]
    calls.claimed(jobs)
    calls.make(jobs, attempt)

    async def all_places_taken() -> bool:
        return len(began) == CALLS

    await until(all_places_taken)
    assert len(at_work) == CALLS
    assert calls.capacity().jobs == 0
    free.set()

    async def all_done() -> bool:
        return len(began) == len(jobs) and not at_work

    await until(all_done)

    assert began == [job.job_id for job in jobs]


def test_a_quick_receiver_has_work_claimed_ahead_and_a_slow_one_none() -> None:
    by_lane = Plugin().calls
    quick, slow, new = by_lane["webhook:q"], by_lane["webhook:s"], by_lane["webhook:n"]
    for _ in range(50):
        quick.over(job_of(), 0.001)
        slow.over(job_of(), 10.0)

    assert [each.capacity().jobs for each in (quick, slow, new)] == [
        CALLS + MOST_AHEAD,
        CALLS + 1,
        CALLS,
    ]
    assert (quick.is_slow, slow.is_slow) == (False, True)


def test_a_full_lane_is_woken_when_there_is_room_and_forgotten_at_the_end() -> None:
    shop, woken = Plugin(), list[str]()
    shop.core.jobs.woken_by(lambda lane, _run_at_ms: woken.append(lane))
    calls, jobs = shop.calls["webhook:whe_1"], [job_of() for _ in range(CALLS)]
    calls.claimed(jobs)
    assert calls.capacity().jobs == 0
    calls.over(jobs[0], 5.0)

    assert woken == ["webhook:whe_1"]
    assert len(shop.calls) == 1
    del calls
    assert len(shop.calls) == 0


async def test_a_batch_loads_once_and_writes_what_came_of_each() -> None:
    shop = Plugin(200, 500)
    second = replace(DELIVERY, delivery_id="whd_2")
    # One delivered, one pending: two groups that are alike.
    shop.core.db.answers += [*shop.loaded(DELIVERY, second), 1, 1, 1]
    jobs = [job_of(), job_of(second)]
    await shop.deliveries().deliver(shop.ctx, jobs)

    assert shop.sending.sent == [(URL, "whd_1"), (URL, "whd_2")]
    assert jobs[0] in shop.ctx.completed
    assert [job for job, _ in shop.ctx.rescheduled] == [jobs[1]]


@pytest.mark.parametrize(
    ("delivery", "webhook"),
    [
        (DELIVERY, replace(WEBHOOK, status="disabled")),
        (replace(DELIVERY, status="delivered"), WEBHOOK),
    ],
)
async def test_what_needs_no_call_gets_none(delivery: Delivery, webhook: Webhook) -> None:
    shop, job = Plugin(), job_of()
    shop.core.db.answers += [*shop.loaded(delivery, webhook=webhook), 1]
    await shop.deliveries().deliver(shop.ctx, [job])

    assert shop.sending.sent == []
    assert job in shop.ctx.completed


async def test_a_secret_that_can_not_be_read_is_retried_and_shown_in_the_journal() -> None:
    shop, job = Plugin(), job_of()
    shop.core.db.answers += [*shop.loaded(DELIVERY, sealed="of another key"), 1]
    await shop.deliveries().deliver(shop.ctx, [job])

    assert [row["error"] for row in shop.core.db.rows["webhooks_attempts"]] == [UNREADABLE]
    assert [each for each, _ in shop.ctx.rescheduled] == [job]


async def test_what_was_not_tried_when_the_runner_stops_goes_back() -> None:
    shop = Plugin()
    shop.ctx.is_stopping = True

    with pytest.raises(Stopping):
        await shop.deliveries().deliver(shop.ctx, [job_of()])
    assert shop.core.db.statements == []


async def test_a_delivery_ends_with_its_dead_job_unless_it_has_ended() -> None:
    jobs = Plugin().jobs()
    pending = FakeTx(answers=[[row_of(DELIVERY)], 1])
    await jobs.finish_dead(pending, job_of(), "a fault")
    over = FakeTx(answers=[[row_of(replace(DELIVERY, status="delivered"))]])
    await jobs.finish_dead(over, job_of(), "a fault")

    assert pending.statements[-1][1]["status"] == "failed"
    assert len(over.statements) == 1


async def test_ended_secrets_are_forgotten_at_once_and_deliveries_after_their_days() -> None:
    shop = Plugin(journal_days=3)
    # Ended secrets, all secrets, attempts, deliveries.
    shop.core.db.answers += [1, [], 0, 0]
    await shop.jobs().purge(shop.ctx, [])

    (_, ended), _, (_, attempts), (_, deliveries) = shop.core.db.statements
    assert ended == {"now_ms": NOW_MS}
    assert attempts["before_ms"] == deliveries["before_ms"] == NOW_MS - 3 * DAY_MS
    assert [spec.name for spec in shop.jobs().specs()] == [DELIVER, REPLAY, "webhooks.purge"]


# ---- replays -----------------------------------------------------------------------------------------


async def happened(shop: Plugin, count: int = 1) -> list[Event]:
    person = shop.core.subscribers.person()
    new = NewEvent(PROJECT, "event.tracked", {"name": "x", "properties": {}}, person)
    return await shop.core.events.emit_many(FakeTx(), [new] * count)


@pytest.mark.parametrize(
    ("since_ms", "why"),
    [(NOW_MS + 1, "future"), (NOW_MS - 3 * DAY_MS - 1, "last 3 days"), (NOW_MS, "more than 2")],
)
async def test_a_replay_is_of_a_time_that_the_journal_knows_and_not_too_long(
    since_ms: int, why: str
) -> None:
    shop = Plugin(journal_days=3, replay_events=2)
    await happened(shop, 3)
    body = ReplayBody.model_construct(since=since_ms, include_delivered=False)

    with pytest.raises(ValidationFailed, match=why):
        await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)


async def test_one_replay_of_a_webhook_runs_at_a_time() -> None:
    shop = Plugin()
    await happened(shop)
    body = ReplayBody.model_construct(since=NOW_MS, include_delivered=False)
    answer = await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)

    assert answer.events == 1
    with pytest.raises(Conflict, match="under way"):
        await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)


def replay_job(again: bool) -> Job:
    payload = {
        "webhook_id": "whe_1",
        "since_ms": 0,
        "until_ms": NOW_MS,
        "after": None,
        "again": again,
    }
    return claimed(NewJob(REPLAY, payload, project_id=PROJECT))


@pytest.mark.parametrize(
    ("known", "again", "restarted"),
    [
        (["pending"], True, None),
        (["delivered"], False, None),
        (["delivered"], True, "whd_0"),
        (["failed", "cancelled"], False, "whd_1"),
        (["failed", "delivered", "failed"], True, "whd_1"),
    ],
)
async def test_at_most_one_delivery_of_an_event_is_repeated(
    known: list[str], again: bool, restarted: str | None
) -> None:
    shop = Plugin()
    [event] = await happened(shop)
    rows = [
        {"event_id": event.event_id, "delivery_id": f"whd_{number}", "status": status}
        for number, status in enumerate(known)
    ]
    begun = [] if restarted is None else [[{"delivery_id": restarted}]]
    shop.core.db.answers += [[row_of(WEBHOOK)], rows, *begun]
    await shop.replays().replay(shop.ctx, [replay_job(again)])

    jobs = shop.core.jobs.named(DELIVER)
    assert [job.payload["delivery_id"] for job in jobs] == ([restarted] if restarted else [])
    assert shop.core.db.rows["webhooks_deliveries"] == []


async def test_a_replay_goes_on_after_a_chunk_behind_what_happens_meanwhile() -> None:
    shop = Plugin()
    events = await happened(shop, CHUNK)
    shop.core.db.answers += [[row_of(WEBHOOK)], []]
    await shop.replays().replay(shop.ctx, [replay_job(again=False)])

    assert len(shop.core.db.rows["webhooks_deliveries"]) == CHUNK
    assert {job.priority for job in shop.core.jobs.enqueued} == {BULK}
    [rest] = shop.core.jobs.named(REPLAY)
    assert rest.payload["after"] == events[-1].event_id


async def test_a_replay_of_a_webhook_that_was_disabled_meanwhile_ends() -> None:
    shop, job = Plugin(), replay_job(again=True)
    await happened(shop)
    shop.core.db.answers += [[row_of(replace(WEBHOOK, status="disabled"))]]
    await shop.replays().replay(shop.ctx, [job])

    assert shop.ctx.completed == [job]
    assert shop.core.jobs.enqueued == []
