"""Codes of an app: as RFC 6238 has them, each taken once, and what there is without the phone."""

import base64

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.security import DecryptionError
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import PasswordChanges, SecondFactor, SignIn, totp
from msgsvc_dashboard.accounts.models import CodeNeeded, Refused, SignedIn, TooMany
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.accounts.people import PASSWORD, browser, new_account

OLD_KEY = "the-first-key-for-tests-only-the-first-key"
NEW_KEY = "another-key-for-tests-only-another-key"

#: RFC 6238, appendix B, for SHA-1.
RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()
RFC_VECTORS = {
    59: "94287082",
    1111111109: "07081804",
    1111111111: "14050471",
    1234567890: "89005924",
    2000000000: "69279037",
    20000000000: "65353130",
}


def test_codes_are_those_of_the_rfc() -> None:
    made = {second: totp.code_at(RFC_SECRET, second // 30, digits=8) for second in RFC_VECTORS}

    assert made == RFC_VECTORS


def test_a_code_counts_a_step_early_and_a_step_late() -> None:
    now_ms = 1_234_567_890_000
    step = now_ms // 30_000
    found = [
        totp.step_of(RFC_SECRET, totp.code_at(RFC_SECRET, step + away), now_ms)
        for away in (-2, -1, 0, 1, 2)
    ]

    assert found == [None, step - 1, step, step + 1, None]
    assert totp.step_of(RFC_SECRET, "٠٠٥٩٢٤", now_ms) is None
    assert totp.step_of(RFC_SECRET, " 005 924 ", now_ms) == step


async def enrol(service: Service, clock: FakeClock) -> tuple[str, str, list[str]]:
    """(account_id, secret, recovery codes)"""
    account = await new_account(service)
    async with service.db.transaction() as tx:
        secret = await service.get(SecondFactor).offer(tx, account)
    async with service.db.transaction() as tx:
        with pytest.raises(ValidationFailed, match="code"):
            await service.get(SecondFactor).confirm(tx, account.account_id, "000000")
    # What waits for its first code is not asked for yet.
    early = await service.get(SignIn).by_password(account.email, PASSWORD, browser())
    assert isinstance(early, SignedIn)
    async with service.db.transaction() as tx:
        codes = await service.get(SecondFactor).confirm(
            tx, account.account_id, current(secret, clock)
        )
        with pytest.raises(Conflict):
            await service.get(SecondFactor).offer(tx, account)
    return account.account_id, secret, codes


def current(secret: str, clock: FakeClock) -> str:
    return totp.code_at(secret, clock.now_ms() // 30_000)


async def ticket(service: Service) -> str:
    outcome = await service.get(SignIn).by_password("ann@shop.example", PASSWORD, browser())
    assert isinstance(outcome, CodeNeeded)
    return outcome.ticket


@pytest.mark.both_databases
async def test_a_code_is_asked_for_and_taken_once(service: Service, clock: FakeClock) -> None:
    account_id, secret, codes = await enrol(service, clock)
    first = await ticket(service)

    # The code that confirmed it is used up.
    again = await service.get(SignIn).by_code(first, current(secret, clock), browser())
    clock.advance(30)
    code = current(secret, clock)
    done = await service.get(SignIn).by_code(first, code, browser())
    replayed = await service.get(SignIn).by_code(await ticket(service), code, browser())
    recovered = await service.get(SignIn).by_code(
        await ticket(service), codes[3].upper().replace("-", " "), browser()
    )
    spent = await service.get(SignIn).by_code(await ticket(service), codes[3], browser())
    async with service.db.read() as tx:
        left = await service.get(SecondFactor).codes_left(tx, account_id)

    assert len(set(codes)) == 10
    assert [type(each) for each in (again, done, replayed, recovered, spent)] == [
        Refused,
        SignedIn,
        Refused,
        SignedIn,
        Refused,
    ]
    assert left == 9


async def test_codes_can_not_be_guessed_and_tickets_end(service: Service, clock: FakeClock) -> None:
    account_id, secret, _ = await enrol(service, clock)
    clock.advance(30)
    waiting = await ticket(service)
    tried = [await service.get(SignIn).by_code(waiting, "000000", browser()) for _ in range(6)]
    locked = await service.get(SignIn).by_code(waiting, current(secret, clock), browser())
    clock.advance(600)
    late = await service.get(SignIn).by_code(waiting, current(secret, clock), browser())
    clock.advance(301)
    # Who changes the password ends what was begun with the old one.
    stale = await ticket(service)
    clock.advance(1)
    async with service.db.transaction() as tx:
        hashed = await service.get(PasswordChanges).hashed("another one, quite long", "")
        await service.get(PasswordChanges).set_password(tx, account_id, hashed)
    changed = await service.get(SignIn).by_code(stale, current(secret, clock), browser())

    assert [type(each) for each in tried] == [Refused] * 5 + [TooMany]
    assert isinstance(locked, TooMany)
    assert isinstance(late, Refused)
    assert isinstance(changed, Refused)
    assert isinstance(await service.get(SignIn).by_code("forged", "000000", browser()), Refused)


@pytest.mark.both_databases
async def test_without_the_second_factor_the_password_is_enough_again(
    service: Service, clock: FakeClock
) -> None:
    account_id, _secret, codes = await enrol(service, clock)
    waiting = await ticket(service)
    async with service.db.transaction() as tx:
        await service.get(SecondFactor).remove(tx, account_id)

    outcome = await service.get(SignIn).by_password("ann@shop.example", PASSWORD, browser())

    assert isinstance(outcome, SignedIn)
    assert isinstance(await service.get(SignIn).by_code(waiting, codes[0], browser()), Refused)


@pytest.mark.both_databases
async def test_app_and_recovery_codes_outlive_the_secret_key_they_were_made_under(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    before = await make_service(secret_keys=(OLD_KEY,))
    _account_id, secret, codes = await enrol(before, clock)
    await before.stop()
    shared = before.settings.database_url
    both = await make_service(database_url=shared, secret_keys=(NEW_KEY, OLD_KEY))
    clock.advance(3600)
    await settled(both)
    await both.stop()

    after = await make_service(database_url=shared, secret_keys=(NEW_KEY,))
    by_app = await after.get(SignIn).by_code(await ticket(after), current(secret, clock), browser())
    by_recovery = await after.get(SignIn).by_code(await ticket(after), codes[0], browser())
    spent = await after.get(SignIn).by_code(await ticket(after), codes[0], browser())

    assert [type(each) for each in (by_app, by_recovery, spent)] == [SignedIn, SignedIn, Refused]


async def test_codes_that_were_kept_under_the_secret_key_itself_are_taken(
    service: Service, clock: FakeClock
) -> None:
    account_id, _secret, _codes = await enrol(service, clock)
    digest = service.secrets.keyed_hash("recovery code", f"{account_id}:abcdefghjk")
    async with service.db.transaction() as tx:
        await tx.insert("dashboard_account_codes", {"account_id": account_id, "digest": digest})

    taken = await service.get(SignIn).by_code(await ticket(service), "abcde-fghjk", browser())

    assert isinstance(taken, SignedIn)


async def test_without_a_second_factor_there_are_no_codes(service: Service) -> None:
    account = await new_account(service)
    async with service.db.transaction() as tx:
        with pytest.raises(Conflict, match="no second factor"):
            await service.get(SecondFactor).renew_codes(tx, account.account_id)


async def test_a_second_factor_counts_for_its_own_account_alone(service: Service) -> None:
    ann, eve = await new_account(service), await new_account(service, "eve@x.example")
    async with service.db.transaction() as tx:
        for account in (ann, eve):
            await service.get(SecondFactor).offer(tx, account)
        sealed = await _secret(tx, eve.account_id)
        await tx.execute(
            "UPDATE dashboard_accounts SET totp_secret = :sealed WHERE account_id = :account_id",
            {"sealed": sealed, "account_id": ann.account_id},
        )

    async with service.db.read() as tx:
        assert await service.get(SecondFactor).offered(tx, eve.account_id) is not None
        with pytest.raises(DecryptionError, match="another row"):
            await service.get(SecondFactor).offered(tx, ann.account_id)


async def _secret(tx: Tx, account_id: str) -> str:
    return str(
        await tx.fetch_val(
            "SELECT totp_secret FROM dashboard_accounts WHERE account_id = :account_id",
            {"account_id": account_id},
        )
    )
