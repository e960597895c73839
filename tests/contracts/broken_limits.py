"""Channels that say of their limits what is not so, and the check of the kit that has to notice."""

from msgsvc_core.db import Tx
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


@breaks("test_a_channel_that_no_limit_stops_says_so")
class SaysNothingInWords(PigeonChannel):
    async def limitation(self, tx: Tx) -> str | None:
        return ""


@breaks("test_a_channel_that_no_limit_stops_says_so")
class LiftsWhatIsNotThere(PigeonChannel):
    async def limitation(self, tx: Tx) -> str | None:
        return None

    async def lift_limitation(self, tx: Tx) -> bool:
        return True
