"""Parts of the core one by one, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.billing import BillingGate, Charge, Plan
from msgsvc_core.channels.commands import CommandCatalogue, ListedCommand
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbox import JOB, OPEN_THREAD, BotOutbox, OnComplete
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Events
from msgsvc_core.events.tracked import TrackBody, TrackedEvents
from msgsvc_core.files.purging import FilePurge
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.resealing import Resealing
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import (
    BillingBlocked,
    Conflict,
    Forbidden,
    NotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.kernel.providers import NotProvided, Providers
from msgsvc_core.mailings.models import Audience
from msgsvc_core.mailings.validation import AudienceNames
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.retention import MessagePurge
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest
from msgsvc_core.projects.models import ProjectBody
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.security import SecretBox
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.subscribers.consent import Consents
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.models import LinkBody
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeBilling,
    FakeDatabase,
    FakeEvents,
    FakeJobContext,
    FakeJobQueue,
    FakeTx,
    fake_secrets,
    fake_texts,
)


async def test_a_project_welcomes_in_its_own_words() -> None:
    core, tx = plugin_context(), FakeTx()
    greetings = Greetings(texts=core.texts, outbox=core.outbox, projects=core.projects)
    welcome = ProjectBody(welcome={"en": "Hi {{ first_name }}!", "ru": "Привет от {{ project }}!"})
    await core.projects.update(tx, PROJECT, welcome)
    await greetings.welcome(tx, core.subscribers.person(lang="ru"), "deep_link")

    assert core.outbox.texts == ["Привет от Shop!"]


async def test_a_sign_in_is_not_confirmed_twice_and_a_mini_app_not_at_all() -> None:
    core, tx = plugin_context(), FakeTx()
    greetings = Greetings(texts=core.texts, outbox=core.outbox, projects=core.projects)
    await greetings.welcome(tx, core.subscribers.person(), "auth")
    await greetings.welcome(tx, core.subscribers.person(), "mini_app")

    assert core.outbox.sent == []


async def test_what_a_person_did_is_an_event_of_limited_size() -> None:
    core = plugin_context()
    find = core.subscribers.get_by_identifier
    tracked = TrackedEvents(events=core.events, find_subscriber=find, max_bytes=20)
    core.subscribers.person()
    body = TrackBody(subscriber_id="sub_1", name="cart", properties={"n": 1})
    await tracked.track(FakeTx(), PROJECT, body)

    assert core.events.emitted[0].data["properties"] == {"n": 1}
    with pytest.raises(ValidationFailed, match="properties"):
        too_large = body.model_copy(update={"properties": {"n": "x" * 20}})
        await tracked.track(FakeTx(), PROJECT, too_large)


async def test_files_that_nobody_kept_are_removed_after_their_hours() -> None:
    core = plugin_context()
    core.db.answers += [0, 0]
    purge = FilePurge(clock=core.clock, loose_hours=24)
    await purge.purge(FakeJobContext(core.db), [])

    assert core.clock.now_ms() - 24 * HOUR_MS in core.db.statements[-1][1].values()


async def test_the_hundred_and_first_tag_is_one_too_many() -> None:
    async def ignore(*_: object) -> None:
        """Nobody follows tags here."""

    tags = Tags(clock=FakeClock(), jobs=FakeJobQueue(), max_tags=100, on_added=ignore)
    with pytest.raises(Conflict, match="100"):
        known = [{"name": f"tag {number}"} for number in range(100)]
        await tags.create(FakeTx(answers=[known]), PROJECT, "vip")
    with pytest.raises(ValidationFailed):
        await tags.add(FakeTx(), PROJECT, "sub_1", "not a name")


async def test_a_deleted_tag_is_taken_from_its_subscribers_by_a_job() -> None:
    async def ignore(*_: object) -> None:
        """Nobody follows tags here."""

    jobs = FakeJobQueue()
    tags = Tags(clock=FakeClock(), jobs=jobs, max_tags=100, on_added=ignore)
    await tags.delete(FakeTx(answers=[[{"tag_id": "tag_1"}]]), PROJECT, "vip")

    (job,) = jobs.enqueued
    assert job.payload == {"project_id": PROJECT, "tag_id": "tag_1"}


async def test_only_new_grants_are_events() -> None:
    core, events = plugin_context(), FakeEvents()
    permissions = Permissions(clock=core.clock, events=events, max_permissions=10)
    granted = [{"permission": "news"}]
    for answer in (granted, []):
        await permissions.grant(FakeTx(answers=[answer]), core.subscribers.person(), ["news"])

    assert [event.data["permission"] for event in events.emitted] == ["news"]


def test_a_start_code_is_the_same_for_the_same_payload_and_no_part_of_it() -> None:
    codes = StartCodes(clock=FakeClock(), secrets=fake_secrets())
    payload = "auth_s_0123456789012345678901"

    assert codes.code_of(payload) == codes.code_of(payload)
    assert codes.code_of(payload) not in payload
    assert codes.start_message("auth_shop") == "start auth_shop"


def test_commands_are_described_in_the_language_of_their_reader() -> None:
    def about(_: Translate) -> str:
        return _("You are subscribed to notifications from {project}.", project="Shop")

    catalogue = CommandCatalogue(texts=fake_texts(), declared=lambda: [ListedCommand("x", about)])
    [(_, english)], [(_, russian)] = catalogue.listed("en"), catalogue.listed("ru")

    assert english != russian
    assert catalogue.menu()[0].about["ru"] == russian


async def test_what_a_bot_is_to_send_is_sealed_in_the_lane_of_its_channel() -> None:
    jobs = FakeJobQueue()
    outbox = BotOutbox(jobs=jobs, secrets=fake_secrets())
    message = OutgoingMessage("Your code is 1234")
    await outbox.send(FakeTx(), "messenger_a", "c1", message)

    [job] = jobs.named(JOB)
    assert job.lane == lane_of("messenger_a")
    assert "1234" not in str(job.payload)
    assert outbox.unseal(job.payload["sealed"]) == message


async def test_a_thread_is_opened_by_a_job_that_older_workers_do_not_know() -> None:
    jobs = FakeJobQueue()
    outbox = BotOutbox(jobs=jobs, secrets=fake_secrets())
    await outbox.open_thread(FakeTx(), "messenger_a", "c1", "#1", OnComplete("x.opened", {}))

    [job] = jobs.enqueued
    assert (job.name, job.lane) == (OPEN_THREAD, lane_of("messenger_a"))
    assert job.name != JOB


async def test_a_job_that_waits_for_later_wakes_its_lane_then() -> None:
    jobs, woken = JobQueue(FakeClock()), list[tuple[str, int]]()
    jobs.woken_by(lambda lane, run_at_ms: woken.append((lane, run_at_ms)))
    tx = FakeTx()
    await jobs.enqueue(tx, NewJob("x.look", run_at_ms=7), NewJob("x.look", run_at_ms=5))

    assert woken == []
    tx.commit()
    assert woken == [("default", 5)]


async def test_a_plan_without_export_is_named_in_the_refusal() -> None:
    fake = FakeBilling()

    async def owner_of(_tx: Tx, _project_id: str) -> str:
        return "acc_1"

    fake.plans["acc_1"] = Plan("free", csv_export=False)
    gate = BillingGate(
        db=FakeDatabase(),
        charge=fake.charge,
        check=fake.check,
        quote=fake.quote,
        owner_of=owner_of,
        decide_plan=fake.plan_of_account,
    )
    fake.refused.add("x.sent")

    with pytest.raises(Forbidden, match="free"):
        await gate.check_export(PROJECT)
    with pytest.raises(BillingBlocked):
        await gate.charge(FakeTx(), Charge(PROJECT, "x.sent", "1"))


async def test_a_project_shows_its_plan_and_channels() -> None:
    core = plugin_context()
    core.billing.plans[PROJECT] = Plan("pro")
    overview = ProjectOverview(
        projects=core.projects,
        limits=LimitSettings(),
        plan_of=core.billing.plan_of,
        channels_of=core.channels.list_for_project,
    )
    shown = await overview.get(FakeTx(), PROJECT)

    assert (shown.name, shown.plan) == ("Shop", "pro")
    assert [each.name for each in shown.channels] == ["messenger_a", "messenger_b"]


async def test_an_audience_goes_by_what_the_project_has() -> None:
    core, tx = plugin_context(), FakeTx()
    names = AudienceNames(tags=core.tags, permissions=core.permissions, routes=core.routes)
    await core.tags.ensure(tx, PROJECT, ["vip"])

    assert await names.find_missing(tx, PROJECT, Audience(tags_any=["vip"])) is None
    assert "audience.tags_none" in str(
        await names.find_missing(tx, PROJECT, Audience(tags_none=["x"]))
    )


async def test_files_are_not_looked_at_where_that_is_switched_off() -> None:
    def no_checks() -> Any:
        raise AssertionError("nothing is checked")

    files = MessageFiles(enabled=False, checks=no_checks)
    assert await files.check_all([]) == []


async def test_a_message_is_written_with_its_job_and_costs_nothing_until_it_is_sent() -> None:
    core = plugin_context()
    core.subscribers.person()
    validation = MessageValidation(
        db=core.db,
        channels=core.channels,
        subscribers=core.subscribers,
        permissions=core.permissions,
        templates=core.templates,
        limits=MessageLimits.of(LimitSettings()),
        routes=core.routes,
        clock=core.clock,
    )
    messages = Messages(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        events=core.events,
        billing=core.billing,
        subscribers=core.subscribers,
        validation=validation,
        changes=core.messages.changes,
    )
    unit = WriteBatch()
    await messages.add(unit, PROJECT, SendBody(subscriber_id="sub_1", text="Hi"), FakeTx())

    assert [shape[0] for shape, _ in unit.rows] == ["core_messages"]
    assert [job.name for job in core.jobs.enqueued] == ["message.deliver"]
    assert core.billing.charges == []


async def test_a_ticket_goes_to_who_keeps_tickets() -> None:
    opened: list[TicketRequest] = []

    async def open_ticket(_tx: Tx, request: TicketRequest) -> str:
        opened.append(request)
        return "tic_1"

    async def forget(*_: object) -> None:
        opened.clear()

    desk = TicketDesk(open_ticket=open_ticket, forget_source=forget, is_open=lambda: True)
    request = TicketRequest(PROJECT, "form", "1", "Help")

    assert await desk.open(FakeTx(), request) == "tic_1"
    await desk.forget_source(FakeTx(), PROJECT, "form", "1")
    assert opened == []


async def test_listeners_are_for_events_that_there_are() -> None:
    async def observe(*_: object) -> None:
        """Nobody looks on."""

    events = Events(clock=FakeClock(), specs=[], observe=observe)
    with pytest.raises(ValueError, match="no event is named"):
        events.listen("x.happened", observe)
    assert await events.emit_many(FakeTx(), []) == []


def test_one_object_is_provided_for_a_type() -> None:
    providers, clock = Providers(), FakeClock()
    providers.add(clock)
    providers.add(clock)

    assert providers.get(FakeClock) is clock
    with pytest.raises(ValueError, match="two objects"):
        providers.add(FakeClock())
    with pytest.raises(NotProvided):
        providers.get(FakeTx)


async def test_a_link_for_one_person_works_for_a_day_and_others_for_a_month() -> None:
    core, tx = plugin_context(), FakeTx()
    links = SubscriptionLinks(
        clock=core.clock,
        projects=core.projects,
        subscribers=core.subscribers,
        tags=core.tags,
        permissions=core.permissions,
        consents=_consents(core),
        personal_link_s=24 * 3600,
    )
    _, personal_ms = await links.create(tx, PROJECT, LinkBody(external_id="e1"))
    _, open_ms = await links.create(tx, PROJECT, LinkBody(tags=["vip"]))

    assert (personal_ms - core.clock.now_ms(), open_ms - core.clock.now_ms()) == (
        24 * HOUR_MS,
        30 * 24 * HOUR_MS,
    )
    assert [row["external_id"] for row in tx.rows["core_links"]] == ["e1", None]


def _consents(core: FakeContext) -> Consents:
    return Consents(
        clock=core.clock,
        secrets=core.secrets,
        texts=core.texts,
        projects=core.projects,
        channels=core.channels,
        outbox=core.outbox,
        personal_link_s=24 * 3600,
    )


async def test_a_removed_member_gets_no_link() -> None:
    core, tx = plugin_context(), FakeTx()
    body = AddMemberBody(name="Olga", email="olga@shop.example", role="agent")
    olga = await core.members.add(tx, PROJECT, body)
    links = MemberLinks(
        clock=core.clock,
        projects=core.projects,
        subscribers=core.subscribers,
        members=core.members,
    )
    payload, _ = await links.create(tx, PROJECT, olga.member_id, 60)
    await core.members.remove(tx, PROJECT, olga.member_id)

    assert payload.startswith("mem_")
    with pytest.raises(Conflict, match="removed"):
        await links.create(tx, PROJECT, olga.member_id, 60)


async def test_old_rows_are_removed_by_the_rule_of_their_table() -> None:
    core = plugin_context()
    rule = RetentionRule("core_links", "expires_at_ms", retention_ms=HOUR_MS)
    core.db.answers.append(0)
    await Retention(name="core.purge", clock=core.clock, rules=[rule]).purge(
        FakeJobContext(core.db), []
    )

    [(sql, params)] = core.db.statements
    assert "core_links" in sql
    assert params["before_ms"] == core.clock.now_ms() - HOUR_MS


async def test_messages_are_deleted_by_the_time_in_their_ids_project_by_project() -> None:
    core = plugin_context()
    # The copies of messages with routes come last; there are none.
    core.db.answers += [[{"found": PROJECT}], 0, [], []]
    partitioning = Partitioning(
        clock=core.clock, db=core.db, min_mib=1, metrics=core.metrics.partitions
    )
    purge = MessagePurge(clock=core.clock, message_days=7, partitioning=partitioning)
    await purge.purge(FakeJobContext(core.db))

    [_, (_, deleted), (_, last), _] = core.db.statements
    assert deleted["project_id"] == last["after"] == PROJECT
    assert deleted["before"] == earliest_id("msg", core.clock.now_ms() - 7 * DAY_MS)


async def test_the_hourly_job_brings_lasting_values_under_the_current_key() -> None:
    core = plugin_context()
    box, older = SecretBox(["n" * 40, "o" * 40]), SecretBox(["o" * 40])
    lasting = SealedColumn(table="shop_tills", column="pin", key=("id",), holds="", if_lost="")
    passing = replace(lasting, column="ticket", is_lasting=False)
    row = {"id": "1", "sealed": older.encrypt("1234")}
    core.db.answers += [[row], 1, [], [], []]
    await Resealing(secrets=box, columns=[lasting, passing]).reseal(FakeJobContext(core.db), [])

    sql, params = core.db.statements[1]
    assert sql == "UPDATE shop_tills SET pin = :sealed WHERE id = :id AND pin = :before"
    assert box.decrypt(params["sealed"]) == "1234"
    assert params["before"] == row["sealed"]
    assert not any("ticket" in sql for sql, _ in core.db.statements)


async def test_nobody_can_sign_in_without_a_plugin_that_provides_it() -> None:
    sign_ins = SignIns(source=lambda: None)

    assert not sign_ins.is_available
    with pytest.raises(NotFound):
        await sign_ins.status(FakeTx(), PROJECT, "ses_1")
