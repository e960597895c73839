"""Webhook calls, as the channel takes them from the platform."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from msgsvc_core.channels import (
    Blocked,
    Button,
    ButtonPressed,
    ChatMoved,
    DeliveryReported,
    InvalidWebhook,
    MessageReceived,
    Reason,
    Started,
    Unblocked,
    Unreadable,
    WebhookCall,
)
from msgsvc_devkit.platforms.whatsapp import Refused
from msgsvc_devkit.platforms.whatsapp.platform import NUMBER_ID

from .conftest import call_of, failure_of, received, send_to

HOOK = "https://bots.example.com/hooks/messenger_a"
SECRET = "5ec2e7" * 10


def message(**fields: Any) -> dict[str, Any]:
    """A webhook call with one message of Ann's; `fields` replace its own."""
    one = {"from_user_id": "US.1", "id": "wamid.1", "timestamp": "1", **fields}
    return value(contacts=[{"user_id": "US.1", "profile": {"name": "Ann"}}], messages=[one])


def value(number_id: str = "106540352242922", **fields: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "15550783881", "phone_number_id": number_id}
    change = {"field": "messages", "value": {"metadata": metadata, **fields}}
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [change]}]}


async def test_a_user_is_known_by_the_business_scoped_id_and_their_number_is_an_attribute(
    channel, platform, ann
):
    [update] = received(channel, platform)

    assert (update.chat_id, update.user.user_id) == (ann.user_id, ann.user_id)
    assert update.user.phone == f"+{ann.number}"
    assert ann.number not in repr(update)


async def test_a_user_who_hides_their_number_has_none(channel, platform):
    ben = platform.person("Ben", username="ben")
    ben.shows_number = False
    await ben.write("Hello")
    [update] = received(channel, platform)

    assert (update.user.user_id, update.user.username) == (ben.user_id, "ben")
    assert update.user.phone is None


def test_without_a_business_scoped_id_the_number_is_the_id(channel, platform):
    body = value(
        contacts=[{"wa_id": "16505550001", "profile": {"name": "Ann"}}],
        messages=[{"from": "16505550001", "id": "w", "type": "text", "text": {"body": "Hi"}}],
    )
    [update] = channel.parse_update(call_of(platform, body))

    assert update.user.user_id == "16505550001"


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("start", ""),
        ("/start", ""),
        ("Start auth_shop", "auth_shop"),
        ("старт sub_1", "sub_1"),
        (" start  x ", "x"),
    ],
)
async def test_the_text_of_a_link_starts(channel, platform, ann, text, payload):
    platform.webhooks.all.clear()
    await ann.write(text)
    [update] = received(channel, platform)

    assert isinstance(update, Started)
    assert update.payload == payload


@pytest.mark.parametrize("text", ["start me up please", "start wörk", "restart", "starting"])
async def test_other_texts_with_that_word_are_messages(channel, platform, ann, text):
    platform.webhooks.all.clear()
    await ann.write(text)
    [update] = received(channel, platform)

    assert isinstance(update, MessageReceived)
    assert update.text == text


@pytest.mark.parametrize("text", ["STOP", "stop.", "Unsubscribe", "Стоп", "отписаться"])
async def test_the_words_by_which_people_unsubscribe_are_the_command(channel, platform, ann, text):
    platform.webhooks.all.clear()
    await ann.write(text)
    [update] = received(channel, platform)

    assert update.text == "/stop"


async def test_a_press_names_its_message_data_and_label(channel, platform, ann):
    ref = await send_to(channel, ann, buttons=((Button("Yes", data="~auth_yes 1"),),))
    platform.webhooks.all.clear()
    await ann.press("Yes")
    [update] = received(channel, platform)

    assert isinstance(update, ButtonPressed)
    assert (update.data, update.message_ref, update.text) == ("~auth_yes 1", ref, "Yes")


def test_a_button_of_a_template_is_the_text_on_it(channel, platform):
    body = message(
        type="button",
        button={"payload": "any", "text": "Stop"},
        context={"from": "15550783881", "id": "wamid.0"},
    )
    [update] = channel.parse_update(call_of(platform, body))

    assert isinstance(update, MessageReceived)
    assert (update.text, update.reply_to) == ("/stop", "wamid.0")


async def test_voice_and_stickers_are_documents(channel, platform, ann):
    platform.webhooks.all.clear()
    await ann.send_file("audio", b"OggS", "audio/ogg; codecs=opus")
    await ann.send_file("sticker", b"RIFF", "image/webp")
    voice, sticker = received(channel, platform)

    assert [file.type for file in (*voice.files, *sticker.files)] == ["document", "document"]


async def test_who_opts_out_and_in_is_blocked_and_unblocked(channel, platform, ann):
    platform.webhooks.all.clear()
    await ann.opt_out()
    await ann.opt_in()
    out, back = received(channel, platform)

    assert isinstance(out, Blocked)
    assert isinstance(back, Unblocked)
    assert {out.user.user_id, back.user.user_id} == {ann.user_id}


async def test_a_message_that_was_not_delivered_is_logged_without_who_it_was_for(
    channel, platform, ann
):
    platform.pass_time(25)
    platform.webhooks.all.clear()
    ref = await send_to(channel, ann)
    with capture_logs() as logs:
        [update] = received(channel, platform)

    assert isinstance(update, DeliveryReported)
    assert (update.message_ref, update.state, update.reason) == (ref, "failed", "invalid_message")
    [line] = [line for line in logs if line["event"] == "message_not_delivered"]
    assert (line["message_ref"], line["code"]) == (ref, 131047)
    assert ann.user_id not in str(logs)
    assert ann.number not in str(logs)


async def test_a_message_that_an_opted_out_user_did_not_get_blocks_them(channel, platform, ann):
    platform.webhooks.all.clear()
    failed = Refused(400, 131050, "Opted out").in_status
    status = {"id": "wamid.7", "status": "failed", "recipient_user_id": ann.user_id}
    platform.tell({"statuses": [{**status, "errors": [failed]}]})
    [report, update] = received(channel, platform)

    assert isinstance(report, DeliveryReported)
    assert report.reason == "user_blocked_bot"
    assert isinstance(update, Blocked)
    assert update.user.user_id == ann.user_id


async def test_a_message_that_was_read_is_reported_with_the_time(channel, platform, ann):
    ref = await send_to(channel, ann)
    platform.webhooks.all.clear()
    await ann.read()
    for timestamp in ("1790000000", "soon", 1790000000):
        platform.tell({"statuses": [{"id": ref, "status": "read", "timestamp": timestamp}]})
    reports = received(channel, platform)

    assert [report.state for report in reports] == ["read"] * 4
    assert {report.message_ref for report in reports} == {ref}
    assert [report.at_ms for report in reports[1:]] == [1790000000_000, None, None]


async def test_a_new_phone_number_moves_the_chat(channel, platform, ann):
    before = ann.user_id
    platform.webhooks.all.clear()
    await ann.change_number("16505559999")
    [update] = received(channel, platform)

    assert isinstance(update, ChatMoved)
    assert (update.chat_id, update.new_chat_id) == (before, ann.user_id)
    assert (update.user.user_id, update.new_user_id) == (before, ann.user_id)


def test_a_number_change_without_ids_is_no_update(channel, platform):
    system = {"type": "user_changed_number", "wa_id": "16505559999", "body": "changed"}
    body = value(messages=[{"from": "16505550001", "id": "w", "type": "system", "system": system}])

    assert channel.parse_update(call_of(platform, body)) == []


def test_what_is_for_another_number_of_the_app_is_ignored(channel, platform):
    body = message(type="text", text={"body": "Hi"})
    body["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = "2"

    assert channel.parse_update(call_of(platform, body)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": {"body": 7}},
        {"type": "text", "id": None},
        {"type": "edit", "edit": {}},
        {"type": 7},
    ],
)
def test_what_cannot_be_read_is_kept_beside_what_can_and_can_be_read_again_alone(
    channel, platform, fields
):
    body = message(**fields)
    good = {"from_user_id": "US.1", "id": "wamid.2", "type": "text", "text": {"body": "Hi"}}
    body["entry"][0]["changes"][0]["value"]["messages"].append(good)
    unreadable, update = channel.parse_update(call_of(platform, body))
    alone = json.loads(unreadable.raw)
    [change] = alone["entry"][0]["changes"]

    assert update.update_id == "message:wamid.2"
    assert unreadable.reason == "malformed"
    assert change["value"]["messages"] == [
        message(**fields)["entry"][0]["changes"][0]["value"]["messages"][0]
    ]
    assert change["value"]["metadata"] == message()["entry"][0]["changes"][0]["value"]["metadata"]


async def test_what_a_later_version_can_read_is_taken_anyway(channel, platform, monkeypatch):
    [unreadable] = channel.parse_update(call_of(platform, message(type="text", text={"body": 7})))
    monkeypatch.setattr(
        "msgsvc_whatsapp.updates._optional_text", lambda fields, name: str(fields.get(name))
    )
    [update] = await channel.take_anyway(unreadable)

    assert (update.text, update.update_id) == ("7", f"message:{update.message_ref}")


def test_a_reaction_is_no_update_and_is_not_kept(channel, platform):
    body = message(type="reaction", reaction={"message_id": "w", "emoji": "👍"})

    assert channel.parse_update(call_of(platform, body)) == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"type": "location", "location": {"latitude": 1.5, "longitude": 2, "name": "Café"}},
            "[Location: Café, 1.5, 2]",
        ),
        (
            {
                "type": "contacts",
                "contacts": [
                    {"name": {"formatted_name": "Ann"}, "phones": [{"phone": "+1202"}, 7]},
                    {"name": 7},
                ],
            },
            "[Contact: Ann, +1202]\n[Contact]",
        ),
        ({"type": "order", "order": {"product_items": [{}, {}]}}, "[Order of 2 product(s)]"),
        (
            {"type": "unsupported", "errors": [{"code": 131051}]},
            "[Message of the kind unsupported, which can be seen in the messenger only]",
        ),
        (
            {"type": "hologram"},
            "[Message of the kind hologram, which can be seen in the messenger only]",
        ),
    ],
)
def test_what_is_no_text_arrives_as_a_line(channel, platform, fields, text):
    [update] = channel.parse_update(call_of(platform, message(**fields)))

    assert isinstance(update, MessageReceived)
    assert update.text == text


def test_one_odd_thing_in_a_call_costs_no_other(channel, platform):
    """An unknown field, a contact that is none, and parts that are no objects."""
    body = message(type="text", text={"body": "Hi"})
    entry = body["entry"][0]
    good = entry["changes"][0]
    good["value"]["contacts"] = [7, {"wa_id": "16505550001", "profile": 7}]
    good["value"]["messages"].insert(0, 7)
    metadata = good["value"]["metadata"]
    unknown = {"field": "brand_new", "value": {"metadata": metadata}}
    broken = {"field": "messages", "value": {"metadata": metadata, "messages": {}}}
    entry["changes"] = [7, unknown, broken, good]
    body["entry"].insert(0, 7)

    *odd, update = channel.parse_update(call_of(platform, body))

    assert update.text == "Hi"
    assert [(one.reason, one.detail) for one in odd] == [
        ("malformed", "entry: not an object"),
        ("malformed", "changes: not an object"),
        ("unknown_kind", "field: unknown"),
        ("malformed", "messages: not a list"),
        ("malformed", "messages: it: not an object"),
    ]


def test_a_message_in_a_group_is_ignored(channel, platform):
    body = message(type="text", text={"body": "Hi"}, group_id="Y2FwaV9ncm91cDo")

    assert channel.parse_update(call_of(platform, body)) == []


def challenge(token: str, **fields: str) -> WebhookCall:
    query = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": token}
    return WebhookCall(b"", secrets=(SECRET, "older"), method="GET", query={**query, **fields})


def test_the_challenge_is_answered_to_who_knows_the_secret(channel):
    call = challenge(SECRET)

    assert channel.parse_update(call) == []
    answer = channel.answer_webhook(call)
    assert answer is not None
    assert answer.body == b"1158201444"


@pytest.mark.parametrize(
    "call", [challenge("guess"), challenge(""), challenge(SECRET, **{"hub.mode": "unsubscribe"})]
)
def test_the_challenge_is_not_answered_to_others(channel, call):
    with pytest.raises(InvalidWebhook):
        channel.parse_update(call)


def test_a_verify_token_of_the_operators_counts_alone(make_channel):
    channel = make_channel(verify_token="mine")

    assert channel.parse_update(challenge("mine")) == []
    with pytest.raises(InvalidWebhook):
        channel.parse_update(challenge(SECRET))


async def test_with_a_verify_token_no_address_is_registered(make_channel, platform):
    channel = make_channel(verify_token="mine")
    await channel.set_webhook(HOOK, SECRET)
    platform.webhooks.of_app = HOOK

    assert platform.calls == []
    assert (await channel.check_webhook(HOOK)).ok


async def test_an_address_that_does_not_answer_the_challenge_is_refused(channel):
    error = await failure_of(channel.set_webhook("http://127.0.0.1:9/hooks/x", SECRET))

    assert error.reason is Reason.UNKNOWN


async def test_where_the_platform_calls_is_checked(channel, platform):
    nowhere = await channel.check_webhook(HOOK)
    platform.webhooks.of_app = "https://other.example/app"
    of_app = await channel.check_webhook(HOOK)
    platform.webhooks.override = "https://other.example/number"
    of_number = await channel.check_webhook(HOOK)
    platform.webhooks.override = HOOK

    assert (nowhere.ok, nowhere.missing) == (False, True)
    assert (of_app.ok, of_app.missing) == (False, True)
    assert (of_number.ok, of_number.missing) == (False, False)
    assert "other.example" in of_number.detail
    assert (await channel.check_webhook(HOOK)).ok


@pytest.mark.parametrize(
    "odd",
    [
        {"field": "messages", "value": None},
        {"field": ["messages"], "value": {"metadata": {"phone_number_id": NUMBER_ID}}},
        {"field": "messages", "value": {"metadata": {"phone_number_id": NUMBER_ID}, "contacts": 7}},
    ],
)
async def test_an_odd_change_costs_no_other_of_its_call(channel, platform, odd):
    ann = platform.person("Ann")
    await ann.write("Hello")
    [body] = platform.webhooks.all
    body["entry"][0]["changes"].insert(0, odd)
    unreadable, update = channel.parse_update(call_of(platform, body))

    assert update.text == "Hello"
    assert isinstance(unreadable, Unreadable)
    assert json.loads(unreadable.raw) == {"entry": [{"changes": [odd]}]}


@pytest.mark.parametrize("odd", [[], {}, None, 7])
async def test_an_odd_kind_costs_only_itself(channel, platform, odd):
    ann = platform.person("Ann")
    ref = await ann.write("Hello")
    platform.tell({"statuses": [{"id": ref, "status": odd}], "messages": [{"type": odd}]})
    interactive = {"type": "interactive", "id": "x", "interactive": {"type": odd}}
    platform.tell({"messages": [{**interactive, "from_user_id": ann.user_id}]})

    hello, *odd_ones = received(channel, platform)

    assert isinstance(hello, MessageReceived)
    assert odd_ones
    assert all(isinstance(each, Unreadable) for each in odd_ones)
