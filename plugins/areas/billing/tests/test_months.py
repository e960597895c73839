"""Months of accounts: when they begin, and a year of them in which the ledger stays even."""

from datetime import UTC, datetime
from random import Random

import pytest

from msgsvc_billing.jobs import Renewal
from msgsvc_billing.months import period_at
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.billing.tests.conftest import DAY, WITH_BILLING, Payer, payer_of


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("anchor", "now", "began", "ends"),
    [
        ("2026-01-31T10:00", "2026-01-31T10:00", "2026-01-31T10:00", "2026-02-28T10:00"),
        ("2026-01-31T10:00", "2026-02-28T09:59", "2026-01-31T10:00", "2026-02-28T10:00"),
        ("2026-01-31T10:00", "2026-02-28T10:00", "2026-02-28T10:00", "2026-03-31T10:00"),
        ("2026-01-31T10:00", "2028-02-29T10:00", "2028-02-29T10:00", "2028-03-31T10:00"),
        ("2024-02-29T00:00", "2025-02-28T00:00", "2025-02-28T00:00", "2025-03-29T00:00"),
        ("2026-12-15T08:00", "2027-01-15T07:59", "2026-12-15T08:00", "2027-01-15T08:00"),
        # A clock that was set back: nobody's month is before their beginning.
        ("2026-05-05T00:00", "2026-05-01T00:00", "2026-05-05T00:00", "2026-06-05T00:00"),
    ],
)
def test_a_month_goes_from_its_day_to_its_day(anchor: str, now: str, began: str, ends: str) -> None:
    assert period_at(_ms(anchor), _ms(now)) == (_ms(began), _ms(ends))


async def test_what_is_left_of_a_month_is_gone_and_packs_stay(
    payer: Payer, clock: FakeClock
) -> None:
    await payer.charge("ses_1", quantity=30)
    await payer.grant(7)
    clock.advance(31 * DAY)
    shown = await payer.state()
    await payer.charge("ses_2")

    assert (shown.allowance, shown.packs) == (100, 7)
    assert to_rfc3339(shown.period_started_ms).startswith("2026-02-15T12:00")
    state = await payer.state()
    assert (state.allowance, state.packs) == (99, 7)
    amounts = await payer.amounts()
    assert amounts[f"allowance.expired {state.period_started_ms}"] == -70
    assert amounts[f"allowance.granted {state.period_started_ms}"] == 100
    assert await payer.is_even()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_plan_counts_at_once_and_what_was_used_counts_for_it(payer: Payer) -> None:
    await payer.charge("ses_1", quantity=90)
    await payer.change_plan("basic")
    assert (await payer.state()).balance == 610
    await payer.charge("ses_2", quantity=60)
    await payer.change_plan("free")
    assert (await payer.state()).balance == 0
    assert await payer.standing() == "grace"
    await payer.change_plan("basic")

    assert (await payer.state()).balance == 550
    assert await payer.standing() == "ok"
    assert await payer.is_even()


async def test_a_plan_without_a_limit_takes_nothing_and_never_ends(
    make_service: ServiceFactory,
) -> None:
    plans = {"free": {"monthly_credits": 2}, "house": {}}
    payer = await payer_of(await make_service(**WITH_BILLING, billing={"plans": plans}))
    await payer.charge("ses_1", quantity=2)
    assert await payer.standing() == "grace"
    await payer.change_plan("house")
    await payer.charge("ses_2", quantity=50)

    assert await payer.standing() == "ok"
    assert (await payer.amounts())["auth.confirmed ses_2"] == 0
    assert await payer.is_even()


async def test_for_a_year_of_months_and_plans_ledger_and_balance_agree_every_day(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    prices = {"broadcast.message": 1}
    options = {"billing": {"prices": prices}, "jobs": {"runner": "none"}}
    payer = await payer_of(await make_service(**WITH_BILLING, **options))
    random = Random(1)
    clock.advance(random.randrange(30) * DAY)
    renewals, sent = 0, list[tuple[str, int]]()
    for day in range(370):
        for number in range(random.choice((0, 1, 3, 12))):
            await payer.charge(f"ses_{day}_{number}")
        if random.random() < 0.1:
            quantity = random.randrange(1, 400)
            sent.append((f"job_{day}", quantity))
            # Blocked, which it is now and then.
            if not await _tried(payer, f"job_{day}", quantity):
                sent.pop()
        if sent and random.random() < 0.1:
            job, quantity = sent.pop(random.randrange(len(sent)))
            difference = random.randrange(-quantity, 5) or 1
            await payer.charge(job, "broadcast.settlement", refusable=False, quantity=difference)
        if random.random() < 0.04:
            plan = random.choice(("free", "basic", "pro"))
            if (await payer.state()).plan != plan:
                await payer.change_plan(plan)
        if random.random() < 0.03:
            await payer.grant(random.choice((1, 50, 500)))
        if random.random() < 0.5:
            await _run_job(payer)
        state = await payer.state()
        renewals += state.period_started_ms == clock.now_ms()

        assert await payer.is_even()
        assert state.balance >= 0
        assert (state.exhausted_at_ms is None) == (state.balance > 0)
        clock.advance(DAY)
    assert renewals >= 12
    granted = [name for name in await payer.amounts() if name.startswith("allowance.granted")]
    assert len(granted) >= 12


async def _tried(payer: Payer, job: str, quantity: int) -> bool:
    try:
        await payer.charge(job, "broadcast.message", quantity=quantity)
    except BillingBlocked:
        return False
    return True


async def _run_job(payer: Payer) -> None:
    class Context:
        transaction = payer.service.db.transaction
        stopping = False

    renewal = Renewal(clock=payer.service.clock, billing=payer.billing)
    await renewal.renew(Context(), [])  # type: ignore[arg-type] # all that the job asks of its context


async def test_what_something_costs_is_told_as_it_is_charged(make_service: ServiceFactory) -> None:
    billing = {"plans": {"free": {"monthly_credits": 2}, "house": {}}, "prices": {"x": 3}}
    payer = await payer_of(await make_service(**WITH_BILLING, billing=billing))
    nobodys = await payer.service.projects.create("Nobody's")

    async def prices() -> list[int]:
        service = payer.service
        async with service.db.read() as tx:
            return [
                await service.billing.quote(tx, payer.project_id, "x"),
                await service.billing.quote(tx, payer.project_id, "y"),
                await service.billing.quote(tx, nobodys.project_id, "x"),
            ]

    assert await prices() == [3, 0, 0]
    await payer.change_plan("house")
    assert await prices() == [0, 0, 0]
