"""The plugin's objects one by one, built from fakes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from msgsvc_core.db import WriteBatch
from msgsvc_core.kernel.errors import SubscriberNotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_scheduling.models import ScheduledBody
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.service import Scheduling
from msgsvc_scheduling.settings import SchedulingSettings

from .records import TO_ALL, TO_ANNA


@pytest.fixture
def core() -> FakeContext:
    return plugin_context()


def sending(core: FakeContext) -> Sending:
    return Sending(billing=core.billing, messages=core.messages, mailings=core.mailings)


def scheduling(core: FakeContext) -> Scheduling:
    return Scheduling(
        clock=core.clock,
        subscribers=core.subscribers,
        sending=sending(core),
        settings=SchedulingSettings(),
    )


async def test_who_has_left_is_skipped_and_sent_nothing(core: FakeContext) -> None:
    core.subscribers.person(status="unsubscribed")
    outcome = await sending(core).send_to_one(WriteBatch(), TO_ANNA)

    assert (outcome.status, outcome.reason) == ("skipped", "unsubscribed")
    assert core.messages.by_id == {}


async def test_what_is_not_paid_for_is_skipped_and_may_come_again(core: FakeContext) -> None:
    core.subscribers.person()
    core.billing.refused.add(PROJECT)
    to_one = await sending(core).send_to_one(WriteBatch(), TO_ANNA)
    to_many = await sending(core).send_to_many(FakeTx(), TO_ALL)

    assert [each.status for each in (to_one, to_many)] == ["skipped", "skipped"]
    assert core.messages.by_id == {}


async def test_what_can_not_be_sent_any_more_fails_with_its_reason(core: FakeContext) -> None:
    core.subscribers.person()
    broken = replace(TO_ANNA, message={"template": "gone"})
    outcome = await sending(core).send_to_one(WriteBatch(), broken)

    assert (outcome.status, outcome.reason) == ("failed", "not_found")


async def test_an_audience_gets_a_mailing(core: FakeContext) -> None:
    core.subscribers.person("sub_1")
    core.subscribers.person("sub_2", status="blocked")
    outcome = await sending(core).send_to_many(FakeTx(), TO_ALL)

    assert core.mailings.by_id[outcome.job_id or ""].total == 1


async def test_a_time_that_has_been_is_refused(core: FakeContext) -> None:
    core.subscribers.person()
    past = datetime.fromtimestamp(core.clock.time() - 60, UTC).isoformat()
    body = ScheduledBody(subscriber_id="sub_1", text="Hello", send_at=past)

    with pytest.raises(ValidationFailed, match="past"):
        await scheduling(core).create(FakeTx(), PROJECT, body)


async def test_a_message_for_nobody_is_refused_before_anything_is_written(
    core: FakeContext,
) -> None:
    later = datetime.fromtimestamp(core.clock.time() + 60, UTC).isoformat()
    body = ScheduledBody(subscriber_id="sub_unknown", text="Hello", send_at=later)

    with pytest.raises(SubscriberNotFound):
        await scheduling(core).create(FakeTx(), PROJECT, body)
