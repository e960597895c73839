"""Whose data can be asked for."""

import pytest

from msgsvc_core.kernel.errors import MutuallyExclusiveIdentifiers, ValidationFailed
from msgsvc_core.messages.route_moves import merge_people
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.personal_data import PersonalDataExport
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT


def _export(core: FakeContext) -> PersonalDataExport:
    return PersonalDataExport(
        clock=core.clock,
        subscribers=core.subscribers,
        people=People(subscribers=core.subscribers, contacts=core.contacts, on_merged=merge_people),
        contacts=core.contacts,
        declared=(),
    )


async def test_a_request_names_a_person_in_one_way() -> None:
    core = plugin_context()
    with pytest.raises(MutuallyExclusiveIdentifiers):
        await _export(core).find(core.db, PROJECT, subscriber_id="sub_1", external_id="u1")
    with pytest.raises(ValidationFailed):
        await _export(core).find(core.db, PROJECT, subscriber_id=None, external_id=None)


async def test_a_person_without_further_data_has_a_profile() -> None:
    core = plugin_context()
    ann = core.subscribers.person(user_id="7")
    found = await _export(core).find(
        core.db, PROJECT, subscriber_id=ann.subscriber_id, external_id=None
    )
    collected = await _export(core).collect(core.db, found[0])

    assert collected.profile["subscriber_id"] == ann.subscriber_id
    assert collected.data == {}
