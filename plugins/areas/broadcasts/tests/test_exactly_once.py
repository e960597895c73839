"""A broadcast on a platform that drops repeats: whoever is in doubt is sent to again, and sees it once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.mailings import sending, store
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled

from .conftest import AddPeople, counts, ended, shown, take


@pytest.fixture
def repeatable(channel: RecordingChannel) -> RecordingChannel:
    channel.capabilities = replace(channel.capabilities, repeatable=True)
    return channel


def lost() -> DeliveryError:
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)


async def test_a_recipient_whose_answer_was_lost_is_sent_to_again_with_the_same_key(
    service: Service,
    client: Any,
    people: AddPeople,
    repeatable: RecordingChannel,
    clock: FakeClock,
) -> None:
    ids = await people(3)
    repeatable.failures = [lost()]
    job_id = await take(client)
    await settled(service)
    clock.advance(5)
    await settled(service)
    done = await ended(client, job_id)

    assert counts(done) == (3, 0, 0, 3)
    assert sorted(set(repeatable.keys)) == [f"{job_id}-{each}" for each in ids]
    assert (len(repeatable.keys), len(repeatable.sent)) == (4, 3)


@pytest.mark.both_databases
async def test_those_in_hand_at_a_crash_are_sent_to_again(
    service: Service,
    client: Any,
    people: AddPeople,
    repeatable: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = await people(3)
    lock_shard = store.lock_shard

    async def left_by_a_dead_process(tx: Any, project_id: str, job_id: str, bot: str) -> Any:
        """The first look finds two people in hand, as a process leaves them that was killed."""
        monkeypatch.setattr(store, "lock_shard", lock_shard)
        found = await lock_shard(tx, project_id, job_id, bot)
        assert found is not None
        shard = replace(found.shard, in_flight=ids[:2], walked_to=ids[1])
        await store.set_shard(tx, project_id, job_id, shard)
        return replace(found, shard=shard)

    monkeypatch.setattr(sending.store, "lock_shard", left_by_a_dead_process)
    job_id = await take(client)
    done = await ended(client, job_id)

    assert counts(done) == (3, 0, 0, 3)
    assert done["unknown"] == 0
    assert _chats(repeatable) == ["chat-0", "chat-1", "chat-2"]


async def test_one_in_doubt_who_has_left_is_unknown_and_not_skipped(
    service: Service,
    client: Any,
    people: AddPeople,
    repeatable: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(1)
    repeatable.failures = [lost()]
    job_id = await take(client)
    await settled(service)
    (left,) = (await client.get(f"/v1/broadcast/{job_id}/recipients")).json()["data"]
    await client.delete(f"/v1/subscribers/{left['subscriber_id']}")
    clock.advance(5)
    await settled(service)
    done = await shown(client, job_id)

    assert (counts(done), done["unknown"]) == ((0, 1, 0, 1), 1)


def _chats(channel: RecordingChannel) -> Sequence[str]:
    return sorted(sent.chat_id for sent in channel.sent)
