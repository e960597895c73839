"""What is sent, edited, deleted and answered, as a person sees it."""

import pytest

from msgsvc_core.channels import (
    BotProfile,
    Button,
    ChannelNotReady,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_devkit.platforms.max import Refused

from .conftest import failure_of, send_to

BUTTONS = (
    (Button("Yes", data="~auth_yes"), Button("No", data="no")),
    (Button("Site", url="https://shop.example/?a=1&b=2"),),
)


async def test_a_message_is_shown_and_named(channel, ann):
    ref = await send_to(channel, ann, "Привет 👋")

    (shown,) = ann.messages
    assert (shown.mid, shown.text, shown.silent) == (ref, "Привет 👋", False)


async def test_the_token_goes_in_the_header_and_nowhere_else(channel, platform, ann):
    await send_to(channel, ann)

    (call,) = platform.calls
    assert call.headers["Authorization"] == platform.token
    assert dict(call.query) == {"chat_id": str(ann.chat_id)}
    assert call.body == {"text": "Hello"}


async def test_buttons_are_shown_in_their_rows(channel, ann):
    await send_to(channel, ann, buttons=BUTTONS)

    assert ann.messages[0].buttons == (
        (
            {"type": "callback", "text": "Yes", "payload": "~auth_yes"},
            {"type": "callback", "text": "No", "payload": "no"},
        ),
        ({"type": "link", "text": "Site", "url": "https://shop.example/?a=1&b=2"},),
    )


async def test_a_silent_message_notifies_nobody(channel, ann):
    await send_to(channel, ann, silent=True)

    assert ann.messages[0].silent


async def test_an_edit_replaces_text_and_buttons(channel, ann):
    ref = await send_to(channel, ann, "Sure?", buttons=BUTTONS)

    await channel.edit(str(ann.chat_id), ref, OutgoingMessage("<b>Done</b>", format="html"))

    (shown,) = ann.messages
    assert (shown.mid, shown.text, shown.buttons, shown.edited) == (ref, "Done", (), True)
    assert shown.markup == ({"type": "strong", "from": 0, "length": 4},)


async def test_an_edit_keeps_the_file(channel, ann, media_host):
    media = Media("image", f"{media_host.url}/p.png")
    ref = await send_to(channel, ann, "Before", media=media)

    await channel.edit(str(ann.chat_id), ref, OutgoingMessage("After", buttons=BUTTONS))

    (shown,) = ann.messages
    assert (shown.text, shown.media, len(shown.buttons)) == ("After", "image", 2)


async def test_an_edit_can_bring_a_file(channel, ann, media_host):
    ref = await send_to(channel, ann, "Before")

    media = Media("video", f"{media_host.url}/v.mp4")
    await channel.edit(str(ann.chat_id), ref, OutgoingMessage("After", media=media))

    assert (ann.messages[0].text, ann.messages[0].media) == ("After", "video")


async def test_an_edit_that_shows_the_same_is_no_error(channel, ann):
    ref = await send_to(channel, ann, "Same")

    await channel.edit(str(ann.chat_id), ref, OutgoingMessage("Same"))

    assert ann.messages[0].text == "Same"


async def test_a_message_that_is_gone_cannot_be_edited(channel, ann):
    error = await failure_of(channel.edit(str(ann.chat_id), "mid.0", OutgoingMessage("Late")))

    assert error.reason is Reason.INVALID_MESSAGE


async def test_a_deleted_message_is_gone_and_deleting_it_again_no_error(channel, ann):
    ref = await send_to(channel, ann)

    await channel.delete(str(ann.chat_id), ref)
    await channel.delete(str(ann.chat_id), ref)

    assert ann.messages == []


async def test_a_message_that_may_not_be_deleted_is_an_error(channel, platform, ann):
    ref = await send_to(channel, ann)
    platform.faults.fail_next(Refused(403, "access.denied", "Too late"))

    error = await failure_of(channel.delete(str(ann.chat_id), ref))

    assert error.reason is Reason.UNKNOWN


@pytest.mark.parametrize("notice", ["Noted", None])
async def test_a_press_is_answered_and_an_old_one_is_no_error(channel, ann, notice):
    await send_to(channel, ann, buttons=BUTTONS)
    callback_id = await ann.press("Yes")

    await channel.answer_button(callback_id, notice)
    await channel.answer_button(callback_id, notice)

    assert ann.notices == [notice or ""]


async def test_a_press_that_could_not_be_answered_is_an_error(channel, platform):
    platform.faults.fail_next(Refused(503, "service.unavailable", ""))

    error = await failure_of(channel.answer_button("c1"))

    assert error.reason is Reason.PLATFORM_UNAVAILABLE


async def test_a_link_starts_the_bot_with_its_payload(channel, platform, ann):
    channel.profile = (await channel.check()).profile

    await ann.open(channel.deep_link("auth_-1"))

    assert platform.updates.all[-1]["payload"] == "auth_-1"


def test_a_name_cannot_lead_a_link_elsewhere(channel):
    channel.profile = BotProfile("Odd", "a/b?c")

    assert channel.deep_link("x") == "https://max.ru/a%2Fb%3Fc?start=x"


@pytest.mark.parametrize("profile", [None, BotProfile("Nameless")])
def test_a_link_waits_for_the_bots_name(channel, profile):
    channel.profile = profile

    with pytest.raises(ChannelNotReady):
        channel.deep_link("x")


async def test_a_check_finds_the_bot(channel):
    health = await channel.check()

    assert health.ok
    assert health.detail == "Fake Bot (@fake_bot)"
    assert health.profile == BotProfile("Fake Bot", "fake_bot")


async def test_a_check_tells_a_refused_token_from_a_platform_that_is_away(channel, platform):
    platform.faults.break_next("garbage")
    away = await channel.check()
    platform.revoked = True
    refused = await channel.check()

    assert (away.ok, away.revoked) == (False, False)
    assert (refused.ok, refused.revoked) == (False, True)


def test_only_chats_of_many_are_groups(channel):
    assert not channel.is_group("182182182")
    assert channel.is_group("-70801090403050")


async def test_the_pace_is_the_platforms_and_can_be_set(channel, make_channel):
    slower = await make_channel(per_bot_s=5, per_chat_s=None)

    assert (channel.pace.per_bot_s, channel.pace.per_chat_s) == (30, 2)
    assert (slower.pace.per_bot_s, slower.pace.per_chat_s) == (5, None)
