"""Checks of what a channel says of limits of its own."""

import pytest

from msgsvc_core.channels import Channel
from msgsvc_devkit.conformance.stage import Stage
from msgsvc_devkit.fakes import FakeTx


class Limitations(Stage):
    """`limitation` and `lift_limitation`."""

    async def test_a_channel_that_no_limit_stops_says_so(self, channel: Channel) -> None:
        if type(channel).limitation is Channel.limitation:
            pytest.skip("this channel has no limits of its own (limitation)")
        # Nothing was sent, so that the channel's tables are empty.
        tx = FakeTx(replies={"SELECT": []})
        said, lifted = await channel.limitation(tx), await channel.lift_limitation(tx)

        assert said is None, (
            f"nothing was sent, and `limitation` says {said!r}; None, where no limit stops messages now:"
            " anything else is shown to operators as trouble"
        )
        assert lifted is False, "nothing was stopped, and `lift_limitation` says that it ended that"
