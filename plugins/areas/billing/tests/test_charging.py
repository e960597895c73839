"""What operations take, once each, of the allowance and then of packs."""

import asyncio
from typing import Any

import pytest

from msgsvc_billing import ledger, store
from msgsvc_billing.service import Billing
from msgsvc_core.billing import Charge
from msgsvc_core.kernel.errors import BillingBlocked, Conflict
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.billing.tests.conftest import DAY, WITH_BILLING, Payer, payer_of

PRICED: dict[str, Any] = {"billing": {"prices": {"broadcast.message": 2, "ticket.reply": 3}}}


async def test_a_login_takes_one_credit_of_the_allowance_once(payer: Payer) -> None:
    await payer.charge("ses_1")
    await payer.charge("ses_1")
    await payer.charge("ses_2")

    state = await payer.state()
    assert (state.allowance, state.packs, state.used) == (98, 0, 2)
    assert await payer.is_even()


async def test_the_allowance_is_spent_before_packs(payer: Payer) -> None:
    await payer.grant(5)
    await payer.charge("ses_1", quantity=102)

    state = await payer.state()
    assert (state.allowance, state.packs) == (0, 3)
    assert await payer.is_even()


async def test_a_project_without_an_account_is_not_charged(payer: Payer) -> None:
    async with payer.service.db.transaction() as tx:
        await payer.service.get(Accounts).give_project(tx, payer.project_id, None)
    await payer.charge("ses_1")

    assert await payer.amounts() == {}


async def test_what_has_no_price_leaves_no_line(payer: Payer) -> None:
    await payer.charge("otp_1", "otp.send")

    assert await payer.amounts() == {}


async def test_a_charge_that_is_undone_never_was(payer: Payer) -> None:
    with pytest.raises(ZeroDivisionError):
        async with payer.service.db.transaction() as tx:
            await payer.service.billing.charge(
                tx, Charge(payer.project_id, "auth.confirmed", "ses_1", False)
            )
            raise ZeroDivisionError

    assert (await payer.state()).balance == 100
    assert await payer.amounts() == {}


async def test_after_the_last_credit_paid_operations_end_in_three_days_and_logins_never(
    payer: Payer, clock: FakeClock
) -> None:
    await payer.charge("ses_1", quantity=99)
    assert await payer.standing() == "ok"
    await payer.charge("ses_2")

    assert await payer.standing() == "grace"
    await payer.charge("otp_1", "otp.send")
    clock.advance(3 * DAY - 1)
    await payer.charge("otp_2", "otp.send")
    clock.advance(1)
    assert await payer.standing() == "blocked"
    with pytest.raises(BillingBlocked):
        await payer.charge("otp_3", "otp.send")
    await payer.charge("ses_3")
    assert (await payer.amounts())["auth.confirmed ses_3"] == 0
    async with payer.service.db.read() as tx:
        unpaid = await ledger.find(tx, payer.account_id, "auth.confirmed", "ses_3")
    assert unpaid is not None
    assert unpaid.unpaid == 1
    assert (await payer.state()).balance == 0
    assert await payer.is_even()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_pack_ends_the_block_at_once(payer: Payer, clock: FakeClock) -> None:
    await payer.spend_all()
    clock.advance(4 * DAY)
    with pytest.raises(BillingBlocked):
        await payer.service.billing.check(payer.project_id, "message.sent")
    await payer.grant(1)

    await payer.service.billing.check(payer.project_id, "message.sent")
    await payer.charge("otp_1", "otp.send")
    assert await payer.standing() == "ok"


@pytest.mark.both_databases
async def test_the_next_month_ends_the_block_before_its_job_runs(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    payer = await payer_of(await make_service(**WITH_BILLING, jobs={"runner": "none"}))
    await payer.spend_all()
    clock.advance(4 * DAY)
    assert await payer.standing() == "blocked"
    clock.advance(28 * DAY)

    await payer.service.billing.check(payer.project_id, "message.sent")
    await payer.charge("otp_1", "otp.send")
    assert (await payer.state()).balance == 100


async def test_a_mass_send_takes_what_there_is_and_gives_back_what_did_not_take_place(
    make_service: ServiceFactory,
) -> None:
    payer = await payer_of(await make_service(**WITH_BILLING, **PRICED))
    await payer.grant(50)
    await payer.charge("job_1", "broadcast.message", quantity=60)
    assert (await payer.state()).balance == 30
    await payer.charge("job_1", "broadcast.settlement", refusable=False, quantity=-20)

    state = await payer.state()
    assert (state.allowance, state.packs) == (20, 50)
    await payer.charge("job_2", "broadcast.message", quantity=100)
    assert (await payer.state()).balance == 0
    assert await payer.standing() == "grace"
    # It was to cost 200 and took 70; of 140 for 70 people nothing is given back, of 20 for 10 it is.
    await payer.charge("job_2", "broadcast.settlement", refusable=False, quantity=-90)
    assert (await payer.state()).balance == 50
    assert await payer.standing() == "ok"
    async with payer.service.db.read() as tx:
        used = await ledger.usage_by_day(tx, payer.account_id, payer.project_id, 0)
    assert [(one.operation, one.quantity, one.credits) for one in used] == [
        ("broadcast.message", 50, 100)
    ]
    assert await payer.is_even()


@pytest.mark.both_databases
async def test_an_allowance_of_a_month_that_is_over_is_not_given_back(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    payer = await payer_of(await make_service(**WITH_BILLING, **PRICED))
    await payer.charge("job_1", "broadcast.message", quantity=10)
    clock.advance(32 * DAY)
    await payer.charge("job_1", "broadcast.settlement", refusable=False, quantity=-10)

    assert (await payer.state()).balance == 100
    assert await payer.is_even()


async def test_packs_can_be_taken_back_but_not_more_than_there_are(payer: Payer) -> None:
    await payer.grant(10)
    with pytest.raises(Conflict):
        await payer.grant(-11)
    await payer.grant(-10)

    assert (await payer.state()).packs == 0
    assert await payer.is_even()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_100_charges_at_once_with_10_credits_10_are_paid(payer: Payer) -> None:
    await payer.charge("before", quantity=95)
    await payer.grant(5)

    await asyncio.gather(*(payer.charge(f"ses_{number}") for number in range(100)))

    amounts = await payer.amounts()
    paid = [amounts[f"auth.confirmed ses_{number}"] for number in range(100)]
    assert sorted(paid) == [-1] * 10 + [0] * 90
    assert (await payer.state()).balance == 0
    assert await payer.is_even()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_the_same_charge_told_20_times_at_once_one_is_made(payer: Payer) -> None:
    await asyncio.gather(*(payer.charge("ses_1") for _ in range(20)))

    assert (await payer.state()).used == 1
    async with payer.service.db.read() as tx:
        assert await store.find(tx, payer.account_id) is not None
    assert await payer.is_even()


@pytest.mark.both_databases
async def test_a_plan_that_gives_nothing_blocks_from_the_third_day_unless_a_pack_is_there(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plans = {"free": {"monthly_credits": 0}}
    payer = await payer_of(await make_service(**WITH_BILLING, billing={"plans": plans}))
    assert await payer.standing() == "grace"
    await payer.charge("otp_1", "otp.send")
    clock.advance(3 * DAY)
    with pytest.raises(BillingBlocked):
        await payer.charge("otp_2", "otp.send")
    with pytest.raises(BillingBlocked):
        await payer.service.billing.check(payer.project_id, "message.sent")
    await payer.grant(1)
    await payer.charge("otp_3", "otp.send")
    clock.advance(40 * DAY)

    await payer.charge("otp_4", "otp.send")
    assert (await payer.state()).balance == 1
    assert await payer.is_even()


@pytest.mark.both_databases
async def test_blocked_accounts_are_counted_for_who_runs_the_installation(
    payer: Payer, clock: FakeClock
) -> None:
    await payer.spend_all()
    async with payer.service.db.read() as tx:
        for ask in payer.service.metrics.database.queries:
            await ask(tx)
    in_grace, _ = await payer.service.metrics.scrape()
    clock.advance(3 * DAY)
    async with payer.service.db.read() as tx:
        for ask in payer.service.metrics.database.queries:
            await ask(tx)
    blocked = payer.service.metrics.registry.get_sample_value("msgsvc_billing_blocked_accounts")

    assert b"msgsvc_billing_blocked_accounts 0.0" in in_grace
    assert blocked == 1


async def test_without_the_plugin_nothing_is_charged_or_refused(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    payer = await payer_of(await make_service(plugins=("dashboard",)))
    await payer.charge("ses_1", quantity=1_000_000)
    clock.advance(90 * DAY)
    await payer.charge("otp_1", "otp.send")

    await payer.service.billing.check(payer.project_id, "message.sent")
    async with payer.service.db.read() as tx:
        assert await payer.service.billing.plan_of_account(tx, payer.account_id) is None


@pytest.mark.parametrize(
    ("limited", "projects"), [(False, None), (True, 1)], ids=["by default", "if so set"]
)
async def test_who_runs_the_installation_has_the_limits_of_no_plan(
    make_service: ServiceFactory, limited: bool, projects: int | None
) -> None:
    service = await make_service(**WITH_BILLING, billing={"operators_limited": limited})
    async with service.db.transaction() as tx:
        runs = await service.get(Accounts).create(
            tx, email="ann@shop.example", name="Ann", is_operator=True
        )
        buys = await service.get(Accounts).create(tx, email="bob@shop.example", name="Bob")
        billing = service.get(Billing)
        found = await billing.plan_of(tx, runs.account_id)
        sold = await billing.plan_of(tx, buys.account_id)

    assert found.max_projects == projects
    assert sold.max_projects == 1
