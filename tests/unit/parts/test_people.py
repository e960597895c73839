"""What a merge of people refuses before it reads anything."""

import pytest

from msgsvc_core.kernel.errors import InvalidExternalId, ValidationFailed
from msgsvc_core.messages.route_moves import merge_people
from msgsvc_core.subscribers.people import People
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT


async def test_one_id_twice_and_an_invalid_one_are_refused() -> None:
    core = plugin_context()
    people = People(subscribers=core.subscribers, contacts=core.contacts, on_merged=merge_people)
    async with core.db.transaction() as tx:
        with pytest.raises(ValidationFailed):
            await people.merge(tx, PROJECT, "u1", "u1")
        with pytest.raises(InvalidExternalId):
            await people.merge(tx, PROJECT, "u1", " u2")
