"""Sessions, their Yes and their code."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from msgsvc_auth import changes, store
from msgsvc_auth.errors import AuthCodeExpired, AuthCodeInvalid, AuthCodeUsed
from msgsvc_auth.exchange import CodeExchange, Presented
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.models import Session
from msgsvc_auth.service import TRIAL, SignIn
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import InvalidUrl, NotFound, RateLimitProject, ValidationFailed
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from msgsvc_devkit.deadlines import patient
from plugins.areas.auth.tests.unit.signing_in import (
    ANNA,
    CALLBACK,
    Unpaid,
    add_link,
    begin,
    confirm,
    counted,
    find_person,
    say_yes,
)

SESSION_ID = "ses_" + "a" * 44


# ---- opening ---------------------------------------------------------------------------------------


async def test_the_database_has_no_token_and_the_id_says_nothing_of_it(core: MemoryCore) -> None:
    sign_in = core.get(SignIn)
    async with core.db.transaction() as tx:
        new = await begin(core, tx, state="s", number_matching=True)
        stored = await tx.fetch_one("SELECT * FROM auth_sessions")
        found = await sign_in.find_by_token(tx, new.token)

    assert stored is not None
    assert new.token not in str([*stored])
    assert new.token not in new.session.session_id
    assert found == new.session
    assert new.session.match_number in range(10, 100)
    assert new.session.expires_at_ms == core.clock.now_ms() + 600_000
    assert counted(core, "begun") == 1
    assert new.token in sign_in.links(new)["messenger_a"]


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"channel": "pigeon"}, ValidationFailed),
        ({"callback_url": "https://evil.example/back"}, InvalidUrl),
    ],
)
async def test_what_is_wrong_takes_no_slot(body: dict[str, Any], refusal: type[Exception]) -> None:
    async with (
        memory_core(plugins=["auth"], auth={"sessions_per_hour": 1}) as core,
        core.db.transaction() as tx,
    ):
        with pytest.raises(refusal):
            await begin(core, tx, **body)
        await begin(core, tx)

        with pytest.raises(RateLimitProject):
            await begin(core, tx)


async def test_a_project_and_an_address_open_so_many_sessions_an_hour() -> None:
    limits = {"sessions_per_hour": 5, "sessions_per_hour_per_address": 2}
    client = {"ip": "203.0.113.7"}
    async with memory_core(plugins=["auth"], auth=limits) as core, core.db.transaction() as tx:
        for _ in range(2):
            await begin(core, tx, client=client)
        with pytest.raises(RateLimitProject, match="for this address"):
            async with tx.savepoint():
                await begin(core, tx, client=client)
        for _ in range(3):
            await begin(core, tx)

        with pytest.raises(RateLimitProject, match="of this project"):
            await begin(core, tx)


async def test_what_can_be_no_id_is_not_looked_up(core: MemoryCore) -> None:
    sign_in = core.get(SignIn)
    with pytest.raises(NotFound):
        await sign_in.get(PROJECT, SESSION_ID)
    await core.db.disconnect()

    with pytest.raises(NotFound):
        await sign_in.get(PROJECT, "ses_short")


async def test_a_real_sign_in_is_no_trial_whatever_its_state_says(core: MemoryCore, tx: Tx) -> None:
    sign_in = core.get(SignIn)
    await add_link(core, tx)
    trial = (await sign_in.open_trial(tx, PROJECT)).session
    real = await begin(core, tx, state=TRIAL, callback_url=CALLBACK)
    other = await begin(core, tx, state="mine")

    assert await sign_in.get_trial(tx, PROJECT, trial.session_id) == trial
    for new in (real, other):
        with pytest.raises(NotFound):
            await sign_in.get_trial(tx, PROJECT, new.session.session_id)


# ---- waiting ---------------------------------------------------------------------------------------


async def start_waiting(core: MemoryCore, session: Session) -> asyncio.Task[Session]:
    """A request that has read the session and waits for it to change."""
    task = asyncio.create_task(core.get(SignIn).wait(PROJECT, session.session_id, 60))
    # More turns of the loop than it needs for that.
    for _ in range(20):
        await asyncio.sleep(0)
    return task


async def test_a_wait_ends_with_the_answer(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the notification may end it.
    monkeypatch.setattr(changes, "REREAD_S", 60)
    sign_in = core.get(SignIn)
    async with core.db.transaction() as tx:
        session = (await begin(core, tx)).session
    waiting = await start_waiting(core, session)
    async with core.db.transaction() as tx:
        await sign_in.deny(tx, session, "messenger_a")

    async with asyncio.timeout(patient(5)):
        assert await waiting == replace(session, stored_status="denied")
    assert counted(core, "cancelled", "messenger_a") == 1


async def test_nobody_waits_for_a_service_that_stops(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        session = (await begin(core, tx)).session
    waiting = await start_waiting(core, session)
    core.get(SignIn).cancel_waits()

    async with asyncio.timeout(patient(5)):
        assert await waiting == session


# ---- the Yes ---------------------------------------------------------------------------------------


async def test_a_yes_subscribes_is_an_event_and_costs_a_credit_also_of_who_has_none() -> None:
    billing = Unpaid()
    async with (
        memory_core(plugins=["auth"], extra_plugins=[("billing", billing)]) as core,
        core.db.transaction() as tx,
    ):
        done = await confirm(core, tx)
        person = await find_person(core, tx)

    assert person == done.subscriber
    assert (person.user_id, person.source, person.chat_id) == ("7", "auth", "c1")
    assert "auth.completed" in core.event_names
    [charge] = billing.charged
    assert (charge.operation, charge.resource_id) == ("auth.confirmed", done.session.session_id)
    assert done.session.code_expires_at_ms == core.clock.now_ms() + 300_000


async def test_a_yes_that_comes_too_late_changes_nothing() -> None:
    billing = Unpaid()
    async with (
        memory_core(plugins=["auth"], extra_plugins=[("billing", billing)]) as core,
        core.db.transaction() as tx,
    ):
        new = await begin(core, tx)
        core.clock.advance(600)

        assert await say_yes(core, tx, new.session) is None
        assert await find_person(core, tx) is None
    assert (core.event_names, billing.charged) == ([], [])


@pytest.mark.parametrize(("is_asked_for", "picked"), [(True, None), (True, 1), (False, 47)])
async def test_another_number_than_the_pages_is_no_yes(
    core: MemoryCore, tx: Tx, is_asked_for: bool, picked: int | None
) -> None:
    session = (await begin(core, tx, number_matching=is_asked_for)).session
    number = {} if picked is None else {"number": picked}

    assert await say_yes(core, tx, session, **number) is None
    assert await core.get(SignIn).get(PROJECT, session.session_id, tx) == session


async def test_a_yes_is_of_the_person_by_the_bot_that_asked_them(core: MemoryCore, tx: Tx) -> None:
    is_of = core.get(SignIn).is_confirmed_by
    done, waits = (await confirm(core, tx)).session, (await begin(core, tx)).session

    done = await core.get(SignIn).get(PROJECT, done.session_id, tx)
    assert await is_of(tx, done, "messenger_a", ANNA)
    assert not await is_of(tx, done, "messenger_b", ANNA)
    assert not await is_of(tx, done, "messenger_a", ChannelUser("8", "Anna"))
    assert not await is_of(tx, waits, "messenger_a", ANNA)


async def test_a_code_is_shown_while_it_can_be_exchanged(core: MemoryCore, tx: Tx) -> None:
    sign_in, now_ms = core.get(SignIn), core.clock.now_ms()
    done, waits = await confirm(core, tx), await begin(core, tx)

    assert sign_in.code_of(done.session, now_ms) == done.code
    assert sign_in.code_of(done.session, now_ms + 300_000) is None
    assert sign_in.code_of(waits.session, now_ms) is None
    assert sign_in.code_of(replace(done.session, stored_status="consumed"), now_ms) is None


# ---- the exchange ----------------------------------------------------------------------------------


async def test_of_two_with_the_same_code_the_first_has_it(core: MemoryCore) -> None:
    verify = core.get(SignIn).verify
    async with core.db.transaction() as tx:
        done = await confirm(core, tx)
    both = (verify(PROJECT, done.code), verify(PROJECT, done.code))
    first, second = await asyncio.gather(*both, return_exceptions=True)

    assert isinstance(first, tuple)
    assert (first[0].session_id, first[1]) == (done.session.session_id, done.subscriber)
    assert isinstance(second, AuthCodeUsed)
    assert counted(core, "exchanged", "messenger_a") == 1


@pytest.mark.parametrize(
    ("why", "refusal"),
    [("unknown", AuthCodeInvalid), ("used", AuthCodeUsed), ("too late", AuthCodeExpired)],
)
async def test_a_refusal_says_why_the_code_does_not_work(
    core: MemoryCore, tx: Tx, why: str, refusal: type[Exception]
) -> None:
    verify = core.get(SignIn).verify
    code = (await confirm(core, tx)).code
    match why:
        case "unknown":
            code = "x" * 43
        case "used":
            await verify(PROJECT, code, tx)
        case "too late":
            core.clock.advance(300)

    with pytest.raises(refusal):
        await verify(PROJECT, code, tx)


@pytest.mark.parametrize("proven", ["account", None])
async def test_a_code_that_proves_less_is_refused_beside_one_that_asks_for_nothing(
    core: MemoryCore, proven: str | None
) -> None:
    verify = core.get(SignIn).verify
    async with core.db.transaction() as tx:
        code = (await confirm(core, tx)).code
        await tx.execute("UPDATE auth_sessions SET proves = :proven", {"proven": proven})
    both = (verify(PROJECT, code, must_prove=["phone"]), verify(PROJECT, code))
    refused, given = await asyncio.gather(*both, return_exceptions=True)

    assert isinstance(refused, AuthCodeInvalid)
    assert isinstance(given, tuple)


async def test_codes_are_consumed_in_one_order_whoever_asks_first(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumed: list[tuple[str, str]] = []

    async def consume(_tx: Tx, codes: list[tuple[str, str]], *_kind: str, now_ms: int) -> Any:
        consumed.extend(codes)
        return {}

    monkeypatch.setattr(store, "consume", consume)
    metrics = SignInMetrics(registry=CollectorRegistry(), label=str)
    exchange = CodeExchange(clock=core.clock, subscribers=core.subscribers, metrics=metrics)
    presented = [Presented(PROJECT, ["b", "a"]), Presented("prj_0", ["c"])]
    await exchange.exchange(tx, presented)

    assert consumed == [("prj_0", "c"), (PROJECT, "a"), (PROJECT, "b")]


async def test_a_sign_in_is_counted_when_it_is_committed(core: MemoryCore) -> None:
    registry = CollectorRegistry()
    metrics = SignInMetrics(registry=registry, label=lambda bot: f"label of {bot}")
    with pytest.raises(ZeroDivisionError):
        async with core.db.transaction() as rolled_back:
            metrics.count_on_commit(rolled_back, "confirmed", "messenger_a")
            raise ZeroDivisionError
    async with core.db.transaction() as committed:
        metrics.count_on_commit(committed, "confirmed", "messenger_a")

    name, labels = "msgsvc_auth_sign_ins_total", {"channel": "label of messenger_a"}
    assert registry.get_sample_value(name, {"outcome": "confirmed", **labels}) == 1
    assert registry.get_sample_value(name, {"outcome": "exchanged", "channel": ""}) == 0
