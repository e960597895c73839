"""Projects, events, jobs, system messages, channels and what else plugins use: fakes as the real parts."""

import pytest

from msgsvc_core.billing import MESSAGE, Charge
from msgsvc_core.channels.outbox import OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.events.contract import NewEvent
from msgsvc_core.jobs.contract import NORMAL, URGENT, NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import (
    InvalidApiKey,
    NotFound,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.projects.models import ProjectBody
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fakes import FakeTx, NoTables


async def test_a_project_is_made_named_and_switched_off(core: PluginContext, tx: Tx) -> None:
    project = await core.projects.add(tx, "Shop")
    await core.projects.update(tx, project.project_id, ProjectBody(name="Store", welcome="Hi"))
    await core.projects.update(tx, project.project_id, ProjectBody(farewell="Bye"))
    await core.projects.switch(tx, project.project_id, active=False)
    found = await core.projects.get(tx, project.project_id)
    texts = await core.projects.texts(tx, project.project_id)

    assert (found.name, found.status) == ("Store", "disabled")
    assert await core.projects.get_many(tx, [found.project_id, "prj_unknown"]) == {
        found.project_id: found
    }
    assert await core.projects.find_disabled(tx) == {found.project_id}
    assert await core.projects.find_disabled(tx, ["prj_unknown"]) == set()
    await core.projects.set_owner(tx, found.project_id, "acc_1")
    assert await core.projects.find_owners(tx, [found.project_id, "prj_unknown"]) == {
        found.project_id: "acc_1"
    }
    assert (texts.welcome, texts.farewell) == ("Hi", "Bye")
    with pytest.raises(ValidationFailed):
        await core.projects.add(tx, " Shop")
    with pytest.raises(ValidationFailed):
        await core.projects.update(tx, project.project_id, ProjectBody(welcome="{{ unknown }}"))
    for missing in (
        core.projects.get(tx, "prj_unknown"),
        core.projects.switch(tx, "prj_unknown", active=True),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_an_api_key_works_until_it_is_revoked(core: PluginContext) -> None:
    project = await core.projects.create("Shop")
    key, secret = await core.projects.create_key(project.project_id, "site", ["messages:write"])
    found, found_key = await core.projects.authenticate(secret)
    listed = await core.projects.list_keys(project.project_id)
    await core.projects.revoke_key(project.project_id, key.key_id)

    assert (found, found_key) == (project, key)
    assert [each.key for each in listed] == [key]
    with pytest.raises(InvalidApiKey):
        await core.projects.authenticate(secret)
    with pytest.raises(Unauthorized):
        await core.projects.authenticate(None)
    with pytest.raises(NotFound):
        await core.projects.revoke_key(project.project_id, key.key_id)
    await core.projects.set_active(project.project_id, False)
    assert project.project_id in [each.project_id for each in await core.projects.list()]
    async with core.db.transaction() as tx:
        again, _ = await core.projects.add_key(tx, project.project_id, "site")
        await core.projects.revoke_key_in(tx, project.project_id, again.key_id)
        assert len(await core.projects.keys_of(tx, project.project_id)) == 2


async def test_an_api_key_works_until_it_expires(core: PluginContext, clock: FakeClock) -> None:
    project = await core.projects.create("Shop")
    names = {"later": 15 * DAY_MS, "next": 10 * DAY_MS, "first": DAY_MS}
    made = {
        name: await core.projects.create_key(
            project.project_id, name, expires_at_ms=clock.now_ms() + ahead_ms
        )
        for name, ahead_ms in names.items()
    }
    with pytest.raises(ValidationFailed):
        await core.projects.create_key(project.project_id, "x", expires_at_ms=clock.now_ms())
    async with core.db.read() as tx:
        soon = await core.projects.find_expiring(tx)
    clock.advance(24 * 3600)
    async with core.db.read() as tx:
        left = await core.projects.find_expiring(tx)

    assert [each.key for each in soon] == [made["first"][0], made["next"][0]]
    assert [each.key.name for each in left] == ["next", "later"]
    with pytest.raises(InvalidApiKey):
        await core.projects.authenticate(made["first"][1])
    assert (await core.projects.authenticate(made["next"][1]))[1] == made["next"][0]
    await core.projects.set_active(project.project_id, False)
    async with core.db.read() as tx:
        assert await core.projects.find_expiring(tx) == []


async def test_events_are_kept_in_order_and_found(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    now_ms = clock.now_ms()
    fields = {"channel": "messenger_a"}
    first = await core.events.emit(tx, project_id, "channel.recovered", {"channel": "messenger_a"})
    clock.advance(1)
    [second] = await core.events.emit_many(
        tx, [NewEvent(project_id, "channel.recovered", fields, None)]
    )
    assert await core.events.emit_many(tx, []) == []

    async def between(*names: str, after: str | None = None, limit: int = 10) -> list[str]:
        found = await core.events.between(
            tx, project_id, names, since_ms=now_ms, until_ms=now_ms + 1000, after=after, limit=limit
        )
        return [event.event_id for event in found]

    assert await between() == [first.event_id, second.event_id]
    assert await between("channel.recovered", after=first.event_id) == [second.event_id]
    assert await between("channel.stopped") == []
    assert await between(limit=1) == [first.event_id]
    count = core.events.count
    assert await count(tx, project_id, since_ms=now_ms, until_ms=now_ms, limit=10) == 1
    assert await core.events.history(tx, project_id, "sub_1", None, 10) == []
    with pytest.raises(KeyError):
        await core.events.emit(tx, project_id, "no.event", {})
    with pytest.raises(ValueError, match="no event"):
        core.events.listen("no.event", _ignore)


async def test_one_open_job_has_a_key(core: PluginContext, tx: Tx, clock: FakeClock) -> None:
    later = NewJob("x.look", {"n": 1}, run_at_ms=clock.now_ms() + 1000, key="k")
    assert not await core.jobs.has_open(tx, "x.look", "k")
    await core.jobs.enqueue(tx, later, NewJob("x.look", {"n": 2}, key="k"))

    assert await core.jobs.has_open(tx, "x.look", "k")
    assert not await core.jobs.bring_forward(tx, NewJob("x.look", {"n": 2}, key="k"))
    assert await core.jobs.bring_forward(tx, NewJob("x.look", {"n": 1}, key="k"))
    assert not await core.jobs.bring_forward(tx, NewJob("x.look", {"n": 1}, key="k"))


async def test_what_waits_in_a_lane_is_told(core: PluginContext, tx: Tx, clock: FakeClock) -> None:
    now_ms = clock.now_ms()
    later = NewJob("x.look", {"to": "anna"}, lane="channel:a", run_at_ms=now_ms + 1000)
    await core.jobs.enqueue(tx, NewJob("x.look", {"to": "boris"}, lane="channel:a"), later)

    assert await core.jobs.running(tx, "channel:a", "x.look") == []
    postponed = await core.jobs.list_postponed(tx, "channel:a")
    assert [job.payload for job in postponed] == [{"to": "anna"}]
    assert await core.jobs.list_interrupted(tx, "channel:a") == []
    assert await core.jobs.has_due_by(tx, "channel:a", now_ms)
    assert not await core.jobs.has_due_by(tx, "channel:b", now_ms)
    assert await core.jobs.has_waiting(tx, "channel:a", {NORMAL: now_ms})
    assert not await core.jobs.has_waiting(tx, "channel:a", {NORMAL: now_ms - 1, URGENT: now_ms})
    assert await core.mailings.must_yield(tx, "channel:a") is False
    assert await core.jobs.count_by_state(tx) == {"ready": 1, "delayed": 1}
    counted = await core.jobs.count_by_lane(tx, now_ms)
    assert {(row["state"], row["oldest_ms"]) for row in counted} == {
        ("ready", now_ms),
        ("delayed", now_ms + 1000),
    }
    found = await core.jobs.find_unclaimed(
        tx, "channel:a", "x.look", until_ms=now_ms, containing='"anna"'
    )
    assert [payload for _, payload in found] == [{"to": "anna"}]
    await core.jobs.discard_unclaimed(tx, [job_id for job_id, _ in found])
    assert await core.jobs.list_postponed(tx, "channel:a") == []


async def test_a_lane_is_woken_after_the_commit_alone(
    core: PluginContext, clock: FakeClock
) -> None:
    woken: list[str] = []
    core.jobs.woken_by(lambda lane, _run_at_ms: woken.append(lane))
    async with core.db.transaction() as tx:
        await core.jobs.enqueue(tx, NewJob("x.look", lane="channel:a"))
        before = list(woken)
    unit = WriteBatch()
    core.jobs.add(unit, NewJob("x.look"))
    await core.db.write(unit)

    assert before == []
    assert woken == ["channel:a", "default"]


async def test_a_transaction_that_fails_leaves_nothing(core: PluginContext) -> None:
    committed: list[str] = []
    with pytest.raises(LookupError):
        async with core.db.transaction() as tx:
            tx.on_commit(lambda: committed.append("first"))
            raise LookupError
    async with core.db.transaction() as tx:
        with pytest.raises(LookupError):
            async with tx.savepoint():
                tx.on_commit(lambda: committed.append("second"))
                raise LookupError
        tx.on_commit(lambda: committed.append("third"))

    assert committed == ["third"]


async def test_a_notification_is_heard_after_the_commit(core: PluginContext) -> None:
    heard: list[str] = []
    core.db.listen("changes", heard.append)
    async with core.db.transaction() as tx:
        tx.notify("changes", "one")
        before = list(heard)

    assert (before, heard) == ([], ["one"])


async def test_a_message_at_rest_is_read_again(core: PluginContext, tx: Tx) -> None:
    message = OutgoingMessage("Your code is 1234")
    await core.outbox.send(tx, "messenger_a", "c1", message)
    await core.outbox.edit(tx, "messenger_a", "c1", "m1", message)
    await core.outbox.answer(tx, "messenger_a", "b1", None)
    await core.outbox.open_thread(tx, "messenger_a", "c1", "#1", OnComplete("opened", {}))

    assert "1234" not in core.outbox.seal(message)
    assert core.outbox.unseal(core.outbox.seal(message)) == message


async def test_a_bot_has_its_profile_and_links(core: PluginContext, clock: FakeClock) -> None:
    channels = core.channels
    for name in ("messenger_a", "messenger_b"):
        await channels.remember(channels[name], await channels[name].check())
    async with core.db.transaction() as tx:
        await channels.remember_start(tx, "prj_1", "x", clock.now_ms() + 1000)
    async with channels.borrow("messenger_a") as borrowed:
        assert borrowed is channels["messenger_a"]

    assert set(channels.deep_links("prj_1", "x")) == {"messenger_a", "messenger_b"}
    assert channels["messenger_a"].profile is not None
    with pytest.raises(Unavailable):
        channels.deep_links("prj_1", "x", ["pigeon"])


async def test_channels_are_those_of_the_configuration(
    core: PluginContext, project_id: str
) -> None:
    channels = core.channels

    assert [each.name for each in channels.list_for_project(project_id)] == [
        "messenger_a",
        "messenger_b",
    ]
    assert channels.resolve(project_id, "pigeon") is None
    assert await channels.find("own_unknown") is None
    assert channels.display_name("messenger_a", project_id) == "Messenger A"
    with pytest.raises(ValidationFailed):
        channels.check_name(project_id, "pigeon")
    assert channels.name_for(project_id, "messenger_a") == "messenger_a"
    with pytest.raises(KeyError):
        channels.name_for(project_id, "pigeon")


async def test_without_a_plugin_that_bills_nothing_is_refused(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    await core.billing.charge(tx, Charge(project_id, MESSAGE, "msg_1"))
    await core.billing.check(project_id, MESSAGE, tx)
    assert await core.billing.quote(tx, project_id, MESSAGE) == 0
    assert await core.billing.plan_of(tx, project_id) is None


async def test_without_a_helpdesk_no_ticket_is_opened(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    tickets = core.peers.tickets
    if hasattr(tickets, "keeps_tickets"):
        tickets.keeps_tickets = False
    assert not tickets.is_open
    assert await tickets.open(tx, TicketRequest(project_id, "form", "1", "Help")) is None
    await tickets.forget_source(tx, project_id, "form", "1")


async def test_a_limit_is_reached_and_passes(core: PluginContext, clock: FakeClock) -> None:
    allowed = [(await core.limiter.hit("k", 2, 60)).allowed for _ in range(3)]
    clock.advance(61)

    assert allowed == [True, True, False]
    assert (await core.limiter.hit("k", 2, 60)).allowed


async def _ignore(_event: object) -> None:
    """Listens to an event that there is not."""


async def test_a_row_gives_its_values_by_name_and_in_order(core: PluginContext, tx: Tx) -> None:
    if isinstance(tx, FakeTx):
        tx.replies["SELECT 1"] = [{"one": 1, "two": 2}]
    row = await tx.fetch_one("SELECT 1 AS one, 2 AS two")

    assert row is not None
    assert ([*row], row["two"], [*row.keys()]) == ([1, 2], 2, ["one", "two"])


async def test_a_statement_is_answered_by_its_words_or_in_its_turn() -> None:
    tx = FakeTx(answers=[3], replies={"SELECT": lambda params: [params], "UPDATE a": 1})
    changed = [await tx.execute("UPDATE a SET b = 1"), await tx.execute("UPDATE  b SET a = 1")]

    assert changed == [1, 3]
    assert await tx.fetch_val("SELECT :id AS id", {"id": 5}) == 5
    assert tx.params_of("SELECT") == [{"id": 5}]
    with pytest.raises(NoTables):
        await tx.execute("DELETE FROM a")
