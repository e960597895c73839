"""Which bulk actions are taken at all."""

import pytest

from msgsvc_core.bulk_actions import BulkAction
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.bulk_actions import BulkActions
from msgsvc_core.subscribers.bulk_actions.models import StartBulkActionBody
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_devkit.core import PROJECT, MemoryCore


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (StartBulkActionBody(action="erase"), "all, filters, subscriber_ids"),
        (
            StartBulkActionBody(action="erase", filters=SubscriberFilters()),
            "all, filters, subscriber_ids",
        ),
        (StartBulkActionBody(action="add_tag", all=True), "value"),
        (StartBulkActionBody(action="erase", all=True, value="vip"), "value"),
    ],
)
async def test_what_is_not_said_clearly_is_refused_before_a_job(
    core: MemoryCore, tx: Tx, body: StartBulkActionBody, field: str
) -> None:
    await core.tags.ensure(tx, PROJECT, ["vip"])

    with pytest.raises(ValidationFailed) as refused:
        await core.service.get(BulkActions).start(tx, PROJECT, body)

    assert str(refused.value).startswith(f"{field}:")
    assert await core.pending_jobs(tx) == []


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
