"""Sign-in by password, code and messenger: who may enter, and which proof each step asks for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    Started,
)
from msgsvc_core.channels.failures import ChannelNotReady
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, RateLimitProject, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import MessengerSignIn, PasswordChanges
from msgsvc_dashboard.accounts.models import (
    BegunRequest,
    Browser,
    CodeNeeded,
    LinkedMessenger,
    Refused,
    SignedIn,
    TooMany,
)
from msgsvc_dashboard.accounts.passwords import Passwords
from msgsvc_dashboard.accounts.questions import Questions
from msgsvc_dashboard.accounts.request_store import link, settle
from msgsvc_dashboard.accounts.service import digest_of
from msgsvc_dashboard.accounts.tickets import CodeTickets, Ticket
from msgsvc_dashboard.team.reauthentication import Reauthentication
from msgsvc_devkit import FakeClock
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.core import PROJECT, BotCall, MemoryCore
from plugins.areas.dashboard.tests.unit.browsers import ANN, page
from plugins.areas.dashboard.tests.unit.signing import HOME, PASSWORD, Ann, actions

# ---- by password ---------------------------------------------------------------------------------


@pytest.mark.parametrize("core", [{"dashboard": {"tries_per_email": 2}}], indirect=True)
async def test_the_password_opens_a_session_and_the_browser_is_known_from_then_on(ann: Ann) -> None:
    await ann.set_password()
    sign_in = ann.parts.sign_in
    done = await sign_in.by_password(" Ann@Shop.example", PASSWORD, HOME)

    assert isinstance(done, SignedIn)
    assert [each.session_id for each in await ann.sessions()] == [done.session.session_id]
    assert await ann.parts.accounts.visit(done.token) is not None
    assert await actions(ann.core) == ["account.signed_in"]
    known = Browser("198.51.100.7", "", done.device)
    assert await sign_in.by_password(ANN.email, "a wrong one, quite long", HOME) == Refused()
    assert isinstance(await sign_in.by_password(ANN.email, PASSWORD, HOME), TooMany)
    assert isinstance(await sign_in.by_password(ANN.email, PASSWORD, known), SignedIn)


async def test_a_password_that_is_changed_while_it_is_compared_lets_nobody_in(
    ann: Ann, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fits_slowly(passwords: Passwords, kept: str | None, password: str) -> bool:
        found = await fits(passwords, kept, password)
        await ann.set_password("another one, quite long")
        return found

    fits = Passwords.fits
    await ann.set_password()
    monkeypatch.setattr(Passwords, "fits", fits_slowly)

    assert await ann.parts.sign_in.by_password(ANN.email, PASSWORD, HOME) == Refused()
    assert await ann.sessions() == []


# ---- the second factor ---------------------------------------------------------------------------


async def ticket_of(ann: Ann) -> str:
    """What she gets for her password, when a code is needed too."""
    outcome = await ann.parts.sign_in.by_password(ANN.email, PASSWORD, HOME)
    assert isinstance(outcome, CodeNeeded)
    return outcome.ticket


async def test_a_ticket_ends_with_its_minutes_and_with_the_password(ann: Ann) -> None:
    sign_in = ann.parts.sign_in
    await ann.set_password()
    _, codes = await ann.enrol()
    ticket = await ticket_of(ann)
    assert sign_in.is_waiting(ticket)
    await ann.set_password("another one, quite long")
    changed = await sign_in.by_code(ticket, codes[0], HOME)
    ann.core.clock.advance(601)

    assert changed == Refused()
    assert not sign_in.is_waiting(ticket)
    assert not sign_in.is_waiting("forged")


async def test_who_is_disabled_before_the_code_is_not_let_in_by_it(ann: Ann) -> None:
    await ann.set_password()
    _, codes = await ann.enrol()
    ticket = await ticket_of(ann)
    await ann.disable()

    assert await ann.parts.sign_in.by_code(ticket, codes[0], HOME) == Refused()
    assert await ann.sessions() == []
    assert await actions(ann.core) == ["account.sign_in_failed"]


def test_a_ticket_says_who_and_how_and_is_sealed() -> None:
    secrets = SecretBox(["a-key-for-tests-only-a-key-for-tests-only"])
    tickets = CodeTickets(clock=FakeClock(), secrets=secrets)
    ticket = Ticket("acc_ann", "password", 7)

    assert tickets.read(tickets.issue(ticket)) == ticket
    assert "acc_ann" not in tickets.issue(ticket)
    assert tickets.read(secrets.encrypt("[]")) is None


async def test_a_second_factor_counts_once_its_first_code_was_entered(ann: Ann, tx: Tx) -> None:
    factor, account_id = ann.parts.second_factor, ann.account_id
    secret = await factor.offer(tx, ann.account)
    with pytest.raises(ValidationFailed, match="code"):
        await factor.confirm(tx, account_id, "000000")
    assert await factor.take(tx, account_id, ann.code(secret)) is None
    assert await factor.offered(tx, account_id) == secret
    codes = await factor.confirm(tx, account_id, ann.code(secret))

    assert len(set(codes)) == 10
    assert await factor.offered(tx, account_id) is None
    with pytest.raises(Conflict):
        await factor.offer(tx, ann.account)
    with pytest.raises(Conflict):
        await factor.confirm(tx, account_id, ann.code(secret))


async def test_new_recovery_codes_take_the_place_of_the_old_ones(ann: Ann) -> None:
    _, old = await ann.enrol()
    async with ann.core.db.transaction() as tx:
        new = await ann.parts.second_factor.renew_codes(tx, ann.account_id)

        assert await ann.parts.second_factor.take(tx, ann.account_id, old[0]) is None
        assert await ann.parts.second_factor.take(tx, ann.account_id, new[0]) == "recovery"


# ---- new passwords, and whose browser it is ------------------------------------------------------


@pytest.mark.parametrize(
    "password",
    ["too short", "x" * 129, "Password123", ANN.email, "aaaaaaaaaaaa", "1234567890"],
)
async def test_what_is_soon_guessed_is_no_password(core: MemoryCore, password: str) -> None:
    with pytest.raises(ValidationFailed, match="password"):
        await core.get(PasswordChanges).hashed(password, ANN.email)


async def test_an_owner_is_known_by_the_password_and_a_thief_of_the_browser_has_five_tries(
    ann: Ann,
) -> None:
    await ann.set_password()
    checks = ann.parts.owner_checks
    tried = [await checks.is_password(ann.account_id, "a wrong one", HOME) for _ in range(4)]

    assert tried == [False] * 4
    assert await checks.is_password(ann.account_id, PASSWORD, HOME) is True
    assert isinstance(await checks.is_password(ann.account_id, PASSWORD, HOME), TooMany)


async def test_an_owners_code_is_guessed_no_more_often_than_a_password(ann: Ann) -> None:
    _, codes = await ann.enrol()
    checks = ann.parts.owner_checks
    tried = [await checks.is_code(ann.account_id, f"00000{n}", HOME) for n in range(5)]

    assert tried == [False] * 5
    assert isinstance(await checks.is_code(ann.account_id, codes[0], HOME), TooMany)


async def test_before_a_change_the_password_is_asked_for(ann: Ann) -> None:
    await ann.set_password()
    core, mine = ann.core, replace(ann.account, has_password=True)
    owner = core.get(Reauthentication)
    await owner.check(page(core, None, account=mine, password=PASSWORD))

    with pytest.raises(ValidationFailed, match="wrong"):
        await owner.check(page(core, None, account=mine, password="a guess", code="000000"))
    for _ in range(3):
        await owner.check(page(core, None, account=mine, password=PASSWORD))
    with pytest.raises(RateLimitProject, match="Too many"):
        await owner.check(page(core, None, account=mine, password=PASSWORD))


async def test_without_a_password_a_code_is_asked_for(ann: Ann) -> None:
    _, codes = await ann.enrol()
    core, mine = ann.core, replace(ann.account, has_totp=True)
    owner = core.get(Reauthentication)
    await owner.check(page(core, None, account=mine, code=codes[0]))

    with pytest.raises(ValidationFailed, match="already used"):
        await owner.check(page(core, None, account=mine, code=codes[0]))


async def test_with_neither_it_is_enough_to_have_signed_in_just_now_in_this_browser(
    ann: Ann,
) -> None:
    here, _token = await ann.open_session()
    asked = replace(page(ann.core, None, account=ann.account), session_id=here.session_id)
    owner = ann.core.get(Reauthentication)
    await owner.check(asked)
    ann.core.clock.advance(15 * 60)

    with pytest.raises(ValidationFailed, match="Sign in again"):
        await owner.check(asked)
    await ann.open_session()
    with pytest.raises(ValidationFailed, match="Sign in again"):
        await owner.check(asked)


# ---- by a messenger ------------------------------------------------------------------------------


class Bot:
    """The bot, what the person with the id 7 says to it, and a browser that waits."""

    def __init__(self, ann: Ann, tx: Tx, begun: BegunRequest) -> None:
        self.core, self.tx, self.begun = ann.core, tx, begun
        self._rules = {rule.on: rule.handler for rule in ann.plugin.get(Questions).rules()}

    async def start(self) -> bool | None:
        update = Started(
            update_id="1",
            chat_id="c1",
            user=ChannelUser("7", "Ann"),
            payload=f"dsh_{self.begun.token}",
        )
        return await self._rules["start"](self.core.inbound(self.tx, update))

    async def press(self, text: str, *, by: str = "7") -> bool | None:
        """Presses a button of the question that was asked last."""
        asked = (await self.questions())[-1].message
        assert asked is not None
        [data] = [each.data for row in asked.buttons for each in row if each.text == text]
        update = ButtonPressed(
            update_id="2",
            chat_id="c1",
            user=ChannelUser(by, "Ann", username="ann"),
            data=data or "",
            message_ref="m1",
            button_ref="b1",
        )
        return await self._rules["button"](self.core.inbound(self.tx, update))

    async def questions(self) -> Sequence[BotCall]:
        return [call for call in await self.core.calls(self.tx) if call.call == "send"]

    async def status(self) -> str:
        """That of the browser that waits."""
        waiting = await self.core.get(MessengerSignIn).waiting(self.tx, self.begun.secret)
        assert waiting is not None
        return waiting.status


AT = {"base_url": "https://msgsvc.example/here"}


@pytest.fixture
async def bot(ann: Ann, tx: Tx) -> Bot:
    """A browser has waited for two minutes to be signed in by Ann's messenger."""
    await link(tx, LinkedMessenger("messenger_a", "7", ann.account_id, "Ann", 0))
    begun = await ann.core.get(MessengerSignIn).begin(tx, "sign_in", HOME)
    ann.core.clock.advance(120)
    return Bot(ann, tx, begun)


@pytest.mark.parametrize("core", [AT], indirect=True)
async def test_the_bot_offers_three_numbers_and_says_who_asks(bot: Bot) -> None:
    assert await bot.start() is True
    [question] = await bot.questions()
    assert question.message is not None
    picks, cancel = question.message.buttons
    assert str(bot.begun.number) in [each.text for each in picks]
    assert (len(picks), [each.text for each in cancel]) == (3, ["Cancel"])
    assert "msgsvc.example?" in question.message.text
    assert "203.0.113.7" in question.message.text
    assert "2 minutes ago" in question.message.text


async def test_who_is_not_linked_is_asked_nothing(ann: Ann, bot: Bot) -> None:
    await ann.parts.messenger_sign_in.unlink(bot.tx, ann.account_id, "messenger_a", "7")

    assert await bot.start() is True
    [told] = await bot.questions()
    assert told.message is not None
    assert "not linked to an account" in told.message.text
    assert told.message.buttons == ()


@pytest.mark.parametrize("status", ["denied", "used", "expired"])
async def test_what_waits_no_more_is_left_to_others(bot: Bot, status: str) -> None:
    if status == "expired":
        bot.core.clock.advance(600)
    else:
        digest = digest_of(bot.begun.token)
        await settle(bot.tx, digest, "pending", status, None)

    assert await bot.start() is False
    assert await bot.questions() == []


async def test_a_projects_own_bot_signs_nobody_in(bot: Bot) -> None:
    own = ChannelIdentity("messenger_a", "messenger_a", PROJECT)
    bot.core.recording().identity = own

    assert await bot.start() is False


async def test_the_right_number_signs_in_who_was_asked_and_nobody_else(ann: Ann, bot: Bot) -> None:
    await bot.start()

    assert await bot.press(str(bot.begun.number), by="8") is False
    assert await bot.status() == "pending"
    assert await bot.press(str(bot.begun.number)) is True
    assert await bot.status() == "confirmed"
    assert await ann.parts.messenger_sign_in.claim(bot.tx, bot.begun.secret) == ann.account_id


async def test_a_linked_messenger_is_in_the_audit_log(ann: Ann, tx: Tx) -> None:
    begun = await ann.parts.messenger_sign_in.begin(tx, "link", HOME, ann.account_id)
    bot = Bot(ann, tx, begun)
    await bot.start()
    await bot.press(str(begun.number))
    found = await ann.parts.audit.of_account(tx, ann.account_id, after=None, most=9)

    assert [(each.action, each.target) for each in found] == [
        ("account.messenger_linked", "messenger_a 7")
    ]


class SilentChannel(RecordingChannel):
    """Has not told its name yet."""

    def deep_link(self, payload: str) -> str:
        raise ChannelNotReady


class Silent:
    """A plugin with a kind of channels."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        return [
            ChannelKind("silent", Section, lambda _core, identity, _own: SilentChannel(identity))
        ]


BOTS = {"messenger_a": {"plugin": "recording"}, "messenger_b": {"plugin": "silent"}}


@pytest.mark.parametrize(
    "core", [{"channels": BOTS, "extra_plugins": [("silent", Silent())]}], indirect=True
)
async def test_the_link_to_the_bot_is_not_what_the_browser_is_signed_in_by(
    core: MemoryCore, tx: Tx
) -> None:
    sign_in = core.get(MessengerSignIn)
    begun = await sign_in.begin(tx, "sign_in", Browser("203.0.113.7", "x" * 600))

    row = await tx.fetch_one("SELECT * FROM dashboard_account_requests")
    assert row is not None
    assert row["digest"] == digest_of(begun.token)
    assert row["browser_digest"] == digest_of(begun.secret)
    assert (row["expires_at_ms"] - core.clock.now_ms(), len(row["user_agent"])) == (600_000, 512)
    [way] = sign_in.ways(begun.token)
    assert (way.channel, begun.token in way.link) == ("messenger_a", True)


async def test_a_messenger_of_somebody_else_is_not_unlinked(ann: Ann, bot: Bot) -> None:
    with pytest.raises(NotFound):
        await ann.parts.messenger_sign_in.unlink(bot.tx, ann.account_id, "messenger_a", "8")
