"""The plugin's objects one by one."""

import pytest

from msgsvc_auth.buttons import Chat, SealedButtons
from msgsvc_auth.codes import Codes
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import CreateStaticLinkBody
from msgsvc_auth.outcomes import SignInOutcomes
from msgsvc_auth.service import SignIn
from msgsvc_core.channels import ButtonPressed, ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import InvalidUrl, NotFound
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import SecretBox
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.contexts import InboundInTest
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import begin, say_yes


def press(core: MemoryCore, tx: Tx, data: str, user_id: str = "7") -> InboundInTest:
    pressed = ButtonPressed(
        update_id="1",
        chat_id="c1",
        user=ChannelUser(user_id, "Anna"),
        data=data,
        message_ref="m1",
        button_ref="b1",
    )
    return core.inbound(tx, pressed)


async def test_a_button_is_for_the_person_who_was_asked(core: MemoryCore, tx: Tx) -> None:
    buttons, token = SealedButtons(core.secrets), new_token()
    data = buttons.write(Chat.of(press(core, tx, "")), "y", token)

    assert buttons.read(press(core, tx, data)) == ("y", token)
    assert buttons.read(press(core, tx, data, user_id="8")) is None
    assert buttons.read(press(core, tx, data.replace(":y:", ":n:"))) is None


def test_a_code_is_the_same_when_it_is_asked_for_again() -> None:
    codes = Codes(SecretBox(["k" * 32]))
    issued = codes.issue("ses_1")

    assert codes.reissue("ses_1", issued.nonce, issued.hash) == issued.code
    assert codes.reissue("ses_2", issued.nonce, issued.hash) is None
    assert issued.hash in codes.hashes(issued.code)


async def test_a_static_link_leads_to_https_alone(core: MemoryCore, tx: Tx) -> None:
    body = CreateStaticLinkBody(slug="shop", name="Shop", callback_url="http://shop.example/back")

    with pytest.raises(InvalidUrl):
        await core.get(StaticLinks).create(tx, PROJECT, body)


async def test_sessions_are_deleted_after_a_week(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        session_id = (await begin(core, tx)).session.session_id
    core.clock.advance(7 * DAY_MS / 1000)
    await core.run(NewJob("auth.purge"))
    kept = await core.get(SignIn).get(PROJECT, session_id)
    core.clock.advance(1)
    await core.run(NewJob("auth.purge"))

    assert kept.session_id == session_id
    with pytest.raises(NotFound):
        await core.get(SignIn).get(PROJECT, session_id)


async def test_the_outcomes_of_sign_ins_leave_out_those_that_wait(core: MemoryCore, tx: Tx) -> None:
    await begin(core, tx)
    core.clock.advance(598)
    confirmed = await begin(core, tx)
    core.clock.advance(7)
    await say_yes(core, tx, confirmed.session)
    await begin(core, tx)
    recent = await core.get(SignInOutcomes).recent(tx, PROJECT)

    assert (recent.ended, recent.confirmed, recent.seconds) == (2, 1, 7)
