"""Passwords and sessions: who is let in, for how long, and what guessing comes to."""

import asyncio
import time

import pytest

from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import (
    AccountLinks,
    Accounts,
    Audit,
    CredentialStore,
    PasswordChanges,
    SignIn,
)
from msgsvc_dashboard.accounts.models import LinkPurpose, Refused, SignedIn, TooMany
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.accounts.people import PASSWORD, browser, new_account

#: What a link may open an account for.
PURPOSES: tuple[LinkPurpose, ...] = ("sign_in", "password")


async def signed_in(service: Service, **asked: str) -> SignedIn:
    outcome = await service.get(SignIn).by_password("Ann@Shop.example ", PASSWORD, browser(**asked))
    assert isinstance(outcome, SignedIn)
    return outcome


async def test_password_signs_in_and_a_session_ends_with_its_days(
    service: Service, clock: FakeClock
) -> None:
    account = await new_account(service)

    done = await signed_in(service)
    found = await service.get(Accounts).visit(done.token)
    clock.advance(14 * 24 * 3600)

    assert found is not None
    assert found.account.account_id == account.account_id
    assert found.account.signed_in_at_ms == found.created_at_ms
    assert await service.get(Accounts).visit(done.token) is None


@pytest.mark.both_databases
async def test_wrong_password_unknown_email_no_password_and_a_disabled_account_are_refused_alike(
    service: Service,
) -> None:
    account = await new_account(service)
    await new_account(service, "bob@shop.example", password=None)
    gone = await new_account(service, "cat@shop.example")
    async with service.db.transaction() as tx:
        await service.get(Accounts).set_active(tx, gone.account_id, active=False)

    tried = [
        await service.get(SignIn).by_password(email, password, browser())
        for email, password in [
            ("ann@shop.example", PASSWORD + "!"),
            ("nobody@shop.example", PASSWORD),
            ("no address", PASSWORD),
            ("bob@shop.example", PASSWORD),
            ("bob@shop.example", "nobody's password"),
            ("cat@shop.example", PASSWORD),
            ("ann@shop.example", "x" * 100_000),
        ]
    ]
    async with service.db.read() as tx:
        entries = await service.get(Audit).of_account(tx, account.account_id, after=None, most=9)

    assert all(isinstance(outcome, Refused) for outcome in tried)
    assert [entry.action for entry in entries] == ["account.sign_in_failed"] * 2


async def test_an_unknown_email_takes_as_long_as_a_wrong_password(
    make_service: ServiceFactory,
) -> None:
    # Long enough that what differs would show.
    service = await make_service(dashboard={"password_memory_kib": 4096, "password_passes": 4})
    await new_account(service)
    took = {}
    for email in ("ann@shop.example", "nobody@shop.example"):
        await service.get(SignIn).by_password("x@y.example", "makes what is compared", browser())
        began = time.process_time()
        for _ in range(4):
            await service.get(SignIn).by_password(email, "not the password", browser())
        took[email] = time.process_time() - began

    assert took["nobody@shop.example"] > took["ann@shop.example"] / 2


@pytest.mark.both_databases
async def test_a_password_is_hashed_anew_when_its_parameters_change(
    make_service: ServiceFactory,
) -> None:
    service = await make_service()
    account = await new_account(service)
    stronger = await make_service(
        database_url=service.settings.database_url,
        dashboard={"password_memory_kib": 16, "password_passes": 2},
    )

    await signed_in(stronger)
    async with service.db.read() as tx:
        kept = await CredentialStore().find(tx, account.account_id)

    assert kept is not None
    assert "m=16,t=2,p=1" in (kept.password_hash or "")
    await signed_in(service)


async def test_strangers_guesses_stop_strangers_and_not_the_browser_of_the_owner(
    service: Service, clock: FakeClock
) -> None:
    await new_account(service)
    device = (await signed_in(service)).device
    for number in range(9):
        guess = browser(f"198.51.100.{number}")
        assert isinstance(
            await service.get(SignIn).by_password("ann@shop.example", "a wrong one", guess), Refused
        )

    elsewhere = await service.get(SignIn).by_password("ann@shop.example", PASSWORD, browser())
    forged = await service.get(SignIn).by_password(
        "ann@shop.example", PASSWORD, browser(device=device[:-1] + "x")
    )
    home = await signed_in(service, device=device)
    clock.advance(901)

    assert isinstance(elsewhere, TooMany)
    assert 0 < elsewhere.retry_after_s <= 900
    assert isinstance(forged, TooMany)
    assert home.token
    assert await signed_in(service)


async def test_one_address_may_not_try_every_email(make_service: ServiceFactory) -> None:
    service = await make_service(dashboard={"tries_per_address": 3})
    tried = [
        await service.get(SignIn).by_password(f"{name}@shop.example", PASSWORD, browser(address))
        for name, address in [
            ("a", "2001:db8::1"),
            ("b", "2001:db8::2"),
            ("c", "2001:db8::3"),
            ("d", "2001:db8::4"),
            ("e", "2001:db8:0:1::1"),
        ]
    ]

    assert [type(outcome) for outcome in tried] == [Refused, Refused, Refused, TooMany, Refused]


async def test_a_new_password_ends_the_other_sessions(service: Service) -> None:
    account = await new_account(service)
    here, there = await signed_in(service), await signed_in(service)
    hashed = await service.get(PasswordChanges).hashed("another one, quite long", account.email)

    async with service.db.transaction() as tx:
        ended = await service.get(PasswordChanges).set_password(
            tx, account.account_id, hashed, session_id=here.session.session_id
        )

    assert ended == 1
    assert await service.get(Accounts).visit(here.token)
    assert await service.get(Accounts).visit(there.token) is None


async def test_a_new_password_ends_the_links_that_open_the_account(service: Service) -> None:
    account = await new_account(service)
    hashed = await service.get(PasswordChanges).hashed("another one, quite long", account.email)
    async with service.db.transaction() as tx:
        tokens = [
            await service.get(AccountLinks).for_account(tx, account.account_id, purpose)
            for purpose in PURPOSES
        ]

    async with service.db.transaction() as tx:
        await service.get(PasswordChanges).set_password(tx, account.account_id, hashed)

    async with service.db.read() as tx:
        for token in tokens:
            with pytest.raises(NotFound):
                await service.get(AccountLinks).find(tx, token)


@pytest.mark.both_databases
async def test_who_is_disabled_while_their_password_is_compared_has_no_session_afterwards(
    service: Service,
) -> None:
    account = await new_account(service)

    async def disable() -> None:
        async with service.db.transaction() as tx:
            await service.get(Accounts).set_active(tx, account.account_id, active=False)

    tries = [service.get(SignIn).by_password(account.email, PASSWORD, browser()) for _ in range(8)]
    await asyncio.gather(*tries[:4], disable(), *tries[4:])
    async with service.db.transaction() as tx:
        await service.get(Accounts).set_active(tx, account.account_id, active=True)

    async with service.db.read() as tx:
        assert not await service.get(Accounts).sessions_of(tx, account.account_id)


async def test_who_tries_the_old_password_while_it_is_changed_is_not_in_afterwards(
    service: Service,
) -> None:
    account = await new_account(service)
    hashed = await service.get(PasswordChanges).hashed("another one, quite long", account.email)

    async def change() -> None:
        async with service.db.transaction() as tx:
            await service.get(PasswordChanges).set_password(tx, account.account_id, hashed)

    tries = [service.get(SignIn).by_password(account.email, PASSWORD, browser()) for _ in range(8)]
    await asyncio.gather(*tries[:4], change(), *tries[4:])

    async with service.db.read() as tx:
        assert not await service.get(Accounts).sessions_of(tx, account.account_id)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_who_is_disabled_is_out_at_once(service: Service) -> None:
    account = await new_account(service)
    done = await signed_in(service)
    async with service.db.transaction() as tx:
        link = await service.get(AccountLinks).for_account(tx, account.account_id, "sign_in")
        await service.get(Accounts).set_active(tx, account.account_id, active=False)

    assert await service.get(Accounts).visit(done.token) is None
    async with service.db.read() as tx:
        with pytest.raises(Exception, match="was used, or has expired"):
            await service.get(AccountLinks).find(tx, link)


async def test_it_is_noted_once_a_minute_that_a_browser_was_here(
    service: Service, clock: FakeClock
) -> None:
    await new_account(service)
    done = await signed_in(service)
    seen = []
    for seconds in (30, 30, 30):
        clock.advance(seconds)
        await service.get(Accounts).visit(done.token)
        async with service.db.read() as tx:
            session = await service.get(Accounts).session_of(tx, done.token)
        assert session is not None
        seen.append(session.seen_at_ms - session.created_at_ms)

    assert seen == [0, 60_000, 60_000]
