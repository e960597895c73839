"""Variants of a broadcast: who gets which, which of them goes to the rest, and when."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_broadcasts.experiments import Experiments
from msgsvc_core.channels import ButtonPressed, ChannelUser, DeliveryError, Reason
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.mailings import store
from msgsvc_core.mailings.experiments import chosen_of
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import (
    LIMITS,
    PLUGINS,
    AddPeople,
    add,
    counts,
    ended,
    events,
    recipients,
    shown,
    take,
)
from .gate import begun, gate_of, gated, post

pytestmark = pytest.mark.both_databases

BUTTONS = [[{"text": "Yes", "data": "yes"}]]
TWO = [{"text": "Text of A", "buttons": BUTTONS}, {"text": "Text of B", "buttons": BUTTONS}]
HOUR = 3600


async def experiment(client: Any, *, variants: Sequence[Any] = TWO, **terms: Any) -> str:
    """A broadcast of two variants to all; returns its id."""
    body = {"audience": {"all": True}, "variants": variants, "experiment": terms}
    answer = await client.post("/v1/broadcast", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


async def choose(client: Any, job_id: str, variant: str) -> Any:
    return await client.post(f"/v1/broadcast/{job_id}/winner", json={"variant": variant})


async def state(client: Any, job_id: str) -> dict[str, Any]:
    found = await shown(client, job_id)
    return dict(found["experiment"])


async def waiting(client: Any, job_id: str) -> dict[str, Any]:
    """The experiment when its first stage has ended."""

    async def look() -> dict[str, Any] | None:
        found = await state(client, job_id)
        return found if found["status"] in {"scheduled", "pending"} else None

    return await until(look, timeout_s=30, interval_s=0.02)


def texts(channel: RecordingChannel) -> Counter[str]:
    return Counter(each.message.text for each in channel.sent)


def chats(channel: RecordingChannel, text: str) -> list[str]:
    return [each.chat_id for each in channel.sent if each.message.text == text]


async def press(service: Service, channel: RecordingChannel, *chat_ids: str) -> None:
    """These people press the button of their message."""
    refs = {each.chat_id: each.message_ref for each in channel.sent}
    for chat_id in chat_ids:
        number = chat_id.rpartition("-")[2]
        await service.inbound.receive(
            "messenger_a",
            ButtonPressed(
                update_id=f"press-{number}",
                chat_id=chat_id,
                user=ChannelUser(f"user-{number}", "Ann", None, "en"),
                data="yes",
                message_ref=refs[chat_id],
                button_ref="press",
            ),
        )
    await settled(service)


# ---- who gets which ------------------------------------------------------------------------------


def test_assignment_is_even_and_the_same_each_time_and_differs_between_broadcasts() -> None:
    ids = [f"sub_{number:05d}" for number in range(1000)]
    found = chosen_of("job_1", ids, 0, 20, 3)
    other = chosen_of("job_2", ids, 0, 20, 3)

    assert sorted(Counter(found.values()).values()) == [66, 67, 67]
    assert chosen_of("job_1", list(reversed(ids)), 0, 20, 3) == found
    assert found.keys() != other.keys()
    # In no part of the audience are there many more than in another.
    halves = Counter(each < "sub_00500" for each in found)
    assert 70 < halves[True] < 130


def test_assignment_in_steps_is_as_even_as_in_one() -> None:
    found: Counter[int] = Counter()
    for start in range(0, 1000, 3):
        ids = [f"sub_{number:05d}" for number in range(start, min(start + 3, 1000))]
        found.update(chosen_of("job_1", ids, start, 20, 4).values())

    assert found == {0: 50, 1: 50, 2: 50, 3: 50}


async def test_the_share_gets_the_variants_and_the_rest_only_the_winner_by_clicks(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(50)
    job_id = await experiment(client, share_percent=40, after_seconds=HOUR)
    held = await waiting(client, job_id)
    first = texts(channel)
    testers = {each.chat_id for each in channel.sent}
    of_b = chats(channel, "Text of B")
    await press(service, channel, *of_b[:3], chats(channel, "Text of A")[0])
    clock.advance(HOUR - 10)
    await settled(service)
    before = texts(channel)
    clock.advance(20)
    done = await ended(client, job_id)
    compared = (await client.get(f"/v1/broadcast/{job_id}/variants")).json()["variants"]

    assert first == before == {"Text of A": 10, "Text of B": 10}
    assert held["decides_at"] is not None
    assert texts(channel) == {"Text of A": 10, "Text of B": 40}
    assert len({each.chat_id for each in channel.sent}) == len(channel.sent) == 50
    assert testers.isdisjoint(set(chats(channel, "Text of B")) - set(of_b))
    assert counts(done) == (50, 0, 0, 50)
    chosen = done["experiment"]
    assert (chosen["status"], chosen["chosen"], chosen["chosen_by"], chosen["reason"]) == (
        "completed",
        "B",
        "clicks",
        "most_clicks",
    )
    assert [(each["name"], each["sent"], each["clicked"]) for each in compared] == [
        ("A", 10, 1),
        ("B", 10, 3),
    ]
    assert [each["clicked_share"] for each in compared] == [0.1, 0.3]
    assert compared[1]["message"]["text"] == "Text of B"
    [event] = await events(client, "broadcast.winner_chosen")
    assert (event["job_id"], event["variant"], event["by"]) == (job_id, "B", "clicks")
    assert [each["clicked"] for each in event["variants"]] == [1, 3]
    assert len(await events(client, "broadcast.completed")) == 1
    assert len(await recipients(client, job_id, status="sent")) == 50


@pytest.mark.parametrize(("pressed", "reason"), [(1, "tie"), (0, "no_clicks")])
async def test_with_a_tie_or_no_clicks_the_first_variant_wins_and_the_report_says_why(
    service: Service,
    client: Any,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
    pressed: int,
    reason: str,
) -> None:
    await people(20)
    job_id = await experiment(client, share_percent=50)
    await waiting(client, job_id)
    both = [chats(channel, f"Text of {name}")[:pressed] for name in "AB"]
    await press(service, channel, *both[0], *both[1])
    clock.advance(HOUR + 1)
    done = await ended(client, job_id)

    assert (done["experiment"]["chosen"], done["experiment"]["reason"]) == ("A", reason)
    assert texts(channel) == {"Text of A": 15, "Text of B": 5}


async def test_all_get_the_variants_if_the_share_is_the_whole(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(8)
    three = [*TWO, {"name": "third", "text": "Text of C"}]
    job_id = await experiment(client, variants=three, share_percent=100)
    done = await ended(client, job_id)
    late = await choose(client, job_id, "A")

    assert sorted(texts(channel).values()) == [2, 3, 3]
    assert (done["status"], done["experiment"]["status"]) == ("completed", "completed")
    assert done["experiment"]["variants"] == ["A", "B", "third"]
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert await events(client, "broadcast.winner_chosen") == []


# ---- choices -------------------------------------------------------------------------------------


async def test_a_manual_experiment_waits_for_a_choice_and_takes_one(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(20)
    job_id = await experiment(client, share_percent=50, winner="manual", after_seconds=300)
    held = await waiting(client, job_id)
    clock.advance(30 * 24 * HOUR)
    await settled(service)
    still = await state(client, job_id)
    wrong = await choose(client, job_id, "C")
    first = await choose(client, job_id, "B")
    second = await choose(client, job_id, "A")
    done = await ended(client, job_id)

    assert held["decides_at"] is None
    assert still["status"] == "pending"
    assert (wrong.status_code, wrong.json()["code"]) == (400, "validation_failed")
    assert (first.status_code, first.json()["experiment"]["chosen_by"]) == (200, "api")
    assert (second.status_code, second.json()["code"]) == (409, "winner_already_chosen")
    assert texts(channel) == {"Text of A": 5, "Text of B": 15}
    assert done["experiment"]["reason"] is None
    [event] = await events(client, "broadcast.winner_chosen")
    assert (event["variant"], event["by"], event["reason"]) == ("B", "api", None)


async def test_an_early_choice_reaches_all_who_have_got_nothing_yet(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await gated(make_service)
    tenant: Tenant = await make_tenant(service)
    gate = gate_of(service)
    await add(service, tenant, 600)
    job_id = await experiment(tenant.client, share_percent=90)
    await begun(gate, 50)
    early = await choose(tenant.client, job_id, "B")
    in_flight = gate.begun
    gate.open()
    done = await ended(tenant.client, job_id)
    compared = (await tenant.client.get(f"/v1/broadcast/{job_id}/variants")).json()["variants"]

    assert early.status_code == 200
    assert counts(done) == (600, 0, 0, 600)
    assert len({each.chat_id for each in gate.sent}) == len(gate.sent) == 600
    assert 0 < texts(gate)["Text of A"] <= in_flight
    # Who got B as the winner is not among its figures.
    assert compared[0]["sent"] == texts(gate)["Text of A"]
    assert compared[1]["sent"] < texts(gate)["Text of B"]


async def test_an_early_choice_finds_nobody_again_who_is_in_flight(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await gated(make_service)
    tenant: Tenant = await make_tenant(service)
    gate = gate_of(service)
    await add(service, tenant, 600)
    job_id = await experiment(tenant.client, share_percent=90)
    await begun(gate, 200)
    await choose(tenant.client, job_id, "B")
    before = gate.begun
    # The next claim begins the second stage while other calls of the first are under way.
    gate.release(150)
    await begun(gate, before + 1)
    gate.open()
    done = await ended(tenant.client, job_id)

    assert counts(done) == (600, 0, 0, 600)
    assert gate.begun == len({each.chat_id for each in gate.sent}) == 600


@pytest.mark.database_file
async def test_of_two_choices_at_once_one_wins(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(20)
    job_id = await experiment(tenant.client, share_percent=50)
    await waiting(tenant.client, job_id)
    clock.advance(HOUR + 1)
    project_id = tenant.project.project_id

    async def attempt(variant: str) -> str:
        try:
            async with service.db.transaction() as tx:
                await service.get(Experiments).choose(tx, project_id, job_id, variant, "member")
        except ApiError as error:
            return error.code
        return variant

    # The job is due too.
    outcomes = await asyncio.gather(*(attempt("B") for _ in range(4)))
    done = await ended(tenant.client, job_id)
    chosen = await events(tenant.client, "broadcast.winner_chosen")

    won = [each for each in outcomes if each == "B"]
    assert len(won) <= 1
    assert set(outcomes) <= {"B", "winner_already_chosen", "conflict"}
    assert len(chosen) == 1
    assert done["experiment"]["chosen"] == chosen[0]["variant"] == ("B" if won else "A")
    assert counts(done) == (20, 0, 0, 20)
    assert len({each.chat_id for each in channel.sent}) == 20


async def test_a_choice_before_it_begins_sends_one_variant_to_all(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(10)
    body = {
        "audience": {"all": True},
        "variants": TWO,
        "send_at": "2026-01-20T12:00:00Z",
    }
    job_id = (await client.post("/v1/broadcast", json=body)).json()["job_id"]
    chosen = await choose(client, job_id, "B")
    clock.advance(60 * 24 * HOUR)
    await ended(client, job_id)

    assert chosen.json()["status"] == "scheduled"
    assert texts(channel) == {"Text of B": 10}


# ---- stopping, and starting again ----------------------------------------------------------------


async def test_a_scheduled_one_begins_its_experiment_at_its_time(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(10)
    body = {
        "audience": {"all": True},
        "variants": TWO,
        "experiment": {"share_percent": 40, "after_seconds": 300},
        "send_at": "2026-01-20T12:00:00Z",
    }
    job_id = (await client.post("/v1/broadcast", json=body)).json()["job_id"]
    before = await state(client, job_id)
    clock.advance(60 * 24 * HOUR)
    await waiting(client, job_id)
    clock.advance(301)
    done = await ended(client, job_id)

    assert before["status"] == "running"
    assert texts(channel) == {"Text of A": 8, "Text of B": 2}
    assert counts(done) == (10, 0, 0, 10)


async def test_cancel_while_it_waits_sends_nothing_more(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(20)
    job_id = await experiment(client, share_percent=50)
    await waiting(client, job_id)
    cancelled = (await post(client, job_id, "cancel")).json()
    late = await choose(client, job_id, "A")
    clock.advance(HOUR + 1)
    await settled(service)
    done = await ended(client, job_id)

    assert (cancelled["status"], counts(done)) == ("cancelled", (10, 0, 10, 20))
    assert done["experiment"]["status"] == "cancelled"
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert len(channel.sent) == 10
    assert await events(client, "broadcast.winner_chosen") == []


async def test_a_pause_while_it_waits_holds_the_second_stage(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(20)
    job_id = await experiment(client, share_percent=50)
    await waiting(client, job_id)
    await post(client, job_id, "pause")
    clock.advance(HOUR + 1)
    await settled(service)
    held = await shown(client, job_id)
    await post(client, job_id, "resume")
    done = await ended(client, job_id)

    assert (held["status"], held["sent"], held["experiment"]["status"]) == (
        "paused",
        10,
        "completed",
    )
    assert counts(done) == (20, 0, 0, 20)
    assert texts(channel) == {"Text of A": 15, "Text of B": 5}


async def test_a_pause_in_the_first_stage_holds_it_and_the_test_goes_on_where_it_was(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await gated(make_service)
    tenant: Tenant = await make_tenant(service)
    gate = gate_of(service)
    await add(service, tenant, 600)
    job_id = await experiment(tenant.client, share_percent=50)
    await begun(gate, 50)
    await post(tenant.client, job_id, "pause")
    gate.open()
    await settled(service)
    held = await shown(tenant.client, job_id)
    await post(tenant.client, job_id, "resume")
    await waiting(tenant.client, job_id)
    first = texts(gate)
    clock.advance(HOUR + 1)
    done = await ended(tenant.client, job_id)

    assert held["status"] == "paused"
    assert held["sent"] < 300
    assert first == {"Text of A": 150, "Text of B": 150}
    assert counts(done) == (600, 0, 0, 600)
    assert len({each.chat_id for each in gate.sent}) == len(gate.sent) == 600


@pytest.mark.parametrize("stage", ["test", "rest"])
async def test_those_in_flight_at_a_crash_get_no_second_variant(
    service: Service,
    client: Any,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    """The first look of a stage finds people in flight, as a process leaves them that was killed."""
    await people(20)
    lock_shard = store.lock_shard
    left: list[str] = []

    async def left_by_a_dead_process(tx: Any, project_id: str, job_id: str, bot: str) -> Any:
        found = await lock_shard(tx, project_id, job_id, bot)
        if found is None or found.mailing.stage != stage or left:
            return found
        sql = (
            "SELECT subscriber_id FROM core_recipients WHERE job_id = :job_id"
            " AND status = 'queued' ORDER BY subscriber_id"
        )
        if stage == "test":
            sql = sql.replace(" ORDER", " AND variant IS NOT NULL ORDER")
        rows = await tx.fetch_all(sql, {"job_id": job_id})
        left.extend(row["subscriber_id"] for row in rows[:2])
        shard = found.shard.of_stage(found.mailing)
        shard = type(shard)(bot, left[-1], list(left), is_done=False, is_rest=shard.is_rest)
        await store.set_shard(tx, project_id, job_id, shard)
        return type(found)(found.mailing, shard, found.is_project_active)

    monkeypatch.setattr(store, "lock_shard", left_by_a_dead_process)
    job_id = await experiment(client, share_percent=50)
    await waiting(client, job_id)
    clock.advance(HOUR + 1)
    done = await ended(client, job_id)
    unknown = await recipients(client, job_id, status="unknown")
    messages = [(await client.get(f"/v1/messages/{each['message_id']}")).json() for each in unknown]

    assert len(left) == 2
    assert {each["subscriber_id"] for each in unknown} == set(left)
    assert (counts(done), done["unknown"]) == ((18, 2, 0, 20), 2)
    assert len({each.chat_id for each in channel.sent}) == len(channel.sent) == 18
    expected = {"Text of A", "Text of B"} if stage == "test" else {"Text of A"}
    assert {each["text"] for each in messages} <= expected


async def test_a_service_that_starts_again_decides_in_time(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    before = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    tenant: Tenant = await make_tenant(before)
    await add(before, tenant, 20)
    job_id = await experiment(tenant.client, share_percent=50)
    await waiting(tenant.client, job_id)
    url = before.settings.database_url
    await before.stop()
    clock.advance(HOUR + 1)
    after = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    project_id = tenant.project.project_id

    async def is_done() -> bool:
        async with after.db.read() as tx:
            mailing = await after.mailings.find(tx, project_id, job_id)
        return mailing.finished_at_ms is not None

    await until(is_done)
    async with after.db.read() as tx:
        mailing = await after.mailings.find(tx, project_id, job_id)
    assert (mailing.status, mailing.sent, mailing.winner) == ("completed", 20, 0)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"variants": TWO[:1]}, "variants"),
        ({"variants": [*TWO, *TWO, *TWO]}, "variants"),
        ({"variants": TWO, "text": "Hi"}, "text: can't be combined with variants"),
        ({"variants": TWO, "buttons": BUTTONS}, "buttons: can't be combined with variants"),
        ({"text": "Hi", "experiment": {"share_percent": 20}}, "experiment: needs variants"),
        ({"variants": TWO, "experiment": {"share_percent": 0}}, "experiment.share_percent"),
        ({"variants": TWO, "experiment": {"share_percent": 101}}, "experiment.share_percent"),
        ({"variants": TWO, "experiment": {"after_seconds": 299}}, "experiment.after_seconds"),
        ({"variants": TWO, "experiment": {"after_seconds": 604801}}, "experiment.after_seconds"),
        ({"variants": TWO, "experiment": {"winner": "chance"}}, "experiment.winner"),
        ({"variants": TWO, "expires_in": 3600}, "expires_in: ends before the winner"),
        ({"variants": [TWO[0], {}]}, "variants[1]"),
        ({"variants": [TWO[0], {"text": "x" * 5000}]}, "variants[1].text"),
        ({"variants": [TWO[0], {"text": "{{ city }}"}]}, "variants[1].variables.city"),
        ({"variants": [{**TWO[0], "name": "B"}, TWO[1]]}, "name of its own"),
        ({"variants": [TWO[0], {**TWO[1], "silent": True}]}, "variants[1].silent"),
    ],
)
@pytest.mark.shared_service
async def test_what_cannot_be_tried_is_refused_and_names_the_variant(
    client: Any, body: dict[str, Any], why: str
) -> None:
    answer = await client.post("/v1/broadcast", json={"audience": {"all": True}, **body})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed"), answer.text
    assert why in answer.json()["error"]


async def test_a_template_may_be_a_variant_and_one_that_is_not_there_is_named(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(2)
    await client.post("/v1/templates", json={"key": "sale", "text": "From {{ shop }}"})
    template = {"template": "sale", "variables": {"shop": "us"}}
    job_id = await experiment(client, variants=[TWO[0], template], share_percent=100)
    await ended(client, job_id)
    missing = await client.post(
        "/v1/broadcast",
        json={"audience": {"all": True}, "variants": [TWO[0], {"template": "gone"}]},
    )

    assert texts(channel) == {"Text of A": 1, "From us": 1}
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_a_dry_run_checks_and_counts_and_a_test_takes_one_message(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann, *_] = await people(5)
    everybody = {"audience": {"all": True}}
    dry = await client.post("/v1/broadcast", json={**everybody, "variants": TWO, "dry_run": True})
    several = await client.post("/v1/broadcast/test", json={"subscriber_id": ann, "variants": TWO})
    one = await client.post("/v1/broadcast/test", json={"subscriber_id": ann, **TWO[1]})
    await settled(service)

    assert (dry.status_code, dry.json()["total"]) == (202, 5)
    assert several.status_code == 400
    assert one.status_code == 202
    assert texts(channel) == {"Text of B": 1}


async def test_a_broadcast_of_one_message_has_no_winner(
    service: Service, client: Any, people: AddPeople
) -> None:
    await people(1)
    job_id = await take(client)
    refused = await choose(client, job_id, "A")
    unknown = await choose(client, "job_none", "A")
    compared = await client.get(f"/v1/broadcast/{job_id}/variants")

    assert (await shown(client, job_id))["experiment"] is None
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert unknown.status_code == 404
    assert compared.json() == {"variants": []}


async def test_a_resend_gives_each_the_variant_that_they_may_have_got(
    service: Service, client: Any, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(12)
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)
    channel.failures = [lost] * 2
    three = [*TWO, {"text": "Text of C"}, {"text": "Text of D"}]
    job_id = await experiment(client, variants=three, share_percent=100)
    await ended(client, job_id)
    unknown = await recipients(client, job_id, status="unknown")
    expected = {}
    for each in unknown:
        message = (await client.get(f"/v1/messages/{each['message_id']}")).json()
        expected[each["subscriber_id"]] = message["text"]
    before = len(channel.sent)
    resent = (await post(client, job_id, "resend-unknown")).json()["job_id"]
    await ended(client, resent)
    got = {
        f"sub_a{int(each.chat_id.removeprefix('chat-')):07d}": each.message.text
        for each in channel.sent[before:]
    }

    assert len(unknown) == 2
    assert set(expected.values()) <= {each["text"] for each in three}
    assert got == expected
