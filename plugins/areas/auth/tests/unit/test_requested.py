"""Sign-ins that other plugins start, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_auth.page_requests import PageRequest, read_token
from msgsvc_auth.requested.question_limits import QuestionLimits
from msgsvc_auth.requested.requesters import Requester
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import ButtonPressed, Capabilities, ChannelUser
from msgsvc_core.kernel.errors import (
    Conflict,
    NotFound,
    RateLimitProject,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.plugins.sign_ins import DirectSignIn, PageSignIn
from msgsvc_devkit.fakes import PROJECT, FakeInboundContext, FakeTx, inbound_context
from plugins.areas.auth.tests.unit.signing_in import (
    NOW_MS,
    SESSION_ID,
    Auth,
    confirmed,
    issued,
    pending,
    row_of,
    slot,
)

GRAFANA = PageSignIn(
    project_id=PROJECT,
    source="oidc",
    source_id="1",
    requester_name="Grafana",
    requester_url="https://grafana.example/login",
    return_url="https://msgsvc.example/oidc/return",
    state="abc",
)
PAYMENT = DirectSignIn(
    project_id=PROJECT,
    source="oidc",
    source_id="2",
    subscriber_id="sub_1",
    requester_name="Bank",
    requester_url="https://bank.example/",
    text="Payment of 20 EUR",
)

#: What a session has of the plugin that asked.
DIRECT = {
    "source": "oidc",
    "source_id": "2",
    "subscriber_id": "sub_1",
    "requester_name": "Bank",
    "requester_url": "https://bank.example/",
}
ON_PAGE = {**DIRECT, "request_id": "arq_1"}


class Bank(Auth):
    """A plugin's question to the person `sub_1`."""

    def __init__(self, settings: AuthSettings | None = None) -> None:
        super().__init__(settings)
        self.core.subscribers.person("sub_1", user_id="7", chat_id="c1")

    async def ask(self, *answers: Any, **changed: Any) -> FakeTx:
        """The transaction of the question, to which the database gives these answers."""
        tx = FakeTx(answers=[*slot(), *(answers or [[]])])
        await self.questions().ask(tx, replace(PAYMENT, **changed))
        return tx

    async def press(self, text: str, *answers: Any, by: str = "7") -> FakeInboundContext | None:
        """Presses a button of the question; None if that is not handled."""
        buttons = [each for row in self.core.outbox.sent[-1].message.buttons for each in row]
        [data] = [each.data for each in buttons if each.text == text]
        update = ButtonPressed(
            update_id="2",
            chat_id="c1",
            user=ChannelUser(by, "Ann"),
            data=data or "",
            message_ref="m1",
            button_ref="b1",
        )
        channels, outbox = self.core.channels, self.core.outbox
        ctx = inbound_context(update, channels=channels, outbox=outbox, project_id=None)
        ctx.tx = FakeTx(answers=answers)
        return ctx if await self.bot().rules()[1].handler(ctx) else None


async def test_a_page_waits_for_as_long_as_the_setting_says() -> None:
    shop, tx = Auth(AuthSettings(request_lifetime_s=60)), FakeTx()

    url = await shop.requested_pages().open(tx, GRAFANA)

    [row] = tx.rows["auth_requests"]
    path = url.removeprefix("http://msgsvc.test/login/")
    token = read_token(path)
    assert (row["created_at_ms"], row["expires_at_ms"]) == (NOW_MS, NOW_MS + 60_000)
    assert token
    assert token not in str(row)


async def test_a_page_is_found_until_the_last_code_has_died() -> None:
    shop, tx = Auth(), FakeTx(answers=[[]])

    assert await shop.requested_pages().find(tx, "t" * 22) is None
    [(_, params)] = tx.statements
    assert params["expired_after_ms"] == NOW_MS - (600 + 300) * 1000


@pytest.mark.parametrize("path", ["shop", "req_", "req_" + "a" * 23, "req_" + "-" * 22])
def test_what_is_no_requests_path_has_no_token(path: str) -> None:
    assert read_token(path) is None
    assert read_token("req_" + "a" * 22) == "a" * 22


def test_a_request_is_open_until_it_runs_out() -> None:
    page = PageRequest(
        *(PROJECT, "arq_1", "t" * 22, "oidc", "1", "Grafana", "", "https://x.example/", "s"),
        *(None, None, False, NOW_MS, NOW_MS + 1),
    )

    assert page.is_open(NOW_MS)
    assert not page.is_open(NOW_MS + 1)


def test_a_requesters_name_is_one_short_line() -> None:
    assert Requester.of(" A\n\u202eB ", "") == Requester("A B", "")
    assert Requester.of("x" * 500, "").name == "x" * 100
    for name, url in [("\n", ""), ("A", "ftp://a.example/"), ("A", "https:///x"), ("A", "//[")]:
        with pytest.raises(ValidationFailed):
            Requester.of(name, url)


async def test_a_question_goes_to_the_persons_chat_for_as_long_as_it_waits() -> None:
    bank = Bank()

    tx = await bank.ask(lifetime_s=60)

    [sent] = bank.core.outbox.sent
    [row] = tx.rows["auth_sessions"]
    assert (sent.channel, sent.chat_id) == ("messenger_a", "c1")
    assert sent.expires_at_ms == row["expires_at_ms"] == NOW_MS + 60_000
    assert (row["subscriber_id"], row["requester_name"]) == ("sub_1", "Bank")
    assert bank.counted("begun") == 0


async def test_yes_is_charged_and_makes_no_event() -> None:
    bank = Bank()
    await bank.ask()
    done = confirmed(**DIRECT)

    chat = await bank.press("Yes", [row_of(pending(**DIRECT))], [row_of(done)])

    assert chat is not None
    assert bank.core.outbox.edited[-1].message.text == "Confirmed for Bank."
    assert [charge.operation for charge in bank.core.billing.charges] == ["auth.confirmed"]
    assert bank.core.events.emitted == []


async def test_another_persons_press_is_left_to_the_core() -> None:
    bank = Bank()
    await bank.ask()

    assert await bank.press("Yes", by="8") is None


async def test_nobody_is_asked_who_has_left_or_is_unknown() -> None:
    bank = Bank()
    bank.core.subscribers.person("sub_2", status="blocked")

    with pytest.raises(Conflict):
        await bank.ask(subscriber_id="sub_2")
    with pytest.raises(SubscriberNotFound):
        await bank.ask(subscriber_id="sub_3")
    assert bank.core.outbox.sent == []


async def test_nobody_is_asked_where_they_cannot_answer() -> None:
    bank = Bank()
    bank.core.channels.recording("messenger_a").capabilities = Capabilities(buttons="links")

    with pytest.raises(Conflict, match="can't answer"):
        await bank.ask()


async def test_so_many_questions_are_asked_and_wait() -> None:
    bank = Bank(AuthSettings(questions_pending=2, questions_per_hour=5))
    ends = [{"expires_at_ms": NOW_MS + after} for after in (10_000, 20_000, 30_500)]

    with pytest.raises(RateLimitProject, match="wait for") as refused:
        await bank.ask(ends)
    limits = QuestionLimits(clock=bank.core.clock, settings=bank.settings)
    with pytest.raises(RateLimitProject, match="more than 5"):
        await limits.count(FakeTx(answers=slot(used=5)), PROJECT, "sub_1")

    assert refused.value.retry_after_s == 20


async def test_plugins_see_the_sign_ins_of_plugins_alone() -> None:
    requested = Auth().requested()

    shown = await requested.status(
        FakeTx(answers=[[row_of(pending(**DIRECT))]]), PROJECT, SESSION_ID
    )
    with pytest.raises(NotFound):
        await requested.status(FakeTx(answers=[[row_of(pending())]]), PROJECT, SESSION_ID)

    assert shown == "pending"


async def test_who_signed_in_is_told_with_what_was_asked_and_how() -> None:
    bank, code = Bank(), issued()
    done = confirmed(code, **ON_PAGE, match_number=47)

    person = await bank.requested().exchange(FakeTx(answers=[[row_of(done)]]), PROJECT, code.code)
    taken = await bank.requested().take(
        FakeTx(answers=[[row_of(confirmed(**DIRECT))]]), PROJECT, SESSION_ID
    )
    nobody = await bank.requested().take(FakeTx(answers=[[]]), PROJECT, SESSION_ID)

    assert person is not None
    assert (person.source, person.method) == ("oidc", "number")
    assert taken is not None
    assert (taken.source_id, taken.method, taken.subscriber.subscriber_id) == (
        "2",
        "button",
        "sub_1",
    )
    assert nobody is None
