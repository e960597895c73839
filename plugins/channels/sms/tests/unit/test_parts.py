"""The plugin's objects one by one, built from fakes."""

from msgsvc_core.channels import ChannelIdentity
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx
from msgsvc_sms import plugin
from msgsvc_sms.jobs import KEPT_DAYS, SmsJobs
from msgsvc_sms.operators import Operators

CHANNEL = ChannelIdentity("sms", key="sms")


async def test_a_limit_is_told_once_and_counted_each_time() -> None:
    core = plugin_context(plugin=plugin)
    operators = Operators(events=core.events, registry=core.metrics.registry)
    for first in (True, False):
        tx = FakeTx()
        await operators.limit_reached(
            tx,
            CHANNEL,
            PROJECT,
            rule="number_hour",
            says="10 messages an hour to one number",
            ends_at_ms=0,
            first=first,
        )
        tx.commit()

    assert [event.name for event in core.events.emitted] == ["sms.limit_reached"]
    counted = core.metrics.registry.get_sample_value(
        "msgsvc_sms_stopped_total", {"rule": "number_hour"}
    )
    assert counted == 2


async def test_each_table_is_purged() -> None:
    core = plugin_context(plugin=plugin)
    core.db.replies["DELETE FROM sms_"] = 0
    await SmsJobs(clock=core.clock).purge(FakeJobContext(core.db), [])

    assert [sql.split()[2] for sql, _ in core.db.statements] == list(KEPT_DAYS)
