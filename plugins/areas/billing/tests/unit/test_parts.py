"""The plugin's objects one by one, built from fakes."""

import pytest

from msgsvc_billing.charges import Charges
from msgsvc_billing.models import State
from msgsvc_billing.service import Billing
from msgsvc_billing.settings import BillingSettings
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_devkit import FakeClock


async def _nobody(*_: object) -> object:
    raise LookupError


def billing(clock: FakeClock) -> Billing:
    return Billing(clock=clock, settings=BillingSettings(), find_account=_nobody)  # type: ignore[arg-type] - no account is asked for


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
    charges = Charges(clock=clock, billing=billing(clock))
    charges.check(used_up(clock))
    state = used_up(clock)
    clock.advance(4 * 24 * 3600)

    with pytest.raises(BillingBlocked, match="2026-01-15"):
        charges.check(state)
