"""The plugin's objects one by one."""

import pytest

from msgsvc_billing.admission import FRESH_MS
from msgsvc_billing.jobs import STEP, Renewal
from msgsvc_billing.models import PACK_GRANTED, Debit, LedgerFilter, State
from msgsvc_billing.payers import Payers
from msgsvc_billing.service import Billing
from msgsvc_billing.statements import CHUNK, Statements
from msgsvc_core.billing import MESSAGE, Charge
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.kernel.ids import new_id
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT

DAY_S = 24 * 3600
HOUR_S = 3600


async def owner(core: MemoryCore, tx: Tx) -> str:
    """The account that pays for the project."""
    account_id = await core.projects.owner_of(tx, PROJECT)
    assert account_id is not None
    return account_id


async def state(core: MemoryCore, tx: Tx) -> State:
    return await core.get(Billing).state_of(tx, await owner(core, tx))


async def charge(core: MemoryCore, tx: Tx, operation: str, quantity: int = 1) -> None:
    resource = new_id("res")
    await core.billing.charge(tx, Charge(PROJECT, operation, resource, quantity=quantity))


async def spend_all(core: MemoryCore, tx: Tx) -> None:
    await charge(core, tx, "auth.confirmed", (await state(core, tx)).balance)


async def is_blocked(core: MemoryCore, tx: Tx | None = None) -> bool:
    try:
        await core.billing.check(PROJECT, MESSAGE, tx)
    except BillingBlocked:
        return True
    return False


async def test_an_account_without_credits_has_three_days_of_grace(core: MemoryCore, tx: Tx) -> None:
    billing = core.get(Billing)
    await spend_all(core, tx)
    used_up = await state(core, tx)
    first = billing.standing(used_up)
    core.clock.advance(3 * DAY_S)

    assert (first, billing.standing(used_up)) == ("grace", "blocked")


async def test_a_new_month_ends_the_block(core: MemoryCore, tx: Tx) -> None:
    billing = core.get(Billing)
    await spend_all(core, tx)
    core.clock.advance(31 * DAY_S)
    renewed = await state(core, tx)

    assert (renewed.used, billing.standing(renewed)) == (0, "ok")


async def test_a_blocked_account_is_told_since_when(core: MemoryCore, tx: Tx) -> None:
    await spend_all(core, tx)
    await core.billing.check(PROJECT, MESSAGE, tx)
    core.clock.advance(4 * DAY_S)

    with pytest.raises(BillingBlocked, match="2026-01-15"):
        await core.billing.check(PROJECT, MESSAGE, tx)


async def test_who_was_never_charged_pays_from_the_day_their_account_was_made(
    core: MemoryCore, tx: Tx
) -> None:
    made_ms = core.clock.now_ms()
    core.clock.advance(DAY_S)
    payers = Payers(projects=core.projects, accounts=core.peers.accounts)
    payer = await payers.find(tx, PROJECT)

    assert payer is not None
    assert (payer.account_id, payer.anchor_ms) == (await owner(core, tx), made_ms)
    assert payer.state is None


async def test_whether_a_project_is_blocked_is_asked_once_a_second(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await spend_all(core, tx)
    core.clock.advance(3 * DAY_S - FRESH_MS / 2000)
    in_grace = await is_blocked(core)
    core.clock.advance(FRESH_MS / 2000)
    half_a_second_later = await is_blocked(core)
    core.clock.advance(FRESH_MS / 2000)
    a_second_later = await is_blocked(core)
    async with core.db.transaction() as tx:
        await tx.execute("UPDATE billing_accounts SET packs = 10, exhausted_at_ms = NULL")

    assert (in_grace, half_a_second_later, a_second_later) == (False, False, True)
    assert await is_blocked(core)
    core.clock.advance(FRESH_MS / 1000)
    assert not await is_blocked(core)


async def test_a_pack_unblocks_at_once(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await spend_all(core, tx)
    core.clock.advance(4 * DAY_S)
    before = await is_blocked(core)
    async with core.db.transaction() as tx:
        await core.get(Billing).grant(tx, await owner(core, tx), 10)

    assert before
    assert not await is_blocked(core)


async def test_a_transaction_asks_itself_and_leaves_nothing_to_others(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await spend_all(core, tx)
    core.clock.advance(4 * DAY_S)
    before = await is_blocked(core)
    with pytest.raises(ZeroDivisionError):
        async with core.db.transaction() as tx:
            await core.get(Billing).grant(tx, await owner(core, tx), 10)
            within = await is_blocked(core, tx)
            raise ZeroDivisionError

    assert (before, within, await is_blocked(core)) == (True, False, True)


async def test_a_project_that_nobody_owns_is_not_blocked(core: MemoryCore, tx: Tx) -> None:
    await spend_all(core, tx)
    core.clock.advance(4 * DAY_S)
    await core.get(Accounts).give_project(tx, PROJECT, None)

    assert not await is_blocked(core, tx)


async def test_accounts_are_renewed_in_one_order_until_there_are_no_more(core: MemoryCore) -> None:
    billing = core.get(Billing)
    names = [f"acc_{number:03}" for number in range(STEP + 1)]
    async with core.db.transaction() as tx:
        fresh = await state(core, tx)
        for number, account_id in enumerate(names):
            # The last one's month ended first.
            ended_ms = fresh.period_started_ms - number
            row = {"account_id": account_id, "period_ends_ms": ended_ms, "plan": "free"}
            row |= {"anchor_ms": fresh.anchor_ms, "period_started_ms": ended_ms - 30 * DAY_MS}
            row |= dict.fromkeys(("granted", "used", "packs", "took_allowance", "took_packs"), 0)
            await tx.insert("billing_accounts", row)
    await core.run(NewJob("billing.renew"))

    async with core.db.read() as tx:
        lines = await tx.fetch_all("SELECT account_id FROM billing_ledger ORDER BY entry_id")
        found = [await billing.state_of(tx, each) for each in names]
    assert [line["account_id"] for line in lines] == [*names[1:], names[0]]
    assert {(each.period_ends_ms, each.granted) for each in found} == {(fresh.period_ends_ms, 100)}


async def test_renewing_stops_with_the_service(core: MemoryCore) -> None:
    ctx = JobInTest(core.db)
    ctx.is_stopping = True

    with pytest.raises(Stopping):
        await Renewal(clock=core.clock, billing=core.get(Billing)).renew(ctx, [])


async def test_a_ledger_as_a_file_is_read_in_pieces_and_runs_no_formulas(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        account_id = await owner(core, tx)
        billing = core.get(Billing)
        await billing.grant(tx, account_id, 1, "=1+1")
        for _ in range(CHUNK - 1):
            await billing.record(tx, account_id, PACK_GRANTED, Debit(0, -1))
    pieces = [piece async for piece in core.get(Statements).csv(LedgerFilter(account_id))]

    # The first line is the month's allowance, the second the pack.
    head, *rows = b"".join(pieces).decode("utf-8-sig").splitlines()
    ids = [row.partition(",")[0] for row in rows]
    assert [len(piece.splitlines()) for piece in pieces] == [1 + CHUNK, 1]
    assert head.startswith("entry_id,created_at")
    assert rows[-2].endswith(",'=1+1")
    assert ids == sorted({*ids}, reverse=True)


async def test_what_a_month_used_is_summed_by_operation_from_the_day_on_which_it_began(
    core: MemoryCore, tx: Tx
) -> None:
    # The first month ends at noon of the 15th: the second charge is before it, and on the same day.
    operations = {30 * 24: "otp.send", 22: "otp.send", 2: "auth.confirmed", 24: "otp.send"}
    for hours, operation in operations.items():
        core.clock.advance(hours * HOUR_S)
        await charge(core, tx, operation, 2)
    used = await core.get(Statements).used_this_month(tx, await state(core, tx), None)

    assert [(one.operation, one.quantity, one.credits) for one in used] == [
        ("auth.confirmed", 2, 2),
        ("otp.send", 4, 12),
    ]


async def test_a_usage_of_days_ends_today(core: MemoryCore, tx: Tx) -> None:
    statements, days = core.get(Statements), []
    for _ in range(9):
        core.clock.advance(DAY_S)
        days.append(statements.today)
        await charge(core, tx, "auth.confirmed")
    used = await statements.used_of_days(tx, await owner(core, tx), PROJECT, 7)

    assert [each.day for each in used] == days[-7:]
