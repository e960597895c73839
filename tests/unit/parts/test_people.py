"""What a merge of people refuses before it reads anything."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import InvalidExternalId, ValidationFailed
from msgsvc_core.subscribers.people import People
from msgsvc_devkit.core import PROJECT, MemoryCore


async def test_one_id_twice_and_an_invalid_one_are_refused(core: MemoryCore, tx: Tx) -> None:
    people = core.service.get(People)

    with pytest.raises(ValidationFailed):
        await people.merge(tx, PROJECT, "u1", "u1")
    with pytest.raises(InvalidExternalId):
        await people.merge(tx, PROJECT, "u1", " u2")
