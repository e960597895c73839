"""Parts of the core, one by one."""

import io
from collections.abc import AsyncIterator
from typing import NoReturn

import pytest

from msgsvc_core.billing import Charge, Plan
from msgsvc_core.channels.commands import CommandCatalogue, ListedCommand
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.channels.system_messages.outbox import JOB, OPEN_THREAD, OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events.tracked import TrackedEvents, TrackEventBody
from msgsvc_core.files.purging import JOB as PURGE_FILES
from msgsvc_core.jobs.contract import NewJob
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
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.validation import AudienceNames
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.projects.models import UpdateProjectBody
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.security import SecretBox
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.models import CreateLinkBody
from msgsvc_core.subscribers.tags.service import PURGE
from msgsvc_devkit import FakeClock
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.billing import Billing
from tests.unit.parts.rows import NOW_MS, insert_message


@pytest.fixture
def billing() -> Billing:
    return Billing()


@pytest.fixture
async def core(billing: Billing) -> AsyncIterator[MemoryCore]:
    limits = {"tags": 3, "event_properties_bytes": 20, "message_days": 7}
    async with memory_core(extra_plugins=[("billing", billing)], limits=limits) as core:
        yield core


async def test_a_project_welcomes_in_its_own_words(core: MemoryCore, tx: Tx) -> None:
    welcome = UpdateProjectBody(
        welcome={"en": "Hi {{ first_name }}!", "ru": "Привет от {{ project }}!"}
    )
    await core.projects.update(tx, PROJECT, welcome)
    await core.service.get(Greetings).welcome(tx, await core.person(tx, lang="ru"), "deep_link")

    assert await core.texts_sent(tx) == ["Привет от Shop!"]


async def test_a_sign_in_is_not_confirmed_twice_and_a_mini_app_not_at_all(
    core: MemoryCore, tx: Tx
) -> None:
    person = await core.person(tx)
    await core.service.get(Greetings).welcome(tx, person, "auth")
    await core.service.get(Greetings).welcome(tx, person, "mini_app")

    assert await core.texts_sent(tx) == []


async def test_what_a_person_did_is_an_event_of_limited_size(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    body = TrackEventBody(subscriber_id="sub_1", name="cart", properties={"n": 1})
    await core.service.get(TrackedEvents).track(tx, PROJECT, body)
    with pytest.raises(ValidationFailed, match="properties"):
        too_large = body.model_copy(update={"properties": {"n": "x" * 20}})
        await core.service.get(TrackedEvents).track(tx, PROJECT, too_large)

    [event] = core.emitted
    assert (event.data["subscriber_id"], event.data["properties"]) == ("sub_1", {"n": 1})


async def test_files_that_nobody_kept_are_removed_after_their_hours(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        loose, kept = [
            (await core.files.add(tx, PROJECT, filename=name, content=io.BytesIO(b"%PDF-"))).file_id
            for name in ("loose.pdf", "kept.pdf")
        ]
        await core.files.retain(tx, PROJECT, [kept])

    async def left_after(seconds: float) -> list[str]:
        core.clock.advance(seconds)
        await core.run(NewJob(PURGE_FILES))
        found = await core.files.get_many(core.db, PROJECT, [loose, kept])
        return [file.file_id for file in found]

    day_s = core.config.media.loose_hours * 3600
    assert await left_after(day_s) == [loose, kept]
    assert await left_after(0.001) == [kept]


async def test_one_tag_more_than_a_project_may_have_is_too_many(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    await core.tags.ensure(tx, PROJECT, ["one", "two", "three"])

    with pytest.raises(Conflict, match="3"):
        await core.tags.create(tx, PROJECT, "vip")
    with pytest.raises(ValidationFailed):
        await core.tags.add(tx, PROJECT, "sub_1", "not a name")


async def test_a_deleted_tag_is_taken_from_its_subscribers_by_a_job(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await core.person(tx, tags=["vip", "new"])
        await core.tags.delete(tx, PROJECT, "vip")
        [job] = await core.jobs_named(tx, PURGE)
        assert (await core.subscribers.get(tx, PROJECT, "sub_1")).tags == ("new",)
    await core.run(job)

    async with core.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_subscriber_tags") == 1


async def test_only_new_grants_are_events(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, "sub_1", permissions=["news"])
    ann = await core.person(tx, "sub_2")
    for _ in range(2):
        await core.permissions.grant(tx, ann, ["news"])

    [event] = core.emitted
    assert (event.data["subscriber_id"], event.data["permission"]) == ("sub_2", "news")


async def test_a_start_code_is_the_same_for_the_same_payload_and_no_part_of_it(
    core: MemoryCore,
) -> None:
    codes = core.service.get(StartCodes)
    payload = "auth_s_0123456789012345678901"

    assert codes.code_of(payload) == codes.code_of(payload)
    assert codes.code_of(payload) not in payload
    assert codes.start_message("auth_shop") == "start auth_shop"


async def test_commands_are_described_in_the_language_of_their_reader(core: MemoryCore) -> None:
    def about(_: Translate) -> str:
        return _("You are subscribed to notifications from {project}.", project="Shop")

    catalogue = CommandCatalogue(texts=core.texts, declared=lambda: [ListedCommand("x", about)])
    [(_, english)], [(_, russian)] = catalogue.listed("en"), catalogue.listed("ru")

    assert english != russian
    assert catalogue.menu()[0].about["ru"] == russian


async def test_what_a_bot_is_to_send_is_sealed_in_the_lane_of_its_channel(
    core: MemoryCore, tx: Tx
) -> None:
    message = OutgoingMessage("Your code is 1234")
    await core.outbox.send(tx, "messenger_a", "c1", message)

    [job] = await core.jobs_named(tx, JOB)
    assert job.lane == lane_of("messenger_a")
    assert "1234" not in str(job.payload)
    assert core.outbox.unseal(job.payload["sealed"]) == message


async def test_a_thread_is_opened_by_a_job_that_older_workers_do_not_know(
    core: MemoryCore, tx: Tx
) -> None:
    await core.outbox.open_thread(tx, "messenger_a", "c1", "#1", OnComplete("x.opened", {}))

    [job] = await core.pending_jobs(tx)
    assert (job.name, job.lane) == (OPEN_THREAD, lane_of("messenger_a"))
    assert job.name != JOB


async def test_a_job_that_waits_for_later_wakes_its_lane_then(core: MemoryCore) -> None:
    woken = list[tuple[str, int]]()
    core.jobs.woken_by(lambda lane, run_at_ms: woken.append((lane, run_at_ms)))
    async with core.db.transaction() as tx:
        jobs = NewJob("x.look", run_at_ms=7), NewJob("x.look", run_at_ms=5)
        await core.jobs.enqueue(tx, *jobs)
        assert woken == []

    assert woken == [("default", 5)]


async def test_a_plan_without_export_is_named_in_the_refusal(
    core: MemoryCore, billing: Billing
) -> None:
    async with core.db.transaction() as tx:
        await core.projects.set_owner(tx, PROJECT, "acc_1")
    await core.billing.check_export(PROJECT)
    billing.plan = Plan("free", csv_export=False)

    with pytest.raises(Forbidden, match="free"):
        await core.billing.check_export(PROJECT)


async def test_a_refused_operation_is_not_paid_for(
    core: MemoryCore, tx: Tx, billing: Billing
) -> None:
    billing.refused.add("x.sent")
    with pytest.raises(BillingBlocked):
        await core.billing.charge(tx, Charge(PROJECT, "x.sent", "1"))


async def test_a_project_shows_its_plan_and_channels(
    core: MemoryCore, tx: Tx, billing: Billing
) -> None:
    billing.plan = Plan("pro")
    await core.projects.set_owner(tx, PROJECT, "acc_1")
    shown = await core.service.get(ProjectOverview).get(tx, PROJECT)

    assert (shown.name, shown.plan) == ("Shop", "pro")
    assert [each.name for each in shown.channels] == ["messenger_a", "messenger_b"]


async def test_an_audience_goes_by_what_the_project_has(core: MemoryCore, tx: Tx) -> None:
    names = AudienceNames(tags=core.tags, permissions=core.permissions, routes=core.routes)
    await core.tags.ensure(tx, PROJECT, ["vip"])

    assert await names.find_missing(tx, PROJECT, Audience(tags_any=["vip"])) is None
    assert "audience.tags_none" in str(
        await names.find_missing(tx, PROJECT, Audience(tags_none=["x"]))
    )


async def test_files_are_not_looked_at_where_that_is_switched_off() -> None:
    def no_checks() -> NoReturn:
        raise AssertionError("nothing is checked")

    files = MessageFiles(enabled=False, checks=no_checks)
    assert await files.check_all([]) == []


async def test_a_message_is_written_with_its_job_and_costs_nothing_until_it_is_sent(
    core: MemoryCore, billing: Billing
) -> None:
    async with core.db.transaction() as tx:
        await core.person(tx)
    message = await core.messages.send(PROJECT, subscriber_id="sub_1", text="Hi")

    async with core.db.read() as tx:
        assert await core.messages_queued(tx) == [message]
        assert [job.name for job in await core.pending_jobs(tx)] == ["message.deliver"]
    assert billing.charges == []


class Desk:
    """A plugin that keeps tickets."""

    def __init__(self) -> None:
        self.opened: list[TicketRequest] = []

    @hookimpl
    async def open_ticket(self, tx: Tx, request: TicketRequest) -> str:
        self.opened.append(request)
        return "tic_1"

    @hookimpl
    async def forget_source(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        self.opened = [
            each
            for each in self.opened
            if (each.project_id, each.source, each.source_id) != (project_id, source, source_id)
        ]


async def test_a_ticket_goes_to_who_keeps_tickets(core: MemoryCore) -> None:
    desk, request = Desk(), TicketRequest(PROJECT, "form", "1", "Help")
    async with memory_core(extra_plugins=[("desk", desk)]) as with_desk:
        tickets = with_desk.peers.tickets
        async with with_desk.db.transaction() as tx:
            assert tickets.is_open
            assert await tickets.open(tx, request) == "tic_1"
            assert desk.opened == [request]
            await tickets.forget_source(tx, PROJECT, "form", "1")

    assert desk.opened == []
    assert not core.peers.tickets.is_open


async def test_listeners_are_for_events_that_there_are(core: MemoryCore, tx: Tx) -> None:
    async def observe(*_: object) -> None:
        """Nobody looks on."""

    with pytest.raises(ValueError, match="no event is named"):
        core.events.listen("x.happened", observe)
    assert await core.events.emit_many(tx, []) == []


def test_one_object_is_provided_for_a_type() -> None:
    providers, clock = Providers(), FakeClock()
    providers.add(clock)
    providers.add(clock)

    assert providers.get(FakeClock) is clock
    with pytest.raises(ValueError, match="two objects"):
        providers.add(FakeClock())
    with pytest.raises(NotProvided):
        providers.get(SecretBox)


async def test_a_link_for_one_person_works_for_a_day_and_others_for_a_month(
    core: MemoryCore, tx: Tx
) -> None:
    links = core.service.get(SubscriptionLinks)
    _, personal_ms = await links.create(tx, PROJECT, CreateLinkBody(external_id="e1"))
    _, open_ms = await links.create(tx, PROJECT, CreateLinkBody(tags=["vip"]))

    assert (personal_ms - NOW_MS, open_ms - NOW_MS) == (24 * HOUR_MS, 30 * 24 * HOUR_MS)
    rows = await tx.fetch_all("SELECT external_id FROM core_links ORDER BY expires_at_ms")
    assert [row["external_id"] for row in rows] == ["e1", None]


async def test_a_removed_member_gets_no_link(core: MemoryCore, tx: Tx) -> None:
    body = AddMemberBody(name="Olga", email="olga@shop.example", role="agent")
    olga = await core.members.add(tx, PROJECT, body)
    links = core.service.get(MemberLinks)
    payload, _ = await links.create(tx, PROJECT, olga.member_id, 60)
    await core.members.remove(tx, PROJECT, olga.member_id)

    assert payload.startswith("mem_")
    with pytest.raises(Conflict, match="removed"):
        await links.create(tx, PROJECT, olga.member_id, 60)


async def test_old_rows_are_removed_by_the_rule_of_their_table(core: MemoryCore) -> None:
    rule = RetentionRule("core_links", "expires_at_ms", retention_ms=HOUR_MS)
    retention = Retention(name="x.purge", clock=core.clock, rules=[rule])
    async with core.db.transaction() as tx:
        await core.service.get(SubscriptionLinks).create(
            tx, PROJECT, CreateLinkBody(external_id="e1")
        )
        await core.service.get(SubscriptionLinks).create(tx, PROJECT, CreateLinkBody())

    async def left_after(seconds: float) -> int:
        core.clock.advance(seconds)
        await retention.purge(JobInTest(core.db), [])
        async with core.db.read() as tx:
            return int(await tx.fetch_val("SELECT COUNT(*) FROM core_links"))

    assert await left_after(25 * 3600) == 2
    assert await left_after(0.001) == 1


async def test_messages_are_deleted_by_the_time_in_their_ids_project_by_project(
    core: MemoryCore,
) -> None:
    before = NOW_MS - 7 * DAY_MS
    ended = {"status": "sent", "finished_at_ms": NOW_MS}
    async with core.db.transaction() as tx:
        await core.project(tx, "prj_2")
        for project_id in (PROJECT, "prj_2"):
            await core.person(tx, project_id=project_id)
            for at_ms in (before - 1, before):
                message_id = earliest_id("msg", at_ms)
                await insert_message(tx, message_id, project_id=project_id, **ended)
        await insert_message(tx, earliest_id("msg", before - 2))
    await core.run(NewJob("core.purge"))

    async with core.db.read() as tx:
        ours = await core.messages_queued(tx)
        theirs = await core.messages_queued(tx, "prj_2")
    # What is yet to be delivered stays.
    assert [each.message_id for each in ours] == [
        earliest_id("msg", before - 2),
        earliest_id("msg", before),
    ]
    assert [each.message_id for each in theirs] == [earliest_id("msg", before)]


async def test_the_hourly_job_brings_lasting_values_under_the_current_key(core: MemoryCore) -> None:
    current, old = SecretBox(["n" * 40]), SecretBox(["o" * 40])
    both = SecretBox(["n" * 40, "o" * 40])
    columns = [
        SealedColumn(
            table="shop_tills", column=name, key=("id",), holds="", if_lost="", is_lasting=lasting
        )
        for name, lasting in (("pin", True), ("ticket", False))
    ]
    async with core.db.transaction() as tx:
        await tx.execute("CREATE TABLE shop_tills (id TEXT, pin TEXT, ticket TEXT)")
        row = {"id": "1", "pin": old.encrypt("1234"), "ticket": old.encrypt("5678")}
        await tx.insert("shop_tills", row)
    lacking = ["shop:1"]

    async def without_key(_tx: Tx, _key_id: str) -> list[str]:
        return lacking

    job = Resealing(secrets=both, columns=columns, runners_without_key=without_key)
    await job.reseal(JobInTest(core.db), [])
    async with core.db.read() as tx:
        waiting = await tx.fetch_val("SELECT pin FROM shop_tills")
    lacking.clear()
    await job.reseal(JobInTest(core.db), [])

    async with core.db.read() as tx:
        till = await tx.fetch_one("SELECT * FROM shop_tills")
    assert till is not None
    assert old.decrypt(waiting) == "1234", "a process could not have read it"
    assert current.decrypt(till["pin"]) == "1234"
    assert till["ticket"] == row["ticket"]


async def test_nobody_can_sign_in_without_a_plugin_that_provides_it(
    core: MemoryCore, tx: Tx
) -> None:
    assert not core.peers.sign_ins.is_available
    with pytest.raises(NotFound):
        await core.peers.sign_ins.status(tx, PROJECT, "ses_1")
