"""The plugin's objects one by one, built from fakes."""

import pytest

from msgsvc_billing.charges import Charges
from msgsvc_billing.models import State
from msgsvc_billing.payers import Payers
from msgsvc_billing.service import Billing
from msgsvc_billing.settings import BillingSettings
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_devkit import FakeClock, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeAccounts, FakeProjects, FakeTx


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
