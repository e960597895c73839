"""What the bot asks, and what it makes of the answer, built from fakes."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_auth.models import Session
from msgsvc_core.channels import ButtonPressed, ChannelIdentity, ChannelUser, Started
from msgsvc_devkit.fakes import PROJECT, FakeInboundContext, FakeTx, inbound_context
from plugins.areas.auth.tests.unit.signing_in import (
    LINK,
    TOKEN,
    Auth,
    confirmed,
    issued,
    pending,
    row_of,
)

BACK = "https://shop.example/back"


class Chat(Auth):
    """The bot, and one person who talks to it."""

    def context(self, update: Started | ButtonPressed, *answers: Any) -> FakeInboundContext:
        channels, outbox = self.core.channels, self.core.outbox
        found = inbound_context(update, channels=channels, outbox=outbox, project_id=None)
        found.tx = FakeTx(answers=answers)
        return found

    async def start(self, *answers: Any, payload: str = f"auth_s_{TOKEN}") -> bool | None:
        update = Started(update_id="1", chat_id="c1", user=ChannelUser("7", "Ann"), payload=payload)
        return await self.bot().rules()[0].handler(self.context(update, *answers))

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
        chat = self.context(update, *answers)
        return chat if await self.bot().rules()[1].handler(chat) else None

    @property
    def said(self) -> str:
        return self.core.outbox.edited[-1].message.text


async def test_the_bot_asks_by_the_projects_name_and_says_who_wants_it() -> None:
    chat = Chat()
    session = pending(callback_url=BACK, client_ip="203.0.113.7")

    assert await chat.start([row_of(session)]) is True
    [question] = chat.core.outbox.sent
    assert "Sign in to Shop?" in question.message.text
    assert "shop.example" in question.message.text
    assert "203.0.113.7" in question.message.text
    assert [each.text for each in question.message.buttons[0]] == ["Yes", "Cancel"]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [pending(stored_status="denied")],
        [pending(expires_at_ms=0)],
        [pending(channel="messenger_b")],
        [pending(project_id="prj_2")],
    ],
)
async def test_what_can_not_be_asked_here_is_left_to_the_core(rows: list[Session]) -> None:
    chat = Chat()
    await chat.core.projects.add(FakeTx(), "Other")
    own = ChannelIdentity("messenger_a", "messenger_a", PROJECT)
    chat.core.channels.recording("messenger_a").identity = own

    assert await chat.start([row_of(each) for each in rows]) is False
    assert chat.core.outbox.sent == []


async def test_a_disabled_project_signs_nobody_in() -> None:
    chat = Chat()
    await chat.core.projects.switch(FakeTx(), PROJECT, active=False)

    assert await chat.start([row_of(pending())]) is False
    assert await chat.start([row_of(LINK)], payload="auth_shop") is False


async def test_a_static_link_opens_a_session_that_leads_back_to_its_site() -> None:
    chat = Chat()

    assert await chat.start([row_of(LINK)], payload="auth_shop") is True
    assert await chat.start([], payload="auth_gone") is False
    assert await chat.start(payload="auth_?") is False
    assert "shop.example" in chat.core.outbox.texts[-1]


async def test_a_yes_puts_the_way_back_in_the_questions_place() -> None:
    chat, code = Chat(), issued()
    session = pending(callback_url=BACK, state="s")
    await chat.start([row_of(session)])
    done = confirmed(code, callback_url=BACK, state="s", subscriber_id=None)
    pressed = await chat.press("Yes", [row_of(session)], [row_of(done)], 1)

    assert pressed is not None
    assert chat.said == "You are signed in to Shop."
    [[button]] = chat.core.outbox.edited[-1].message.buttons
    assert button.url is not None
    assert button.url.startswith(f"{BACK}?code=")
    assert button.url.endswith("&state=s")
    assert pressed.chat.project_id == PROJECT
    assert await chat.press("Yes", by="8") is None


async def test_a_project_that_was_disabled_since_the_question_signs_nobody_in() -> None:
    chat = Chat()
    await chat.start([row_of(pending())])
    await chat.core.projects.switch(FakeTx(), PROJECT, active=False)
    pressed = await chat.press("Yes", [row_of(pending())], [row_of(pending())])

    assert "no longer valid" in chat.said
    assert pressed is not None
    assert pressed.chat.project_id is None
    assert chat.core.subscribers.everybody == []


async def test_a_second_quick_press_leaves_the_way_back_where_it_is() -> None:
    chat = Chat()
    chat.core.subscribers.person("sub_7")
    await chat.start([row_of(pending())])
    now = confirmed(subscriber_id="sub_7")
    await chat.press("Yes", [row_of(pending())], [], [row_of(now)])

    assert chat.core.outbox.edited == []
    assert chat.core.outbox.answered[-1][-1] == "You are already signed in."


async def test_somebody_elses_yes_was_first() -> None:
    chat = Chat()
    chat.core.subscribers.person("sub_8")
    await chat.start([row_of(pending())])
    await chat.press("Yes", [row_of(pending())], [], [row_of(confirmed(subscriber_id="sub_8"))])

    assert "no longer valid" in chat.said


async def test_one_wrong_number_denies() -> None:
    chat = Chat()
    session = pending(match_number=47)
    await chat.start([row_of(session)])
    picks = [each.text for each in chat.core.outbox.sent[-1].message.buttons[0]]
    wrong = next(each for each in picks if each != "47")
    denied = row_of(replace(session, stored_status="denied"))
    pressed = await chat.press(wrong, [row_of(session)], [denied])

    assert (len(picks), "47" in picks) == (3, True)
    assert pressed is not None
    assert "not the number on the page" in chat.said
    assert chat.core.subscribers.everybody == []
    assert chat.core.outbox.answered[-1][-1] == chat.said


async def test_cancel_denies_and_a_forgotten_session_is_too_late() -> None:
    chat = Chat()
    await chat.start([row_of(pending())])
    await chat.press("Cancel", [row_of(pending())], [row_of(pending(stored_status="denied"))])
    assert "Cancelled" in chat.said
    await chat.press("Yes", [])

    assert "no longer valid" in chat.said


async def test_the_sites_language_comes_before_the_persons() -> None:
    chat = Chat()
    await chat.start([row_of(pending(lang="ru"))])

    assert "Войти в Shop?" in chat.core.outbox.texts[0]
