"""Sign-ins that other plugins start."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_auth.page_requests import PageRequest, read_token
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_auth.requested.question_limits import QuestionLimits
from msgsvc_auth.requested.requesters import Requester
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Capabilities
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import (
    Conflict,
    NotFound,
    RateLimitProject,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.plugins.sign_ins import AskedSignIn, DirectSignIn, PageSignIn
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import Chat, Unpaid, begin

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


async def ask(core: MemoryCore, tx: Tx, **changed: Any) -> AskedSignIn:
    """The bank's question."""
    return await core.peers.sign_ins.ask(tx, replace(PAYMENT, **changed))


async def test_a_page_waits_for_as_long_as_the_setting_says() -> None:
    async with (
        memory_core(plugins=["auth"], auth={"request_lifetime_s": 60}) as core,
        core.db.transaction() as tx,
    ):
        url = await core.peers.sign_ins.open_page(tx, GRAFANA)
        stored = await tx.fetch_one("SELECT * FROM auth_requests")
        now_ms = core.clock.now_ms()

    assert stored is not None
    token = read_token(url.rpartition("/login/")[2])
    assert (stored["created_at_ms"], stored["expires_at_ms"]) == (now_ms, now_ms + 60_000)
    assert token
    assert token not in str([*stored])


async def test_a_page_is_found_until_the_last_code_has_died(core: MemoryCore, tx: Tx) -> None:
    pages = RequestedPages(
        clock=core.clock,
        settings=core.settings(AuthSettings),
        base_url="http://msgsvc.test/",
        sign_in=core.get(SignIn),
    )
    url = await pages.open(tx, GRAFANA)
    token = read_token(url.removeprefix("http://msgsvc.test/login/"))
    assert token is not None
    core.clock.advance(core.settings(AuthSettings).request_lifetime_s + 600 + 299)
    found = await pages.find(tx, token)
    core.clock.advance(1)

    assert found is not None
    assert await pages.find(tx, token) is None


@pytest.mark.parametrize("path", ["shop", "req_", "req_" + "a" * 23, "req_" + "-" * 22])
def test_what_is_no_requests_path_has_no_token(path: str) -> None:
    assert read_token(path) is None
    assert read_token("req_" + "a" * 22) == "a" * 22


def test_a_request_is_open_until_it_runs_out() -> None:
    page = PageRequest(
        *(PROJECT, "arq_1", "t" * 22, "oidc", "1", "Grafana", "", "https://x.example/", "s"),
        *(None, None, False, 1000, 2000),
    )

    assert page.is_open(1999)
    assert not page.is_open(2000)


def test_a_requesters_name_is_one_short_line() -> None:
    assert Requester.of(" A\n\u202eB ", "") == Requester("A B", "")
    assert Requester.of("x" * 500, "").name == "x" * 100
    for name, url in [("\n", ""), ("A", "ftp://a.example/"), ("A", "https:///x"), ("A", "//[")]:
        with pytest.raises(ValidationFailed):
            Requester.of(name, url)


async def test_a_question_goes_to_the_persons_chat_for_as_long_as_it_waits(
    core: MemoryCore, tx: Tx
) -> None:
    person = await core.person(tx)
    asked = await ask(core, tx, lifetime_s=60)

    [call] = await core.calls(tx)
    assert (call.channel, call.chat_id) == ("messenger_a", person.chat_id)
    assert call.payload["expires_at_ms"] == asked.expires_at_ms == core.clock.now_ms() + 60_000
    session = await core.get(SignIn).get(PROJECT, asked.session_id, tx)
    assert session.expires_at_ms == asked.expires_at_ms
    assert (session.subscriber_id, session.requester_name) == ("sub_1", "Bank")


async def test_yes_is_charged_and_makes_no_event() -> None:
    billing = Unpaid()
    async with (
        memory_core(plugins=["auth"], extra_plugins=[("billing", billing)]) as core,
        core.db.transaction() as tx,
    ):
        chat = Chat(core, tx)
        await core.person(tx, user_id="7", chat_id="chat 7")
        asked = await ask(core, tx)
        pressed = await chat.press("Yes")
        [answer] = await chat.answers()

    assert pressed is not None
    assert answer.text == "Confirmed for Bank."
    [charge] = billing.charged
    assert (charge.operation, charge.resource_id) == ("auth.confirmed", asked.session_id)
    assert core.event_names == []


async def test_another_persons_press_is_left_to_the_core(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, user_id="7", chat_id="chat 7")
    await ask(core, tx)

    assert await Chat(core, tx).press("Yes", by="8") is None


async def test_nobody_is_asked_who_has_left_or_is_unknown(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, "sub_2", status="blocked")

    with pytest.raises(Conflict):
        await ask(core, tx, subscriber_id="sub_2")
    with pytest.raises(SubscriberNotFound):
        await ask(core, tx, subscriber_id="sub_3")
    assert await core.calls(tx) == []


async def test_nobody_is_asked_where_they_cannot_answer(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    core.recording("messenger_a").capabilities = Capabilities(buttons="links")

    with pytest.raises(Conflict, match="can't answer"):
        await ask(core, tx)


async def test_so_many_questions_are_asked_and_wait() -> None:
    limits = {"questions_pending": 10, "questions_per_hour": 3}
    async with memory_core(plugins=["auth"], auth=limits) as core, core.db.transaction() as tx:
        await core.person(tx)
        for lifetime_s in (10, 20, 31):
            await ask(core, tx, lifetime_s=lifetime_s)

        with pytest.raises(RateLimitProject, match="more than 3"):
            await ask(core, tx)
        lower = AuthSettings(questions_pending=2, questions_per_hour=10)
        with pytest.raises(RateLimitProject, match="wait for") as refused:
            await QuestionLimits(clock=core.clock, settings=lower).count(tx, PROJECT, "sub_1")

    # When the second of the three has run out, one waits.
    assert refused.value.retry_after_s == 20


async def test_plugins_see_the_sign_ins_of_plugins_alone(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    asked = await ask(core, tx)
    of_a_site = (await begin(core, tx)).session

    assert await core.peers.sign_ins.status(tx, PROJECT, asked.session_id) == "pending"
    with pytest.raises(NotFound):
        await core.peers.sign_ins.status(tx, PROJECT, of_a_site.session_id)
