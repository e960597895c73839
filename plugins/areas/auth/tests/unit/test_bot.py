"""What the bot asks, and what it makes of the answer."""

import pytest

from msgsvc_auth.service import SignIn
from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.db import Tx
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import (
    CALLBACK,
    TOKEN,
    Chat,
    add_link,
    begin,
    find_person,
)


@pytest.fixture
def chat(core: MemoryCore, tx: Tx) -> Chat:
    return Chat(core, tx)


async def test_the_bot_asks_by_the_projects_name_and_says_who_wants_it(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    await add_link(core, tx)
    new = await begin(core, tx, callback_url=CALLBACK, client={"ip": "203.0.113.7"})

    assert await chat.start(f"auth_s_{new.token}") is True
    [question] = await chat.questions()
    assert "Sign in to Shop?" in question.text
    assert "shop.example" in question.text
    assert "203.0.113.7" in question.text
    assert [each.text for each in question.buttons[0]] == ["Yes", "Cancel"]


@pytest.mark.parametrize(
    "why", ["unknown", "denied", "expired", "of another channel", "of another project"]
)
async def test_what_can_not_be_asked_here_is_left_to_the_core(
    core: MemoryCore, tx: Tx, chat: Chat, why: str
) -> None:
    channel = "messenger_b" if why == "of another channel" else None
    new = await begin(core, tx, channel=channel)
    match why:
        case "denied":
            await core.get(SignIn).deny(tx, new.session, "messenger_a")
        case "expired":
            core.clock.advance(600)
        case "of another project":
            own = ChannelIdentity("messenger_a", "messenger_a", "prj_2")
            core.recording("messenger_a").identity = own

    assert await chat.start(f"auth_s_{TOKEN if why == 'unknown' else new.token}") is False
    assert await core.calls(tx) == []


async def test_a_disabled_project_signs_nobody_in(core: MemoryCore, tx: Tx, chat: Chat) -> None:
    await add_link(core, tx)
    new = await begin(core, tx)
    await core.projects.switch(tx, PROJECT, active=False)

    assert await chat.start(f"auth_s_{new.token}") is False
    assert await chat.start("auth_shop") is False


async def test_a_static_link_opens_a_session_that_leads_back_to_its_site(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    await add_link(core, tx)

    assert await chat.start("auth_shop") is True
    assert await chat.start("auth_gone") is False
    assert await chat.start("auth_?") is False
    [question] = await chat.questions()
    assert "shop.example" in question.text


async def test_a_yes_puts_the_way_back_in_the_questions_place(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    await add_link(core, tx)
    new = await begin(core, tx, callback_url=CALLBACK, state="s")
    await chat.start(f"auth_s_{new.token}")
    strangers = await chat.press("Yes", by="8")
    pressed = await chat.press("Yes")

    assert strangers is None
    assert pressed is not None
    assert pressed.chat.project_id == PROJECT
    [answer] = await chat.answers()
    assert answer.text == "You are signed in to Shop."
    [[button]] = answer.buttons
    assert button.url is not None
    assert button.url.startswith(f"{CALLBACK}?code=")
    assert button.url.endswith("&state=s")


async def test_a_project_that_was_disabled_since_the_question_signs_nobody_in(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    new = await begin(core, tx)
    await chat.start(f"auth_s_{new.token}")
    await core.projects.switch(tx, PROJECT, active=False)
    pressed = await chat.press("Yes")

    assert pressed is not None
    assert pressed.chat.project_id is None
    [answer] = await chat.answers()
    assert "no longer valid" in answer.text
    assert await find_person(core, tx) is None


async def test_a_second_quick_press_leaves_the_way_back_where_it_is(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    new = await begin(core, tx)
    await chat.start(f"auth_s_{new.token}")
    await chat.press("Yes")
    await chat.press("Yes")

    assert len(await chat.answers()) == 1
    assert await chat.notices() == [None, "You are already signed in."]


async def test_somebody_elses_yes_was_first(core: MemoryCore, tx: Tx, chat: Chat) -> None:
    new = await begin(core, tx)
    other = Chat(core, tx, "8")
    for each in (chat, other):
        await each.start(f"auth_s_{new.token}")
    await other.press("Yes")
    await chat.press("Yes")

    assert "no longer valid" in (await chat.answers())[-1].text
    assert await find_person(core, tx) is None
    assert await find_person(core, tx, "8") is not None


async def test_one_wrong_number_denies(core: MemoryCore, tx: Tx, chat: Chat) -> None:
    new = await begin(core, tx, number_matching=True)
    await chat.start(f"auth_s_{new.token}")
    [question] = await chat.questions()
    picks = [each.text for each in question.buttons[0]]
    right = str(new.session.match_number)
    await chat.press(next(each for each in picks if each != right))

    assert (len(picks), right in picks) == (3, True)
    [answer] = await chat.answers()
    assert "not the number on the page" in answer.text
    assert await chat.notices() == [answer.text]
    assert await find_person(core, tx) is None
    now = await core.get(SignIn).get(PROJECT, new.session.session_id, tx)
    assert now.stored_status == "denied"


async def test_cancel_denies_and_a_forgotten_session_is_too_late(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    new = await begin(core, tx)
    await chat.start(f"auth_s_{new.token}")
    await chat.press("Cancel")
    await tx.execute("DELETE FROM auth_sessions")
    await chat.press("Yes")

    cancelled, too_late = [answer.text for answer in await chat.answers()]
    assert "Cancelled" in cancelled
    assert "no longer valid" in too_late


async def test_the_sites_language_comes_before_the_persons(
    core: MemoryCore, tx: Tx, chat: Chat
) -> None:
    new = await begin(core, tx, lang="ru")
    await chat.start(f"auth_s_{new.token}")

    [question] = await chat.questions()
    assert "Войти в Shop?" in question.text
