"""Checks of what a channel says of limits of its own."""

import pytest

from msgsvc_core.channels import Channel
from msgsvc_core.service import Service
from msgsvc_devkit.conformance.stage import Stage
from msgsvc_devkit.memory import memory_database


class Limitations(Stage):
    """`limitation` and `lift_limitation`."""

    async def test_a_channel_that_no_limit_stops_says_so(
        self, service: Service, channel: Channel
    ) -> None:
        if type(channel).limitation is Channel.limitation:
            pytest.skip("this channel has no limits of its own (limitation)")
        # Nothing was sent, so that the channel's tables are empty.
        async with memory_database(service.migrations) as db, db.transaction() as tx:
            said, lifted = await channel.limitation(tx), await channel.lift_limitation(tx)

        assert said is None, (
            f"nothing was sent, and `limitation` says {said!r}; None, where no limit stops messages now:"
            " anything else is shown to operators as trouble"
        )
        assert lifted is False, "nothing was stopped, and `lift_limitation` says that it ended that"
