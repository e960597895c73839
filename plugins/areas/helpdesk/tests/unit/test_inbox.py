"""The inbox, canned answers, the blocklist and what time does, built from fakes."""

import io
from dataclasses import asdict, replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgsvc_core.api.pagination import next_cursor
from msgsvc_core.dashboard import PageContext
from msgsvc_core.dashboard.access import Viewer
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.jobs import NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    NotFound,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.json import to_json
from msgsvc_core.members import Member
from msgsvc_core.members.models import Role
from msgsvc_core.messages.bodies import SendBody
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_helpdesk.agents.notifications import GONE_JOB
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.canned import CannedAnswers
from msgsvc_helpdesk.canned_models import CannedAnswer, CreateCannedBody, UpdateCannedBody
from msgsvc_helpdesk.dashboard.conversation import LIMIT, Conversations
from msgsvc_helpdesk.dashboard.inbox import TicketList
from msgsvc_helpdesk.inbox import Inbox
from msgsvc_helpdesk.jobs import LOOK, TicketJobs
from msgsvc_helpdesk.models import InboxQuery, Ticket
from msgsvc_helpdesk.settings import HelpdeskSettings
from msgsvc_helpdesk.sla import SlaClocks
from msgsvc_helpdesk.viewers import TicketViewers

from .desk_of_fakes import (
    ENTRY,
    TICKET,
    VIRTUAL,
    hire,
    new_core,
    notifications,
    tables,
    tickets,
    tx_of,
)

HERE = ZoneInfo("UTC")


@pytest.fixture
def core() -> FakeContext:
    return new_core()


# ---- blocklist ----------------------------------------------------------------------------------


def blocklist(core: FakeContext) -> Blocklist:
    return Blocklist(clock=core.clock, subscribers=core.subscribers)


async def test_a_subscriber_is_blocked_with_a_reason(core: FakeContext) -> None:
    row = {"project_id": PROJECT, "subscriber_id": "sub_1", "reason": "rude", "created_at_ms": 5}
    tx = tx_of(others={"FROM helpdesk_blocklist": [row]})
    blocked = await blocklist(core).add(tx, PROJECT, "sub_1", "rude")

    assert (blocked.reason, blocked.created_at_ms) == ("rude", 5)
    assert tx.params_of("INTO helpdesk_blocklist")[0]["created_at_ms"] == core.clock.now_ms()


async def test_who_is_not_there_is_neither_blocked_nor_let_in(core: FakeContext) -> None:
    tx = tx_of(others={"DELETE FROM helpdesk_blocklist": 0})

    with pytest.raises(SubscriberNotFound):
        await blocklist(core).add(tx, PROJECT, "sub_unknown", "")
    with pytest.raises(NotFound):
        await blocklist(core).get(tx, PROJECT, "sub_1")
    with pytest.raises(NotFound):
        await blocklist(core).remove(tx, PROJECT, "sub_1")
    assert tx.params_of("INTO helpdesk_blocklist") == []


# ---- canned answers -----------------------------------------------------------------------------


def canned(core: FakeContext, **settings: Any) -> CannedAnswers:
    return CannedAnswers(
        clock=core.clock, config=core.config, settings=HelpdeskSettings(**settings)
    )


def canned_tx(*answers: CannedAnswer, count: int = 0, inserted: int = 1) -> FakeTx:
    return FakeTx(
        replies={
            "SELECT COUNT": [{"many": count}],
            "INTO helpdesk_canned_answers": inserted,
            "UPDATE helpdesk_canned_answers": 1,
            "DELETE FROM helpdesk_canned_answers": len(answers),
            "FROM helpdesk_canned_answers": [asdict(each) for each in answers],
        }
    )


def saying(text: Any, **fields: Any) -> CreateCannedBody:
    return CreateCannedBody.model_validate({"key": "hi", "text": text, **fields})


async def stored(core: FakeContext, text: Any) -> CannedAnswer:
    return await canned(core).create(canned_tx(), PROJECT, saying(text))


async def test_each_customer_is_answered_in_their_language(core: FakeContext) -> None:
    answer = await stored(core, {"en": "Hi {{ name }}", "ru": "Привет, {{ name }}"})
    tx = canned_tx(answer)
    said = [
        await canned(core).render(tx, PROJECT, "hi", {"name": "Ann"}, lang)
        for lang in ("en", "ru", "fr")
    ]

    assert [each.text for each in said] == ["Hi Ann", "Привет, Ann", "Hi Ann"]


async def test_what_a_variable_lacks_is_named(core: FakeContext) -> None:
    answer = await stored(core, "Hi {{ name }}")

    with pytest.raises(ValidationFailed, match=r"variables.*name"):
        await canned(core).render(canned_tx(answer), PROJECT, "hi", {}, "en")


@pytest.mark.parametrize("text", ["Hi {{ name", "x" * 5000])
async def test_what_could_never_be_sent_is_refused(core: FakeContext, text: str) -> None:
    tx = canned_tx()
    with pytest.raises(ValidationFailed):
        await canned(core).create(
            tx,
            PROJECT,
            CreateCannedBody.model_construct(key="hi", title="", text=text, format="plain"),
        )

    assert tx.params_of("INTO helpdesk_canned_answers") == []


async def test_a_project_has_so_many_and_each_key_once(core: FakeContext) -> None:
    with pytest.raises(Conflict, match="already"):
        await canned(core).create(canned_tx(inserted=0), PROJECT, saying("Hi"))
    with pytest.raises(Conflict, match="at most 3"):
        await canned(core, canned_answers=3).create(canned_tx(count=3), PROJECT, saying("Hi"))


async def test_what_a_change_leaves_out_stays(core: FakeContext) -> None:
    before = await stored(core, "Hi {{ name }}")
    core.clock.advance(60)
    after = await canned(core).update(
        canned_tx(before), PROJECT, "hi", UpdateCannedBody(title="Greeting")
    )

    shown = canned(core).shown(after)
    assert (shown.title, shown.text, shown.variables) == ("Greeting", "Hi {{ name }}", ["name"])
    assert after.updated_at_ms == before.updated_at_ms + 60_000
    for missing in (
        canned(core).update(canned_tx(), PROJECT, "no", UpdateCannedBody()),
        canned(core).delete(canned_tx(), PROJECT, "no"),
    ):
        with pytest.raises(NotFound):
            await missing


# ---- the inbox ----------------------------------------------------------------------------------


def inbox(core: FakeContext, **settings: Any) -> Inbox:
    return Inbox(
        clock=core.clock,
        sla=SlaClocks(clock=core.clock),
        settings=HelpdeskSettings(**settings),
    )


COUNTS = {
    "SELECT (SELECT COUNT(*)": [
        {
            "open": 2,
            "pending": 1,
            "snoozed": 0,
            "unassigned": 1,
            "mine": 1,
            "overdue": 0,
            "missed": 0,
        }
    ],
    "SELECT updated_at_ms": [{"updated_at_ms": 77}],
}


async def test_a_page_goes_on_where_the_one_before_ended(core: FakeContext) -> None:
    many = [
        replace(TICKET, ticket_id=f"tkt_{number}", last_message_at_ms=number)
        for number in (9, 8, 7)
    ]
    query = InboxQuery(status="open", limit=2)
    page, cursor = await inbox(core).page(tx_of(*many), PROJECT, query)
    rest = tx_of(many[2])
    following = query.model_copy(update={"cursor": cursor})
    last, none = await inbox(core).page(rest, PROJECT, following)

    assert ([each.ticket_id for each in page], len(last), none) == (["tkt_9", "tkt_8"], 1, None)
    [asked] = rest.params_of("AS tags FROM helpdesk_tickets t")
    assert (asked["after_ms"], asked["after_id"]) == (8, "tkt_8")


@pytest.mark.parametrize("after", ["x_tkt_1", "5", "5_", "_tkt_1"])
async def test_a_cursor_that_is_none_of_ours_is_refused(core: FakeContext, after: str) -> None:
    with pytest.raises(BadRequest):
        await inbox(core).page(tx_of(), PROJECT, InboxQuery(cursor=next_cursor(after)))


async def test_customers_are_overdue_after_as_many_hours_as_the_settings_say(
    core: FakeContext,
) -> None:
    tx = tx_of(others=COUNTS)
    counts = await inbox(core, unanswered_hours=2).counts(tx, PROJECT, "mem_mia")

    [asked] = tx.params_of("SELECT (SELECT COUNT(*)")
    assert asked["since_ms"] == core.clock.now_ms() - 2 * HOUR_MS
    assert (asked["member_id"], counts.open, counts.mine) == ("mem_mia", 2, 1)


async def test_a_list_is_shown_anew_after_a_change_and_after_a_minute(core: FakeContext) -> None:
    box = inbox(core)
    first = await box.marker(tx_of(others=COUNTS), PROJECT)
    changed = {"SELECT updated_at_ms": [{"updated_at_ms": 78}]}
    second = await box.marker(tx_of(others=changed), PROJECT)
    core.clock.advance(60)
    third = await box.marker(tx_of(others=changed), PROJECT)

    assert len({first, second, third}) == 3


async def open_page(
    core: FakeContext,
    tx: FakeTx,
    *,
    role: Role = "agent",
    member: Member | None = None,
    **query: str,
) -> PageContext:
    """A page of the project that somebody has open."""
    account = core.peers.accounts.account("mia@shop.example", name="Mia")
    return PageContext(
        viewer=Viewer(account.account_id, account.email, account.name, is_operator=False),
        project=await core.projects.get(tx, PROJECT),
        role=role,
        member=member,
        plan=None,
        lang="en",
        languages=("en", "ru"),
        timezone=HERE,
        clock=core.clock,
        _=core.texts.into("en"),
        params={},
        query=query,
        form=PostedForm(),
        root="/dashboard",
        ip="127.0.0.1",
        optional_tx=tx,
    )


def ticket_list(core: FakeContext) -> TicketList:
    return TicketList(
        clock=core.clock,
        members=core.members,
        inbox=inbox(core),
        viewers=TicketViewers(clock=core.clock),
        assignment=tickets(core).assignment,
    )


async def test_the_list_shows_open_tickets_unless_it_is_asked_for_others(core: FakeContext) -> None:
    hire(core)
    asked = []
    queries: list[dict[str, Any]] = [{}, {"status": "all"}, {"status": "closed", "who": "none"}]
    for query in queries:
        tx = tx_of(TICKET, others=COUNTS)
        shown = await ticket_list(core).listed(await open_page(core, tx, **query))
        asked.append(tx.params_of("AS tags FROM helpdesk_tickets t")[0].get("status"))

    assert asked == ["open", None, "closed"]
    assert (shown["most"], shown["names"]) == (100, {"mem_mia": "Mia"})


async def test_an_account_without_a_member_has_no_tickets_of_its_own(core: FakeContext) -> None:
    asked = []
    for member in (None, hire(core)):
        tx = tx_of(others=COUNTS)
        await ticket_list(core).listed(await open_page(core, tx, member=member, who="me"))
        asked.append(tx.params_of("AS tags FROM helpdesk_tickets t")[0]["assignee_id"])

    assert asked == ["nobody", "mem_mia"]


async def test_an_owner_is_known_by_their_address(core: FakeContext) -> None:
    mia = hire(core)
    for role, me in (("owner", mia), ("admin", None)):
        tx = tx_of(others=COUNTS)
        shown = await ticket_list(core).listed(
            await open_page(core, tx, role="owner" if role == "owner" else "admin")
        )

        assert shown["me"] == me


# ---- conversations ------------------------------------------------------------------------------


def conversations(core: FakeContext) -> Conversations:
    return Conversations(
        tickets=tickets(core),
        members=core.members,
        messages=core.messages,
        files=core.files,
        viewers=TicketViewers(clock=core.clock),
        base_url="http://msgsvc.test",
    )


async def test_what_was_said_is_shown_with_who_said_it_and_whether_it_arrived(
    core: FakeContext,
) -> None:
    hire(core)
    sent = await core.messages.queue(
        FakeTx(), PROJECT, SendBody(subscriber_id="sub_1", text="Here")
    )
    answer = replace(
        ENTRY,
        entry_id="tmg_2",
        author="agent",
        member_id="mem_mia",
        message_id=sent.message_id,
    )
    page = await open_page(core, tx_of(TICKET, entries=(answer, ENTRY)))
    shown = await conversations(core).page(page, TICKET)

    asked, answered = shown.entries
    assert (asked.who, asked.message) == ("", None)
    assert (answered.who, answered.message) == ("Mia", sent)
    assert shown.earlier is None


@pytest.mark.parametrize(
    ("url", "link"),
    [("https://shop.example/a.png", "https://shop.example/a.png"), ("javascript:alert(1)", "")],
)
async def test_a_file_at_another_place_is_a_link_if_it_is_a_web_address(
    core: FakeContext, url: str, link: str
) -> None:
    media = {**asdict(ENTRY), "media": to_json({"type": "image", "url": url, "filename": None})}
    tx = tx_of(TICKET, others={"FROM helpdesk_entries": [media]})
    shown = await conversations(core).page(await open_page(core, tx), TICKET)

    assert shown.entries[0].link == link


async def test_a_long_conversation_goes_on_by_a_cursor(core: FakeContext) -> None:
    many = tuple(replace(ENTRY, entry_id=f"tmg_{number:03}") for number in range(LIMIT, -1, -1))
    shown = await conversations(core).page(
        await open_page(core, tx_of(TICKET, entries=many)), TICKET
    )

    assert len(shown.entries) == LIMIT
    assert shown.entries[0].entry.entry_id == "tmg_001"
    assert shown.earlier is not None


async def test_a_conversation_looks_different_once_something_of_it_does(core: FakeContext) -> None:
    async def marker(ticket: Ticket = TICKET, **fields: Any) -> str:
        page = await open_page(core, tx_of(TICKET, entries=(replace(ENTRY, **fields),)))
        return (await conversations(core).page(page, ticket)).marker

    same = await marker()
    assert await marker() == same
    assert await marker(edited_at_ms=5) != same
    assert await marker(replace(TICKET, updated_at_ms=5)) != same


async def test_a_file_is_read_at_the_host_of_the_page_once_it_is_here(core: FakeContext) -> None:
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    file = await core.files.add(FakeTx(), PROJECT, filename="a.png", content=content)
    row = [{"entry_id": "tmg_1", "file_id": file.file_id}]
    shown = []
    for status in ("ready", "pending"):
        core.files.stored[file.file_id] = replace(
            file, status="ready" if status == "ready" else "pending"
        )
        tx = tx_of(TICKET, entries=(ENTRY,), others={"FROM helpdesk_entry_files": row})
        page = await conversations(core).page(await open_page(core, tx), TICKET)
        shown.append(page.entries[0].files[0])

    assert [each.is_picture for each in shown] == [True, False]
    assert shown[0].url.startswith("/")
    assert shown[1].url == ""


# ---- time ---------------------------------------------------------------------------------------


def jobs(core: FakeContext) -> TicketJobs:
    return TicketJobs(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        files=core.files,
        tickets=tickets(core),
        notifications=notifications(core),
        settings=HelpdeskSettings(closed_ticket_days=30),
    )


def found(core: FakeContext, *held: Ticket, **looks: list[str]) -> FakeJobContext:
    """Tables in which looks for `snoozed`, `waiting`, `closed` and `left` tickets find these, once."""
    words = {
        "snoozed": "snoozed_until_ms <= :now_ms",
        "waiting": "waiting_since_ms <= :since_ms",
        "closed": "closed_at_ms <= :until_ms",
        "left": "assignee_id = :member_id AND status",
    }
    left = {name: list(looks.get(name, [])) for name in words}

    def look(name: str) -> Any:
        def answer(_params: Any) -> list[dict[str, Any]]:
            ids, left[name] = left[name], []
            return [{"project_id": PROJECT, "ticket_id": each} for each in ids]

        return answer

    core.db.replies = tables(*held, others={text: look(name) for name, text in words.items()})
    return FakeJobContext(core.db)


async def test_time_wakes_tickets_and_tells_of_customers_who_wait(core: FakeContext) -> None:
    asleep = replace(TICKET, status="snoozed", snoozed_until_ms=1)
    ctx = found(core, asleep, VIRTUAL, snoozed=["tkt_1"], waiting=["tkt_2"])
    await jobs(core).run_due(ctx, [])

    assert core.events.names == ["ticket.status_changed", "ticket.unanswered_24h"]
    assert core.db.commits == 2


async def test_what_fails_for_one_ticket_keeps_no_other_one_waiting(core: FakeContext) -> None:
    asleep = replace(VIRTUAL, status="snoozed", snoozed_until_ms=1)
    ctx = found(core, asleep, snoozed=["tkt_bad", "tkt_2"])
    usual = core.db.replies["SELECT 1 AS one"]

    def locked(params: Any) -> Any:
        if params["ticket_id"] == "tkt_bad":
            raise RuntimeError("a mistake of ours")
        return usual

    core.db.replies["SELECT 1 AS one"] = locked
    await jobs(core).run_due(ctx, [])

    assert core.events.names == ["ticket.status_changed"]


async def test_a_database_that_is_away_ends_the_look(core: FakeContext) -> None:
    ctx = found(core, TICKET, snoozed=["tkt_1"])

    def away(_params: Any) -> Any:
        raise DatabaseUnavailable("away")

    core.db.replies["SELECT 1 AS one"] = away
    with pytest.raises(DatabaseUnavailable):
        await jobs(core).run_due(ctx, [])


async def test_a_runner_that_stops_begins_nothing(core: FakeContext) -> None:
    ctx = found(core, TICKET, snoozed=["tkt_1"])
    ctx.is_stopping = True

    with pytest.raises(Stopping):
        await jobs(core).run_due(ctx, [])
    assert core.db.commits == 0


async def test_the_looks_go_on_after_one_that_died(core: FakeContext) -> None:
    look, *_ = jobs(core).specs
    assert look.on_dead is not None
    await look.on_dead(FakeTx(), claimed(NewJob(LOOK)), "killed")

    [again] = core.jobs.named(LOOK)
    assert (again.key, again.run_at_ms) == ("recurring", core.clock.now_ms() + 10_000)


async def test_the_tickets_of_who_left_are_taken_and_a_failure_is_tried_again(
    core: FakeContext,
) -> None:
    theirs = replace(TICKET, assignee_id="mem_gone")
    job = claimed(NewJob(GONE_JOB, {"project_id": PROJECT, "member_id": "mem_gone"}))
    await jobs(core).unassign_left(found(core, theirs, left=["tkt_1"]), [job])

    assert core.events.names == ["ticket.assigned"]
    with pytest.raises(RuntimeError, match="mem_gone"):
        await jobs(core).unassign_left(found(core, left=["tkt_missing"]), [job])


async def test_tickets_go_so_long_after_their_end_unless_something_was_said_since(
    core: FakeContext,
) -> None:
    old_ms = core.clock.now_ms() - 30 * DAY_MS
    old = replace(TICKET, status="closed", closed_at_ms=old_ms, last_message_at_ms=old_ms)
    spoken = replace(VIRTUAL, status="closed", closed_at_ms=old_ms, last_message_at_ms=old_ms + 1)
    reopened = replace(TICKET, ticket_id="tkt_3", number=3)
    ctx = found(core, old, spoken, reopened, closed=["tkt_1", "tkt_2", "tkt_3"])
    await jobs(core).purge(ctx, [])

    [gone] = core.db.params_of("DELETE FROM helpdesk_tickets")
    assert set(gone.values()) == {PROJECT, "tkt_1"}


async def test_who_is_erased_leaves_closed_and_empty_tickets(core: FakeContext) -> None:
    looks = [[{"ticket_id": "tkt_1"}], []]
    core.db.replies = tables(TICKET, others={"AND erased_at_ms IS NULL": lambda _: looks.pop(0)})
    await jobs(core).erase(PROJECT, "sub_1")

    [written] = core.db.params_of("UPDATE helpdesk_tickets")
    assert (written["status"], written["customer_name"], written["subject"]) == ("closed", "", "")
    assert written["erased_at_ms"] == core.clock.now_ms()
    assert core.events.emitted == []
