"""What goes out, as people see it in the fake."""

import asyncio

import pytest

from msgsvc_core.channels import (
    Button,
    ChannelNotReady,
    DeliveryError,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_devkit.platforms.telegram import Limits
from msgsvc_telegram.settings import TelegramSettings
from plugins.channels.telegram.tests.conftest import PNG

PDF = b"%PDF-1.7 " + bytes(50)
MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(50)


def chat(person) -> str:
    return str(person.user_id)


async def test_a_message_is_shown_with_its_look_and_buttons(channel, anna):
    yes = Button("Yes", data="y" * 64, style="success")
    rows = ((yes, Button("Site", url="https://shop.example/?a=b")),)

    ref = await channel.send(chat(anna), OutgoingMessage("*Hi*, <b>", "markdown", rows))

    (message,) = anna.messages
    assert str(message.message_id) == ref
    assert message.text == "Hi, <b>"
    assert message.entities == [{"type": "italic", "offset": 0, "length": 2}]
    assert message.buttons == [
        [
            {"text": "Yes", "style": "success", "callback_data": "y" * 64},
            {"text": "Site", "url": "https://shop.example/?a=b"},
        ]
    ]
    assert message.silent is False


async def test_a_silent_message_makes_no_sound(channel, anna):
    await channel.send(chat(anna), OutgoingMessage("psst", silent=True))

    assert anna.messages[0].silent is True


@pytest.mark.parametrize(
    ("kind", "name", "content", "mime", "shown"),
    [
        ("image", "cup.png", PNG, "image/png", "photo"),
        ("video", "cup.mp4", MP4, "video/mp4", "video"),
        ("document", "menu.pdf", PDF, "application/pdf", "document"),
    ],
)
async def test_a_file_is_fetched_by_telegram(
    channel, telegram, anna, kind, name, content, mime, shown
):
    url = telegram.host_file(name, content, mime)

    await channel.send(chat(anna), OutgoingMessage("**look**", "markdown", media=Media(kind, url)))

    (message,) = anna.messages
    assert (message.file.kind, message.file.content, message.file.url) == (shown, content, url)
    assert (message.text, message.entities[0]["type"]) == ("look", "bold")


async def test_a_file_that_telegram_cannot_fetch_is_uploaded(channel, telegram, anna):
    telegram.reaches_files = False
    url = telegram.host_file("cup.png", PNG, "image/png")
    buttons = ((Button("Menu", url="https://shop.example"),),)

    message = OutgoingMessage("*look* 🎉", "markdown", buttons, Media("image", url), silent=True)
    await channel.send(chat(anna), message)

    (shown,) = anna.messages
    assert (shown.file.content, shown.file.url, shown.file.filename) == (PNG, None, "cup.png")
    assert (shown.text, shown.labels, shown.silent) == ("look 🎉", [["Menu"]], True)
    assert [call.status for call in telegram.calls_of("sendPhoto")] == [400, 200]


@pytest.mark.parametrize("reaches_files", [True, False])
async def test_a_picture_of_a_form_that_telegram_refuses_is_sent_as_a_document(
    channel, telegram, anna, reaches_files
):
    telegram.reaches_files = reaches_files
    url = telegram.host_file("cup.png", PNG, "image/png")
    if not reaches_files:
        telegram.fail_next("sendPhoto", 400, "Bad Request: failed to get HTTP URL content")
    telegram.fail_next("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS")

    await channel.send(chat(anna), OutgoingMessage("look", media=Media("image", url)))

    (shown,) = anna.messages
    assert (shown.text, shown.file.kind, shown.file.content) == ("look", "document", PNG)
    assert len(telegram.calls_of("sendDocument")) == 1


async def test_a_picture_too_large_for_telegram_to_fetch_is_uploaded(channel, telegram, anna):
    content = PNG + bytes(5 * 1024 * 1024)
    url = telegram.host_file("large.png", content, "image/png")

    await channel.send(chat(anna), OutgoingMessage("", media=Media("image", url)))

    assert anna.messages[0].file.content == content


@pytest.mark.parametrize(
    ("name", "filename", "shown_name"),
    [("notes.txt", None, "notes.txt"), ("menu.pdf", "Menü – März.pdf", "Menü – März.pdf")],
)
async def test_documents_that_telegram_would_not_fetch_as_asked_are_uploaded_at_once(
    channel, telegram, anna, name, filename, shown_name
):
    url = telegram.host_file(name, b"words", "text/plain")

    await channel.send(chat(anna), OutgoingMessage("", media=Media("document", url, filename)))

    assert anna.messages[0].file.filename == shown_name
    assert len(telegram.calls_of("sendDocument")) == 1


async def test_a_file_that_nobody_can_fetch_is_an_invalid_message(channel, telegram, anna):
    with pytest.raises(DeliveryError) as failed:
        url = f"{telegram.url}/files/none.png"
        await channel.send(chat(anna), OutgoingMessage("x", media=Media("image", url)))

    assert failed.value.reason is Reason.INVALID_MESSAGE
    assert failed.value.text == "media.url: its host answered 404"
    assert anna.messages == []


async def test_an_edit_replaces_text_look_and_buttons(channel, anna):
    buttons = ((Button("Yes", data="y"),),)
    ref = await channel.send(chat(anna), OutgoingMessage("Ready?", buttons=buttons))

    await channel.edit(chat(anna), ref, OutgoingMessage("**Done**", "markdown"))

    (message,) = anna.messages
    assert (message.text, message.buttons, message.edits) == ("Done", [], 1)
    assert message.entities == [{"type": "bold", "offset": 0, "length": 4}]


async def test_an_edit_to_the_same_is_no_error(channel, anna):
    ref = await channel.send(chat(anna), OutgoingMessage("Ready?"))

    await channel.edit(chat(anna), ref, OutgoingMessage("Ready?"))

    assert anna.messages[0].edits == 0


@pytest.mark.parametrize("names_file", [True, False])
async def test_the_text_beside_a_file_is_edited(channel, telegram, anna, names_file):
    media = Media("image", telegram.host_file("cup.png", PNG, "image/png"))
    ref = await channel.send(chat(anna), OutgoingMessage("A cup", media=media))

    # Who edits need not know that there is a file.
    edited = OutgoingMessage("Your cup", media=media if names_file else None)
    await channel.edit(chat(anna), ref, edited)

    assert (anna.messages[0].text, anna.messages[0].file.content) == ("Your cup", PNG)


async def test_an_edit_with_a_file_of_a_message_without_one_edits_the_text(channel, anna):
    ref = await channel.send(chat(anna), OutgoingMessage("A cup"))

    media = Media("image", "https://shop.example/cup.png")
    await channel.edit(chat(anna), ref, OutgoingMessage("Your cup", media=media))

    assert anna.messages[0].text == "Your cup"


@pytest.mark.parametrize("ref", ["424242", "m1", "", "9" * 30])
async def test_an_edit_of_what_is_not_there_fails(channel, anna, ref):
    with pytest.raises(DeliveryError) as failed:
        await channel.edit(chat(anna), ref, OutgoingMessage("x"))

    assert failed.value.reason is Reason.INVALID_MESSAGE


async def test_a_message_is_deleted_and_a_second_time_is_no_error(channel, anna):
    ref = await channel.send(chat(anna), OutgoingMessage("Oops"))

    await channel.delete(chat(anna), ref)
    await channel.delete(chat(anna), ref)

    assert anna.messages == []


async def test_what_is_too_old_to_be_deleted_says_so(channel, anna):
    ref = await channel.send(chat(anna), OutgoingMessage("Oops"))
    anna.messages[0].old = True

    with pytest.raises(DeliveryError, match="can't be deleted") as failed:
        await channel.delete(chat(anna), ref)

    assert failed.value.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize(
    ("text", "notice"), [(None, ""), ("Noted", "Noted"), ("x" * 300, "x" * 199 + "…")]
)
async def test_a_press_is_answered(channel, anna, text, notice):
    await channel.send(chat(anna), OutgoingMessage("?", buttons=((Button("Yes", data="y"),),)))
    press = await anna.press("Yes")

    await channel.answer_button(press.query_id, text)

    assert await press.answered() == notice


async def test_an_answer_that_nobody_waits_for_any_more_is_no_error(channel, anna):
    await channel.send(chat(anna), OutgoingMessage("?", buttons=((Button("Yes", data="y"),),)))
    press = await anna.press("Yes")
    press.too_old = True

    await channel.answer_button(press.query_id, "late")
    await channel.answer_button("no such query")

    assert press.notice is None


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (OutgoingMessage("x" * 4096), None),
        (OutgoingMessage("x" * 4097), "text: must be at most 4096 characters"),
        (OutgoingMessage("🎉" * 4096), None),
        (OutgoingMessage("🎉" * 4097), "text: must be at most 4096 characters"),
        (OutgoingMessage("**" + "x" * 4096 + "**", "markdown"), None),
        (OutgoingMessage("x" * 1024, media=Media("image", "https://a.example/x")), None),
        (
            OutgoingMessage("x" * 1025, media=Media("image", "https://a.example/x")),
            "text: must be at most 1024 characters beside a file",
        ),
        (OutgoingMessage("", media=Media("image", "https://a.example/x")), None),
        (OutgoingMessage(" \n "), "text: shows nothing"),
        (OutgoingMessage("<b></b>", "html"), "text: shows nothing but markup"),
        (OutgoingMessage("*a* " * 101, "markdown"), "text: Telegram shows no more than 100"),
        (OutgoingMessage("x", buttons=((Button("b", data="é" * 32),),)), None),
        (OutgoingMessage("x", buttons=((Button("b", data="é" * 33),),)), "buttons: data must be"),
        (OutgoingMessage("x", buttons=((Button("b", data=""),),)), "buttons: data must be"),
    ],
)
def test_what_telegram_can_not_take_is_known_before(channel, message, problem):
    found = channel.problem(message)

    assert found is None if problem is None else (found or "").startswith(problem)


@pytest.mark.parametrize("text", ["x" * 4096, "🎉" * 4096, "**" + "é" * 4096 + "**"])
async def test_the_longest_text_is_sent_whole(channel, anna, text):
    message = OutgoingMessage(text, "markdown")

    await channel.send(chat(anna), message)

    assert channel.problem(message) is None
    assert anna.messages[0].text == text.strip("*")


@pytest.mark.parametrize("text", ["\ud83c", "ok"])
@pytest.mark.parametrize("uploads", [True, False])
async def test_half_of_a_character_is_an_invalid_message(channel, telegram, anna, text, uploads):
    url = telegram.host_file("notes.txt", b"words", "text/plain")
    message = OutgoingMessage(
        text,
        buttons=((Button("half \udf89", data="y"),),),
        media=Media("document", url) if uploads else None,
    )

    with pytest.raises(DeliveryError) as failed:
        await channel.send(chat(anna), message)

    assert failed.value.reason is Reason.INVALID_MESSAGE
    assert failed.value.text.startswith("text: holds half")


@pytest.mark.parametrize(("name", "shown"), [('a"b\r\nX: y.txt', 'a"bX: y.txt'), ("\n", "file")])
async def test_a_name_adds_no_header_to_an_upload(channel, telegram, anna, name, shown):
    url = telegram.host_file("notes.txt", b"words", "text/plain")

    await channel.send(chat(anna), OutgoingMessage("", media=Media("document", url, name)))

    assert anna.messages[0].file.filename.replace("\\", "") == shown


async def test_a_group_that_moved_is_followed(channel, telegram):
    old, new = telegram.group(), telegram.group()
    old.migrated_to = new.chat_id

    ref = await channel.send(str(old.chat_id), OutgoingMessage("Hello, all"))
    await channel.edit(str(old.chat_id), ref, OutgoingMessage("Hello again"))

    assert [message.text for message in new.messages.values()] == ["Hello again"]
    assert channel.is_group(str(old.chat_id))


def test_the_link_leads_to_the_bot_that_telegram_named(channel):
    with pytest.raises(ChannelNotReady):
        channel.deep_link("auth_x")


async def test_check_learns_who_the_bot_is(channel, telegram, anna):
    health = await channel.check()
    channel.profile = health.profile

    await anna.open(channel.deep_link("auth_X-9"))

    polled = await channel.poll_updates(None)
    assert health.ok
    assert (health.profile.name, health.detail) == ("Corner Coffee", "@corner_coffee_bot")
    assert polled.updates[-1].payload == "auth_X-9"


async def test_check_tells_a_revoked_token_from_a_platform_that_is_away(channel, telegram):
    telegram.fail_next("getMe", 502, "Bad Gateway")
    away = await channel.check()
    telegram.answer_next("getMe", 200, b'{"ok": true, "result": 7}')
    odd = await channel.check()
    telegram.bot.revoked = True
    revoked = await channel.check()

    assert [health.ok for health in (away, odd, revoked)] == [False] * 3
    assert [health.revoked for health in (away, odd, revoked)] == [False, False, True]
    assert revoked.detail == "Telegram refuses the bot's token: Unauthorized"


async def test_a_name_from_the_settings_needs_no_profile(make_channel):
    channel = make_channel(username="my_own_bot")

    assert channel.deep_link("sub_1") == "https://t.me/my_own_bot?start=sub_1"


async def test_pace_is_telegrams_unless_the_settings_say_otherwise(make_channel):
    usual = make_channel().pace
    paid = make_channel(per_bot_s=1000, per_chat_s=2, per_group_min=40).pace

    assert (usual.per_bot_s, usual.per_chat_s, usual.per_group_min) == (30, 1, 20)
    assert (paid.per_bot_s, paid.per_chat_s, paid.per_group_min) == (1000, 2, 40)


@pytest.mark.database_file
async def test_many_at_once_and_one_cancelled_leave_the_channel_usable(channel, anna):
    sending = [
        asyncio.create_task(channel.send(chat(anna), OutgoingMessage(f"No. {number}")))
        for number in range(20)
    ]
    sending[7].cancel()
    await asyncio.gather(*sending, return_exceptions=True)

    ref = await channel.send(chat(anna), OutgoingMessage("after"))

    assert anna.messages[-1].text == "after"
    assert len({task.result() for task in sending if not task.cancelled()} | {ref}) == 20


async def test_calls_go_through_a_proxy_if_one_is_set(make_channel, telegram, anna):
    # To its proxy, a client names the whole address; the fake answers whoever does.
    channel = make_channel(base_url="http://bot-api.example", proxy=telegram.url)

    await channel.send(chat(anna), OutgoingMessage("by proxy"))

    assert anna.messages[0].text == "by proxy"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "no token"),
        ("token", "1:a/../../b" + "x" * 30),
        ("base_url", "ftp://api.example"),
        ("base_url", "https://api.example/?x="),
        ("base_url", "http://[::1"),
        ("base_url", "http://127.0.0.1:99999"),
        ("base_url", "https://"),
        ("proxy", "socks5://127.0.0.1:1080"),
        ("proxy", "http://user:pass word@"),
        ("username", "@with_at"),
        ("per_bot_s", 0),
        ("receiving", "nothing"),
        ("tokn", "x"),
    ],
)
def test_wrong_settings_are_refused_without_their_values(name, value):
    values = {"token": "123456:" + "A" * 35, name: value}

    with pytest.raises(ValueError, match=name):
        TelegramSettings.model_validate(values)


async def test_limits_of_telegram_are_told_with_the_wait(channel, telegram):
    telegram.limits = Limits(per_group_min=1)
    group = str(telegram.group().chat_id)
    await channel.send(group, OutgoingMessage("one"))

    with pytest.raises(DeliveryError) as failed:
        await channel.send(group, OutgoingMessage("two"))

    assert (failed.value.reason, failed.value.scope) == (Reason.RATE_LIMITED, "chat")
    assert failed.value.retry_after_s == telegram.calls[-1].retry_after
