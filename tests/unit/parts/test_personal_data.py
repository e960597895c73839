"""Whose data can be asked for."""

import pytest

from msgsvc_core.kernel.errors import MutuallyExclusiveIdentifiers, ValidationFailed
from msgsvc_core.subscribers.personal_data import PersonalDataExport
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT


async def test_a_request_names_a_person_in_one_way(core: MemoryCore) -> None:
    export = core.get(PersonalDataExport)

    with pytest.raises(MutuallyExclusiveIdentifiers):
        await export.find(core.db, PROJECT, subscriber_id="sub_1", external_id="u1")
    with pytest.raises(ValidationFailed):
        await export.find(core.db, PROJECT, subscriber_id=None, external_id=None)


async def test_a_person_without_further_data_has_a_profile(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        ann = await core.person(tx, user_id="7")
    export = core.get(PersonalDataExport)
    [found] = await export.find(core.db, PROJECT, subscriber_id=ann.subscriber_id, external_id=None)
    collected = await export.collect(core.db, found)

    assert collected.profile["subscriber_id"] == ann.subscriber_id
    assert not any(collected.data.values())
