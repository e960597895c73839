"""The plugin's objects one by one, built from fakes."""

import pytest

from msgsvc_auth.buttons import Chat, SealedButtons
from msgsvc_auth.codes import Codes
from msgsvc_auth.jobs import SessionPurge
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import StaticLinkBody
from msgsvc_auth.outcomes import SignInOutcomes
from msgsvc_core.channels import ButtonPressed, ChannelUser
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.ids import new_token
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeInboundContext,
    FakeJobContext,
    FakeTx,
    fake_secrets,
    inbound_context,
)


def press(core: FakeContext, data: str, user_id: str = "7") -> FakeInboundContext:
    pressed = ButtonPressed(
        update_id="1",
        chat_id="c1",
        user=ChannelUser(user_id, "Anna"),
        data=data,
        message_ref="m1",
        button_ref="b1",
    )
    return inbound_context(pressed, channels=core.channels, outbox=core.outbox)


def test_a_button_is_for_the_person_who_was_asked() -> None:
    core, buttons, token = plugin_context(), SealedButtons(fake_secrets()), new_token()
    data = buttons.write(Chat.of(press(core, "")), "y", token)

    assert buttons.read(press(core, data)) == ("y", token)
    assert buttons.read(press(core, data, user_id="8")) is None
    assert buttons.read(press(core, data.replace(":y:", ":n:"))) is None


def test_a_code_is_the_same_when_it_is_asked_for_again() -> None:
    codes = Codes(fake_secrets())
    issued = codes.issue("ses_1")

    assert codes.reissue("ses_1", issued.nonce, issued.hash) == issued.code
    assert codes.reissue("ses_2", issued.nonce, issued.hash) is None
    assert issued.hash in codes.hashes(issued.code)


async def test_a_static_link_leads_to_https_alone() -> None:
    core = plugin_context()
    links = StaticLinks(clock=core.clock, channels=core.channels, allow_http=False)
    body = StaticLinkBody(slug="shop", name="Shop", callback_url="http://shop.example/back")

    with pytest.raises(ApiError):
        await links.create(FakeTx(), PROJECT, body)


async def test_sessions_are_deleted_after_a_week() -> None:
    core = plugin_context()
    core.db.answers += [0, 0, 0]
    await SessionPurge(clock=core.clock).purge(FakeJobContext(core.db), [])

    (_, sessions), *_ = core.db.statements
    assert core.clock.now_ms() - 7 * DAY_MS in sessions.values()


async def test_the_outcomes_of_sign_ins_leave_out_those_that_wait() -> None:
    core = plugin_context()
    now_ms = core.clock.now_ms()
    session = {"created_at_ms": now_ms - 9000, "expires_at_ms": now_ms + 1, "status": "pending"}
    waits = {**session, "confirmed_at_ms": None}
    confirmed = {**session, "confirmed_at_ms": now_ms - 2000, "status": "confirmed"}
    tx = FakeTx(answers=[[waits, confirmed, {**waits, "expires_at_ms": now_ms}]])
    recent = await SignInOutcomes(clock=core.clock).recent(tx, PROJECT)

    assert (recent.ended, recent.confirmed, recent.seconds) == (2, 1, 7)
