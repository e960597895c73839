"""Which bulk actions are taken at all."""

import pytest

from msgsvc_core.bulk_actions import BulkAction
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.bulk_actions.models import BulkActionBody
from msgsvc_core.subscribers.bulk_actions.service import BulkActions
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT


def _bulk_actions(core: FakeContext) -> BulkActions:
    return BulkActions(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        subscribers=core.subscribers,
        tags=core.tags,
        most=10,
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (BulkActionBody(action="erase"), "all, filters, subscriber_ids"),
        (
            BulkActionBody(action="erase", filters=SubscriberFilters()),
            "all, filters, subscriber_ids",
        ),
        (BulkActionBody(action="add_tag", all=True), "tag"),
        (BulkActionBody(action="erase", all=True, tag="vip"), "tag"),
    ],
)
async def test_what_is_not_said_clearly_is_refused_before_a_job(
    body: BulkActionBody, field: str
) -> None:
    core = plugin_context()
    async with core.db.transaction() as tx:
        with pytest.raises(ValidationFailed) as refused:
            await _bulk_actions(core).start(tx, PROJECT, body)

    assert str(refused.value).startswith(f"{field}:")
    assert not core.jobs.enqueued


def test_progress_is_the_share_of_those_who_were_reached() -> None:
    bulk = BulkAction(
        *(PROJECT, "blk_1", "subscribers", "erase", None, None, "running", None),
        8,
        1,
        1,
        None,
        0,
        None,
    )

    assert (bulk.reached, bulk.progress(), bulk.is_open) == (2, 0.25, True)
