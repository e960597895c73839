"""The plugin's objects one by one, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_billing.admission import FRESH_MS, Admission
from msgsvc_billing.charges import Charges
from msgsvc_billing.jobs import STEP, Renewal
from msgsvc_billing.metrics import BillingMetrics
from msgsvc_billing.models import LedgerFilter, State
from msgsvc_billing.payers import Payers
from msgsvc_billing.service import Billing
from msgsvc_billing.settings import BillingSettings
from msgsvc_billing.statements import CHUNK, Statements
from msgsvc_core.jobs import Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeAccounts,
    FakeJobContext,
    FakeProjects,
    FakeTx,
    fake_metrics,
)


def billing(clock: FakeClock) -> Billing:
    accounts = FakeAccounts()
    return Billing(
        clock=clock,
        settings=BillingSettings(),
        accounts=accounts,
        payers=Payers(projects=FakeProjects(), accounts=accounts),
    )


def used_up(clock: FakeClock, plan: str = "free") -> State:
    now_ms = clock.now_ms()
    return State(
        account_id="acc_1",
        plan=plan,
        anchor_ms=now_ms,
        period_started_ms=now_ms,
        period_ends_ms=now_ms + 30 * DAY_MS,
        granted=100,
        used=100,
        packs=0,
        exhausted_at_ms=now_ms,
    )


def test_an_account_without_credits_has_three_days_of_grace() -> None:
    clock = FakeClock()
    state, account = used_up(clock), billing(clock)
    first = account.standing(state)
    clock.advance(3 * 24 * 3600)

    assert (first, account.standing(state)) == ("grace", "blocked")


def test_a_new_month_ends_the_block() -> None:
    clock = FakeClock()
    state, account = used_up(clock), billing(clock)
    clock.advance(31 * 24 * 3600)
    renewed = account.as_of_now(state)

    assert (renewed.used, account.standing(renewed)) == (0, "ok")


def test_a_blocked_account_is_told_since_when() -> None:
    clock = FakeClock()
    payers = Payers(projects=FakeProjects(), accounts=FakeAccounts())
    charges = Charges(clock=clock, billing=billing(clock), payers=payers)
    charges.check(used_up(clock))
    state = used_up(clock)
    clock.advance(4 * 24 * 3600)

    with pytest.raises(BillingBlocked, match="2026-01-15"):
        charges.check(state)


async def test_who_was_never_charged_pays_from_the_day_their_account_was_made() -> None:
    core = plugin_context()
    ann = core.peers.accounts.account("ann@shop.example")
    await core.projects.set_owner(FakeTx(), PROJECT, ann.account_id)
    payers = Payers(projects=core.projects, accounts=core.peers.accounts)
    payer = await payers.find(FakeTx(answers=[[]]), PROJECT)

    assert payer is not None
    assert (payer.account_id, payer.anchor_ms) == (ann.account_id, ann.created_at_ms)
    assert payer.state is None


def row_of(state: State) -> dict[str, Any]:
    """As the database has it."""
    return {name: getattr(state, name) for name in state.__dataclass_fields__}


class Shop:
    """A project whose owner has used up what they had, and whoever asks whether it is blocked."""

    def __init__(self) -> None:
        self.core: FakeContext = plugin_context()
        self.core.projects.owners[PROJECT] = "acc_1"
        self.state = used_up(self.core.clock)
        payers = Payers(projects=self.core.projects, accounts=self.core.peers.accounts)
        account = billing(self.core.clock)
        self.admission = Admission(
            clock=self.core.clock,
            db=self.core.db,
            billing=account,
            charges=Charges(clock=self.core.clock, billing=account, payers=payers),
            payers=payers,
        )

    def found(self, **changes: Any) -> None:
        """What the database answers next."""
        self.core.db.answers.append([row_of(replace(self.state, **changes))])


async def test_whether_a_project_is_blocked_is_asked_once_a_second() -> None:
    shop = Shop()
    shop.found()
    for _ in range(100):
        await shop.admission.check(PROJECT, None)
    shop.core.clock.advance(FRESH_MS / 1000)
    shop.found(exhausted_at_ms=0)

    for _ in range(2):
        with pytest.raises(BillingBlocked):
            await shop.admission.check(PROJECT, None)
    assert len(shop.core.db.statements) == 2


async def test_a_pack_unblocks_at_once() -> None:
    shop = Shop()
    shop.found(exhausted_at_ms=0)
    with pytest.raises(BillingBlocked):
        await shop.admission.check(PROJECT, None)
    shop.admission.clear()
    shop.found(packs=10, exhausted_at_ms=None)

    await shop.admission.check(PROJECT, None)


async def test_a_transaction_asks_itself_and_leaves_nothing_to_others() -> None:
    shop = Shop()
    blocked = [row_of(replace(shop.state, exhausted_at_ms=0))]
    with pytest.raises(BillingBlocked):
        await shop.admission.check(PROJECT, FakeTx(answers=[blocked]))
    shop.found()

    await shop.admission.check(PROJECT, None)


async def test_a_project_that_nobody_owns_is_not_blocked() -> None:
    await Shop().admission.check("prj_nobodys", None)


async def test_accounts_are_renewed_in_one_order_until_there_are_no_more() -> None:
    clock = FakeClock()
    ended = [
        row_of(replace(used_up(clock), account_id=f"acc_{number:03}", period_ends_ms=0))
        for number in reversed(range(STEP))
    ]
    ctx = FakeJobContext()
    # Each had been renewed by somebody else meanwhile.
    found = [answer for row in reversed(ended) for answer in ([], [row])]
    ctx.db.answers += [ended, *found, []]
    await Renewal(clock=clock, billing=billing(clock)).renew(ctx, [])

    renewed = [
        params["account_id"] for sql, params in ctx.db.statements if sql.startswith("UPDATE")
    ]
    assert renewed == [f"acc_{number:03}" for number in range(STEP)]
    assert ctx.db.commits == 2


async def test_renewing_stops_with_the_service() -> None:
    clock, ctx = FakeClock(), FakeJobContext()
    ctx.is_stopping = True

    with pytest.raises(Stopping):
        await Renewal(clock=clock, billing=billing(clock)).renew(ctx, [])


async def test_an_account_in_its_days_of_grace_is_not_counted_as_blocked() -> None:
    clock, metrics = FakeClock(), fake_metrics()
    settings = BillingSettings(grace_days=2)
    BillingMetrics(clock=clock, metrics=metrics, settings=settings)
    tx = FakeTx(answers=[[{"count": 3}]])
    await metrics.database.queries[-1](tx)

    assert tx.statements[0][1] == {"before_ms": clock.now_ms() - 2 * DAY_MS}
    assert metrics.registry.get_sample_value("msgsvc_billing_blocked_accounts") == 3


def statements(core: FakeContext) -> Statements:
    payers = Payers(projects=core.projects, accounts=core.peers.accounts)
    return Statements(clock=core.clock, db=core.db, payers=payers)


def line(number: int, **fields: Any) -> dict[str, Any]:
    """A row of a ledger."""
    return {
        "account_id": "acc_1",
        "entry_id": f"led_{number}",
        "project_id": None,
        "operation": "auth.confirmed",
        "resource_id": f"ses_{number}",
        "quantity": 1,
        "allowance": -1,
        "packs": 0,
        "unpaid": 0,
        "note": "",
        "at_ms": FakeClock().now_ms(),
        **fields,
    }


async def test_a_ledger_as_a_file_is_read_in_pieces_and_runs_no_formulas() -> None:
    core = plugin_context()
    core.db.answers += [[line(number) for number in range(CHUNK)], [line(CHUNK, note="=1+1")]]
    pieces = [piece async for piece in statements(core).csv(LedgerFilter("acc_1"))]

    rows = b"".join(pieces).decode("utf-8-sig").splitlines()
    assert (len(pieces), len(rows)) == (2, 1 + CHUNK + 1)
    assert rows[0].startswith("entry_id,created_at")
    assert rows[-1].endswith(",'=1+1")
    assert [params.get("after") for _, params in core.db.statements] == [None, f"led_{CHUNK - 1}"]


async def test_what_a_month_used_is_summed_by_operation_from_the_day_on_which_it_began() -> None:
    core = plugin_context()
    days = [
        {"day": day, "operation": operation, "quantity": 2, "credits": 3}
        for day, operation in [(1, "otp.send"), (2, "otp.send"), (2, "auth.confirmed")]
    ]
    state = replace(used_up(core.clock), period_started_ms=5 * DAY_MS + 1)
    tx = FakeTx(answers=[days])
    used = await statements(core).used_this_month(tx, state, None)

    assert [(one.operation, one.quantity, one.credits) for one in used] == [
        ("otp.send", 4, 6),
        ("auth.confirmed", 2, 3),
    ]
    assert tx.statements[0][1]["from_day"] == 5


async def test_a_usage_of_days_ends_today() -> None:
    core, tx = plugin_context(), FakeTx(answers=[[]])
    await statements(core).used_of_days(tx, "acc_1", PROJECT, 7)

    assert tx.statements[0][1]["from_day"] == core.clock.now_ms() // DAY_MS - 6
