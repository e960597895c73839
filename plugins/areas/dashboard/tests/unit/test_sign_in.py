"""Passwords, codes and messengers: who is let in, and what is asked of them, built from fakes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    Started,
)
from msgsvc_core.channels.failures import ChannelNotReady
from msgsvc_core.config.settings import Section
from msgsvc_core.kernel.errors import Conflict, NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import (
    Audit,
    MessengerSignIn,
    SecondFactor,
)
from msgsvc_dashboard.accounts.models import (
    Browser,
    CodeNeeded,
    Outcome,
    Refused,
    SignedIn,
    TooMany,
)
from msgsvc_dashboard.accounts.passwords import Passwords
from msgsvc_dashboard.accounts.questions import Questions
from msgsvc_dashboard.accounts.service import digest_of
from msgsvc_dashboard.accounts.tickets import CodeTickets, Ticket
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_dashboard.team.reauthentication import Reauthentication
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.fakes import (
    FakeInboundContext,
    FakeTx,
    fake_secrets,
    fake_settings,
    inbound_context,
)
from msgsvc_devkit.services import SECRET_KEY
from plugins.areas.dashboard.tests.unit.browsers import ANN, page, session
from plugins.areas.dashboard.tests.unit.fakes import AccountsInMemory
from plugins.areas.dashboard.tests.unit.signing import HOME, PASSWORD, SETTINGS, Signing


class SlowPasswords(Passwords):
    """Something else happens while a password is compared."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(SETTINGS)
        self._meanwhile = meanwhile

    async def fits(self, kept: str | None, password: str) -> bool:
        found = await super().fits(kept, password)
        await self._meanwhile()
        return found


# ---- by password ---------------------------------------------------------------------------------


async def test_the_password_opens_a_session_and_the_browser_is_known_from_then_on() -> None:
    ann = Signing()
    await ann.set_password()
    done = await ann.sign_in().by_password(" Ann@Shop.example", PASSWORD, HOME)

    assert isinstance(done, SignedIn)
    assert await ann.accounts.visit(done.token) == done.session
    assert ann.noted == ["account.signed_in"]
    known = Browser("198.51.100.7", "", done.device)
    for _ in range(SETTINGS.tries_per_email):
        await ann.throttle.password(ANN.email, ANN.account_id, HOME)
    assert isinstance(await ann.sign_in().by_password(ANN.email, PASSWORD, HOME), TooMany)
    assert isinstance(await ann.sign_in().by_password(ANN.email, PASSWORD, known), SignedIn)


@pytest.mark.parametrize(
    ("email", "password", "status"),
    [
        (ANN.email, "a wrong one, quite long", "active"),
        ("nobody@shop.example", PASSWORD, "active"),
        ("no address", PASSWORD, "active"),
        (ANN.email, PASSWORD, "disabled"),
    ],
)
async def test_nobody_is_told_what_was_wrong_and_it_is_noted(
    email: str, password: str, status: str
) -> None:
    ann = Signing()
    await ann.set_password()
    await ann.accounts.change(FakeTx(), ANN.account_id, status=status)
    outcome = await ann.sign_in().by_password(email, password, HOME)

    assert outcome == Refused()
    assert ann.noted == ["account.sign_in_failed"]
    assert ann.accounts.sessions == {}


async def test_a_password_that_is_changed_while_it_is_compared_lets_nobody_in() -> None:
    ann = Signing()
    await ann.set_password()
    ann.passwords = SlowPasswords(lambda: ann.set_password("another one, quite long"))

    assert await ann.sign_in().by_password(ANN.email, PASSWORD, HOME) == Refused()
    assert ann.accounts.sessions == {}


async def test_a_password_of_older_parameters_is_hashed_anew() -> None:
    ann = Signing()
    await ann.set_password()
    ann.passwords = Passwords(AccountSettings(password_memory_kib=16, password_passes=1))
    await ann.sign_in().by_password(ANN.email, PASSWORD, HOME)

    assert "m=16,t=1" in (ann.credentials.by_id[ANN.account_id].password_hash or "")


# ---- the second factor ---------------------------------------------------------------------------


async def test_after_the_password_a_code_is_asked_for_and_taken_once() -> None:
    ann = Signing()
    await ann.set_password()
    secret, codes = await ann.enrol()
    ann.clock.advance(30)

    async def enter(code: str) -> Outcome:
        first = await ann.sign_in().by_password(ANN.email, PASSWORD, HOME)
        assert isinstance(first, CodeNeeded)
        return await ann.sign_in().by_code(first.ticket, code, HOME)

    code, recovery = ann.code(secret), codes[0].upper().replace("-", " ")
    outcomes = [await enter(each) for each in (code, code, recovery, recovery)]
    assert [type(each) for each in outcomes] == [SignedIn, Refused, SignedIn, Refused]
    assert await ann.second_factor.codes_left(FakeTx(), ANN.account_id) == 9


async def test_a_ticket_ends_with_its_minutes_and_with_the_password() -> None:
    ann = Signing()
    await ann.set_password()
    _, codes = await ann.enrol()
    first = await ann.sign_in().by_password(ANN.email, PASSWORD, HOME)
    assert isinstance(first, CodeNeeded)
    assert ann.sign_in().is_waiting(first.ticket)
    await ann.set_password("another one, quite long")
    changed = await ann.sign_in().by_code(first.ticket, codes[0], HOME)
    ann.clock.advance(601)

    assert changed == Refused()
    assert not ann.sign_in().is_waiting(first.ticket)
    assert not ann.sign_in().is_waiting("forged")


async def test_who_is_disabled_before_the_code_is_not_let_in_by_it() -> None:
    ann = Signing()
    await ann.set_password()
    _, codes = await ann.enrol()
    first = await ann.sign_in().by_password(ANN.email, PASSWORD, HOME)
    assert isinstance(first, CodeNeeded)
    await ann.accounts.change(FakeTx(), ANN.account_id, status="disabled")

    assert await ann.sign_in().by_code(first.ticket, codes[0], HOME) == Refused()
    assert ann.accounts.sessions == {}
    assert ann.noted == ["account.sign_in_failed"]


def test_a_ticket_says_who_and_how_and_is_sealed() -> None:
    tickets = CodeTickets(clock=FakeClock(), secrets=fake_secrets())
    ticket = Ticket("acc_ann", "password", 7)

    assert tickets.read(tickets.issue(ticket)) == ticket
    assert "acc_ann" not in tickets.issue(ticket)
    assert tickets.read(fake_secrets().encrypt("[]")) is None


async def test_a_second_factor_counts_once_its_first_code_was_entered() -> None:
    ann, tx = Signing(), FakeTx()
    secret = await ann.second_factor.offer(tx, ANN)
    with pytest.raises(ValidationFailed, match="code"):
        await ann.second_factor.confirm(tx, ANN.account_id, "000000")
    assert await ann.second_factor.take(tx, ANN.account_id, ann.code(secret)) is None
    assert await ann.second_factor.offered(tx, ANN.account_id) == secret
    codes = await ann.second_factor.confirm(tx, ANN.account_id, ann.code(secret))

    assert len(set(codes)) == 10
    assert await ann.second_factor.offered(tx, ANN.account_id) is None
    with pytest.raises(Conflict):
        await ann.second_factor.offer(tx, ANN)
    with pytest.raises(Conflict):
        await ann.second_factor.confirm(tx, ANN.account_id, ann.code(secret))


async def test_new_recovery_codes_take_the_place_of_the_old_ones() -> None:
    ann, tx = Signing(), FakeTx()
    with pytest.raises(Conflict, match="no second factor"):
        await ann.second_factor.renew_codes(tx, ANN.account_id)
    _, old = await ann.enrol()
    new = await ann.second_factor.renew_codes(tx, ANN.account_id)

    assert await ann.second_factor.take(tx, ANN.account_id, old[0]) is None
    assert await ann.second_factor.take(tx, ANN.account_id, new[0]) == "recovery"


async def test_a_second_factor_works_after_its_secret_is_under_another_key() -> None:
    ann, tx = Signing(), FakeTx()
    secret, codes = await ann.enrol()
    both = SecretBox(["another-key-for-tests-only-another-key", SECRET_KEY])
    before = ann.credentials.by_id[ANN.account_id].totp_secret
    assert before is not None
    after = both.renewed(before, ("dashboard_accounts.totp_secret", ANN.account_id))
    ann.credentials.renew_totp(ANN.account_id, after)
    alone = SecretBox(["another-key-for-tests-only-another-key"])
    newest = SecondFactor(clock=ann.clock, secrets=alone, credentials=ann.credentials)

    assert after not in (None, before)
    assert await newest.take(tx, ANN.account_id, codes[0]) == "recovery"
    ann.clock.advance(30)
    assert await newest.take(tx, ANN.account_id, ann.code(secret)) == "app"


# ---- new passwords, and whose browser it is ------------------------------------------------------


@pytest.mark.parametrize(
    "password",
    ["too short", "x" * 129, "Password123", ANN.email, "aaaaaaaaaaaa", "1234567890"],
)
async def test_what_is_soon_guessed_is_no_password(password: str) -> None:
    with pytest.raises(ValidationFailed, match="password"):
        await Signing().password_changes().hashed(password, ANN.email)


async def test_a_new_password_ends_other_sessions_links_and_what_waits_for_a_yes() -> None:
    ann, tx = Signing(), FakeTx(answers=[1])
    here, _ = await ann.accounts.open_session(tx, ANN.account_id, ip="", user_agent="")
    await ann.accounts.open_session(tx, ANN.account_id, ip="", user_agent="")
    await ann.links.for_account(tx, ANN.account_id, "sign_in")
    ended = await ann.password_changes().set_password(
        tx, ANN.account_id, "hashed", session_id=here.session_id
    )

    assert ended == 1
    assert await ann.accounts.sessions_of(tx, ANN.account_id) == [here]
    assert ann.links.by_token == {}
    assert "DELETE FROM dashboard_account_requests" in tx.statements[0][0]


async def test_a_reset_leaves_no_messenger_either() -> None:
    ann, tx = Signing(), FakeTx(answers=[1, 0])
    await ann.accounts.open_session(tx, ANN.account_id, ip="", user_agent="")
    await ann.password_changes().reset(tx, ANN.account_id)

    assert ann.accounts.sessions == {}
    assert "DELETE FROM dashboard_account_messengers" in tx.statements[0][0]


async def test_an_owner_is_known_by_the_password_and_a_thief_of_the_browser_has_five_tries() -> (
    None
):
    ann = Signing()
    await ann.set_password()
    checks = ann.owner_checks()
    tried = [await checks.is_password(ANN.account_id, "a wrong one", HOME) for _ in range(4)]

    assert tried == [False] * 4
    assert await checks.is_password(ANN.account_id, PASSWORD, HOME) is True
    assert isinstance(await checks.is_password(ANN.account_id, PASSWORD, HOME), TooMany)


async def test_an_owners_code_is_guessed_no_more_often_than_a_password() -> None:
    ann = Signing()
    _, codes = await ann.enrol()
    checks = ann.owner_checks()
    tried = [await checks.is_code(ANN.account_id, f"00000{n}", HOME) for n in range(5)]

    assert tried == [False] * 5
    assert isinstance(await checks.is_code(ANN.account_id, codes[0], HOME), TooMany)


def reauthentication(ann: Signing) -> Reauthentication:
    return Reauthentication(
        clock=ann.clock, db=ann.db, accounts=ann.accounts, owner_checks=ann.owner_checks()
    )


async def test_before_a_change_the_password_is_asked_for() -> None:
    ann = Signing()
    await ann.set_password()
    mine, owner = replace(ANN, has_password=True), reauthentication(ann)
    await owner.check(page(None, account=mine, password=PASSWORD))

    with pytest.raises(ValidationFailed, match="wrong"):
        await owner.check(page(None, account=mine, password="a guess", code="000000"))
    for _ in range(3):
        await owner.check(page(None, account=mine, password=PASSWORD))
    with pytest.raises(RateLimitProject, match="Too many"):
        await owner.check(page(None, account=mine, password=PASSWORD))


async def test_without_a_password_a_code_is_asked_for() -> None:
    ann = Signing()
    _, codes = await ann.enrol()
    mine, owner = replace(ANN, has_totp=True), reauthentication(ann)
    await owner.check(page(None, account=mine, code=codes[0]))

    with pytest.raises(ValidationFailed, match="already used"):
        await owner.check(page(None, account=mine, code=codes[0]))


async def test_with_neither_it_is_enough_to_have_signed_in_just_now_in_this_browser() -> None:
    ann = Signing()
    now_ms = ann.clock.now_ms()
    ann.accounts.sessions["token"] = session(session_id="ase_1", created_at_ms=now_ms)
    owner = reauthentication(ann)
    await owner.check(page(None))
    ann.clock.advance(15 * 60)

    with pytest.raises(ValidationFailed, match="Sign in again"):
        await owner.check(page(None))
    ann.accounts.sessions["other"] = session(session_id="ase_2", created_at_ms=ann.clock.now_ms())
    with pytest.raises(ValidationFailed, match="Sign in again"):
        await owner.check(page(None))


# ---- by a messenger ------------------------------------------------------------------------------

TOKEN = "a" * 22
NUMBER = 47


def asked(purpose: str = "sign_in", status: str = "pending", account_id: str | None = None) -> Any:
    """The row of a browser that waits."""
    return {
        "digest": digest_of(TOKEN),
        "purpose": purpose,
        "account_id": account_id,
        "status": status,
        "ip": "203.0.113.7",
        "user_agent": "Firefox",
        "created_at_ms": FakeClock().now_ms() - 120_000,
        "expires_at_ms": FakeClock().now_ms() + 480_000,
        "number": NUMBER,
    }


#: Whose messenger it is that asks.
ANNS = {"account_id": ANN.account_id}


class Asking:
    """The bot, and what is said to it by the person with the id 7."""

    def __init__(self) -> None:
        self.core: FakeContext = plugin_context()
        self.audit = Audit(clock=self.core.clock)
        self.questions = Questions(
            clock=self.core.clock,
            secrets=self.core.secrets,
            base_url="https://msgsvc.example/here",
            channels=self.core.channels,
            accounts=AccountsInMemory(ANN),
            audit=self.audit,
        )

    def chat(self, update: Started | ButtonPressed, *answers: Any) -> FakeInboundContext:
        found = inbound_context(update, channels=self.core.channels, outbox=self.core.outbox)
        found.tx = FakeTx(answers=answers)
        return found

    async def start(self, *answers: Any) -> bool | None:
        user = ChannelUser("7", "Ann")
        update = Started(update_id="1", chat_id="c1", user=user, payload=f"dsh_{TOKEN}")
        return await self.questions.rules()[0].handler(self.chat(update, *answers))

    async def press(self, text: str, *answers: Any, by: str = "7") -> FakeInboundContext | None:
        """Presses a button of the question that was asked last; None if that is not handled."""
        buttons = [each for row in self.core.outbox.sent[-1].message.buttons for each in row]
        [data] = [each.data for each in buttons if each.text == text]
        update = ButtonPressed(
            update_id="2",
            chat_id="c1",
            user=ChannelUser(by, "Ann", username="ann"),
            data=data or "",
            message_ref="m1",
            button_ref="b1",
        )
        chat = self.chat(update, *answers)
        return chat if await self.questions.rules()[1].handler(chat) else None

    @property
    def said(self) -> str:
        return self.core.outbox.edited[-1].message.text


async def test_the_bot_offers_three_numbers_and_says_who_asks() -> None:
    bot = Asking()

    assert await bot.start([asked()], [ANNS]) is True
    [question] = bot.core.outbox.sent
    picks, cancel = question.message.buttons
    assert str(NUMBER) in [each.text for each in picks]
    assert (len(picks), [each.text for each in cancel]) == (3, ["Cancel"])
    assert "msgsvc.example" in question.message.text
    assert "203.0.113.7" in question.message.text
    assert "2 minutes ago" in question.message.text


async def test_who_is_not_linked_is_asked_nothing() -> None:
    bot = Asking()

    assert await bot.start([asked()], []) is True
    [told] = bot.core.outbox.sent
    assert "not linked to an account" in told.message.text
    assert told.message.buttons == ()


@pytest.mark.parametrize("rows", [[], [asked(status="denied")], [asked(status="used")]])
async def test_what_waits_no_more_is_left_to_others(rows: list[Any]) -> None:
    bot = Asking()

    assert await bot.start(rows) is False
    assert bot.core.outbox.sent == []


async def test_a_projects_own_bot_signs_nobody_in() -> None:
    bot = Asking()
    own = ChannelIdentity("messenger_a", "messenger_a", "prj_1")
    bot.core.channels.recording("messenger_a").identity = own

    assert await bot.start([asked()]) is False


async def test_the_right_number_signs_in_who_was_asked_and_nobody_else() -> None:
    bot = Asking()
    await bot.start([asked()], [ANNS])

    assert await bot.press(str(NUMBER), by="8") is None
    chat = await bot.press(str(NUMBER), [asked()], [ANNS], 1)
    assert chat is not None
    settled = chat.tx.statements[-1][1]
    assert (settled["before"], settled["after"]) == ("pending", "confirmed")
    assert settled["account_id"] == ANN.account_id
    assert "You are signed in" in bot.said


async def test_a_messenger_that_was_unlinked_since_the_question_signs_nobody_in() -> None:
    bot = Asking()
    await bot.start([asked()], [ANNS])
    chat = await bot.press(str(NUMBER), [asked()], [])

    assert chat is not None
    assert "not linked to an account" in bot.said
    assert not any(sql.startswith("UPDATE") for sql, _ in chat.tx.statements)


async def test_one_wrong_number_ends_it() -> None:
    bot = Asking()
    await bot.start([asked()], [ANNS])
    picks = [each.text for each in bot.core.outbox.sent[-1].message.buttons[0]]
    wrong = next(each for each in picks if each != str(NUMBER))
    chat = await bot.press(wrong, [asked()], 1)

    assert chat is not None
    assert chat.tx.statements[-1][1]["after"] == "denied"
    assert "not the number" in bot.said
    await bot.press("Cancel", [asked()], 0)
    assert "no longer valid" in bot.said


@pytest.mark.parametrize(("is_free", "answer"), [(1, "From now on"), (0, "another account")])
async def test_a_messenger_is_linked_to_one_account(is_free: int, answer: str) -> None:
    bot = Asking()
    request = asked("link", account_id=ANN.account_id)
    await bot.start([request])
    assert ANN.email in bot.core.outbox.texts[-1]
    chat = await bot.press(str(NUMBER), [request], 1, is_free)

    assert chat is not None
    assert answer in bot.said
    assert [row["target"] for row in chat.tx.rows["dashboard_audit"]] == ["messenger_a 7"] * is_free


class SilentChannel(RecordingChannel):
    """Has not told its name yet."""

    def deep_link(self, payload: str) -> str:
        raise ChannelNotReady


SILENT = ChannelKind("silent", Section, lambda _core, identity, _own: SilentChannel(identity))
BOTS = {"messenger_a": {"plugin": "recording"}, "messenger_b": {"plugin": "silent"}}


def messenger_sign_in(core: FakeContext) -> MessengerSignIn:
    return MessengerSignIn(clock=core.clock, settings=SETTINGS, channels=core.channels)


async def test_the_link_to_the_bot_is_not_what_the_browser_is_signed_in_by() -> None:
    core, tx = plugin_context(kinds=[SILENT], config=fake_settings(channels=BOTS)), FakeTx()
    begun = await messenger_sign_in(core).begin(tx, "sign_in", Browser("203.0.113.7", "x" * 600))

    [row] = tx.rows["dashboard_account_requests"]
    assert row["digest"] == digest_of(begun.token)
    assert row["browser_digest"] == digest_of(begun.secret)
    assert (row["expires_at_ms"] - core.clock.now_ms(), len(row["user_agent"])) == (600_000, 512)
    [way] = messenger_sign_in(core).ways(begun.token)
    assert (way.channel, begun.token in way.link) == ("messenger_a", True)


@pytest.mark.parametrize(
    ("row", "account_id"),
    [
        (asked(status="confirmed", account_id=ANN.account_id), ANN.account_id),
        (asked(account_id=None), None),
        (asked("link", "confirmed", ANN.account_id), None),
    ],
)
async def test_a_browser_is_signed_in_by_a_picked_number_once(
    row: Any, account_id: str | None
) -> None:
    sign_in = messenger_sign_in(plugin_context())

    assert await sign_in.claim(FakeTx(answers=[[row], 1]), "secret") == account_id
    assert await sign_in.claim(FakeTx(answers=[[row], 0]), "secret") is None


async def test_a_messenger_of_somebody_else_is_not_unlinked() -> None:
    sign_in = messenger_sign_in(plugin_context())
    await sign_in.unlink(FakeTx(answers=[1]), ANN.account_id, "messenger_a", "7")

    with pytest.raises(NotFound):
        await sign_in.unlink(FakeTx(answers=[0]), ANN.account_id, "messenger_a", "8")
