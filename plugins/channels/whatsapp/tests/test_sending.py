"""Messages as the platform gets them: layouts of buttons, files, the template, failures."""

import pytest

from msgsvc_core.channels import Button, ChannelHealth, Media, OutgoingMessage, Reason
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_devkit.platforms.whatsapp import Refused
from msgsvc_devkit.platforms.whatsapp.people import ShownButton
from msgsvc_whatsapp.messages import button_id

from .conftest import TEMPLATE, failure_of, send_to


def data(*labels: str) -> tuple[tuple[Button, ...], ...]:
    return tuple((Button(label, data=f"d{number}"),) for number, label in enumerate(labels))


SITE = Button("Site", url="https://shop.example/a")


async def test_a_message_goes_to_the_business_scoped_id_or_to_the_number(channel, platform, ann):
    await send_to(channel, ann)
    await channel.send(ann.number, OutgoingMessage("Hello"))
    first, second = [call.body for call in platform.calls_of("POST messages")]

    assert (first.get("recipient"), first.get("to")) == (ann.user_id, None)
    assert (second.get("recipient"), second.get("to")) == (None, ann.number)


@pytest.mark.parametrize("chat_id", ["", "ann", "US.", "+1650", "US.1; DROP", "a" * 300])
async def test_an_id_that_is_none_is_no_chat(channel, platform, chat_id):
    error = await failure_of(channel.send(chat_id, OutgoingMessage("Hello")))

    assert error.reason is Reason.CHAT_NOT_FOUND
    assert platform.calls == []


async def test_three_short_labels_are_buttons(channel, ann):
    await send_to(channel, ann, buttons=data("One", "Two", "x" * 20))

    assert ann.messages[-1].kind == "button"


@pytest.mark.parametrize(
    "labels", [("1", "2", "3", "4"), ("One", "x" * 21), tuple("abcdefghij"), ("x" * 24,)]
)
async def test_more_or_longer_ones_are_a_list(channel, ann, labels):
    await send_to(channel, ann, buttons=data(*labels))
    shown = ann.messages[-1]

    assert shown.kind == "list"
    assert [one.label for one in shown.buttons] == list(labels)


@pytest.mark.parametrize("labels", [("Short", "x" * 25), ("Same", "Same"), ("x" * 72,)])
async def test_rows_with_long_or_equal_labels_are_numbered(channel, ann, labels):
    await send_to(channel, ann, buttons=data(*labels))
    shown = ann.messages[-1].buttons

    assert [(one.label, one.about) for one in shown] == [
        (str(number), label) for number, label in enumerate(labels, 1)
    ]


async def test_one_link_is_a_button_that_opens_it(channel, ann):
    await send_to(channel, ann, "*Look*", buttons=((SITE,),))
    shown = ann.messages[-1]

    assert shown.buttons == (ShownButton("Site", url=SITE.url),)


@pytest.mark.parametrize(
    "buttons",
    [((SITE, SITE),), ((Button("x" * 21, url=SITE.url),),), ((SITE,), (Button("Y", data="y"),))],
)
async def test_other_links_are_lines_of_the_text(channel, ann, buttons):
    await send_to(channel, ann, "Look", buttons=buttons)

    assert ann.messages[-1].text.startswith("Look\n\n")
    assert f": {SITE.url}" in ann.messages[-1].text


async def test_a_link_under_a_long_text_is_a_line_of_it(channel, ann):
    await send_to(channel, ann, "x" * 1025, buttons=((SITE,),))

    assert ann.messages[-1].text.endswith(f"\n\nSite: {SITE.url}")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": "x" * 1025, "buttons": data("Yes")}, "text"),
        ({"text": "", "buttons": data("Yes")}, "text"),
        ({"text": "x", "buttons": data(*"abcdefghijk")}, "buttons"),
        ({"text": "x", "buttons": data("x" * 73)}, "buttons"),
        ({"text": "x", "buttons": ((Button("Y", data="я" * 40),),)}, "buttons"),
        (
            {"text": "x", "buttons": data(*"abcd"), "media": Media("image", "https://x/p.png")},
            "buttons",
        ),
        (
            {
                "text": "x" * 1020,
                "buttons": ((SITE, SITE),),
                "media": Media("image", "https://x/p"),
            },
            "text",
        ),
        ({"text": "\ud83d"}, "text"),
    ],
)
async def test_what_does_not_fit_is_a_problem_and_never_sent(channel, platform, ann, fields, field):
    message = OutgoingMessage(**fields)
    error = await failure_of(channel.send(ann.user_id, message))

    assert (channel.problem(message) or "").startswith(f"{field}:")
    assert error.reason is Reason.INVALID_MESSAGE
    assert platform.calls == []


def test_no_data_that_the_core_takes_is_too_long_for_a_row():
    assert all(len(button_id(9, one)) <= 200 for one in ("я" * 32, "😀" * 16, " " * 64))


@pytest.mark.parametrize("at_once", [True, False])
async def test_outside_of_the_window_a_text_goes_by_the_template(
    make_channel, platform, ann, chats, clock, at_once
):
    channel = make_channel(**TEMPLATE)
    platform.pass_time(25)
    platform.refuses_at_once = at_once
    # Where the call itself is refused, our clock thinks that the window is open.
    chats.last_ms[ann.user_id] = clock.now_ms() - (1 if at_once else 25) * HOUR_MS
    ref = await send_to(channel, ann, "Two\nlines,  and more", buttons=((SITE,),))

    [shown] = ann.messages
    assert (shown.ref, shown.template) == (ref, "notice")
    assert f"Two lines, and more Site: {SITE.url}." in shown.text
    assert len(platform.calls_of("POST messages")) == (2 if at_once else 1)


async def test_inside_of_the_window_the_template_is_not_used(make_channel, ann, chats, clock):
    chats.last_ms[ann.user_id] = clock.now_ms() - 23 * HOUR_MS
    await send_to(make_channel(**TEMPLATE), ann)

    assert ann.messages[-1].template is None


async def test_without_a_template_nothing_is_sent_outside_of_the_window(
    channel, platform, ann, chats, clock
):
    chats.last_ms[ann.user_id] = clock.now_ms() - 24 * HOUR_MS
    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (Reason.INVALID_MESSAGE, False)
    assert "no template is set" in error.text
    assert platform.calls == []


async def test_who_never_wrote_gets_the_template(make_channel, platform):
    ben = platform.person("Ben")
    await send_to(make_channel(**TEMPLATE), ben)

    assert ben.messages[-1].template == "notice"


@pytest.mark.parametrize(
    "fields",
    [
        {"media": Media("image", "https://x.example/p.png")},
        {"buttons": data("Yes")},
        {"text": "x" * 1025},
    ],
)
async def test_what_a_template_cannot_hold_is_refused_outside_of_the_window(
    make_channel, platform, ann, fields
):
    channel = make_channel(**TEMPLATE)
    message = OutgoingMessage(**{"text": "Hello", **fields})
    error = await failure_of(channel.send(ann.user_id, message))

    assert error.reason is Reason.INVALID_MESSAGE
    assert "24 hours" in error.text
    assert platform.calls == []


async def test_a_template_that_does_not_exist_is_told(make_channel, platform):
    ben = platform.person("Ben")
    error = await failure_of(send_to(make_channel(template="gone"), ben))

    assert (error.reason, "132001" in error.text) == (Reason.INVALID_MESSAGE, True)


async def test_without_our_database_nothing_is_sent(make_channel, platform, ann, chats):
    async def away(_channel: str, _chat_id: str) -> None:
        raise DatabaseUnavailable("away")

    chats.last_update_ms = away
    error = await failure_of(send_to(make_channel(**TEMPLATE), ann))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
    assert platform.calls == []


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, 0, Reason.BOT_BANNED),
        (403, 10, Reason.BOT_BANNED),
        (403, 210, Reason.BOT_BANNED),
        (403, 368, Reason.BOT_BANNED),
        (403, 131031, Reason.BOT_BANNED),
        (403, 131045, Reason.BOT_BANNED),
        (400, 80007, Reason.RATE_LIMITED),
        (400, 131048, Reason.RATE_LIMITED),
        (400, 131056, Reason.RATE_LIMITED),
        (429, 999999, Reason.RATE_LIMITED),
        (500, 131000, Reason.PLATFORM_UNAVAILABLE),
        (500, 999999, Reason.PLATFORM_UNAVAILABLE),
        (400, 131051, Reason.INVALID_MESSAGE),
        (400, 131062, Reason.INVALID_MESSAGE),
        (400, 131047, Reason.INVALID_MESSAGE),
    ],
)
async def test_codes_have_reasons(channel, platform, ann, status, code, reason):
    platform.faults.fail_next(Refused(status, code, "Title", "Details of it"))
    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (reason, False)
    assert error.text == f"{code}: Details of it"


@pytest.mark.parametrize(
    ("code", "reason", "hint"),
    [
        (131037, Reason.BOT_BANNED, "display name"),
        (131042, Reason.BOT_BANNED, "payment method"),
        (131049, Reason.UNKNOWN, "utility template"),
    ],
)
async def test_some_codes_have_a_hint_that_stays_whole(channel, platform, ann, code, reason, hint):
    platform.faults.fail_next(Refused(400, code, "Title", "Details of it. " * 40))
    error = await failure_of(send_to(channel, ann))

    assert error.reason is reason
    assert error.text.startswith(f"{code}: Details of it.")
    assert hint in error.text
    assert error.text.endswith(")")


async def test_a_check_says_that_the_bill_is_unpaid(channel, platform):
    platform.unpaid = True
    health = await channel.check()

    assert (health.ok, health.refuses_messages, health.revoked) == (True, True, False)
    assert "payment method" in health.detail


async def test_the_limit_for_one_user_holds_up_that_chat_alone(channel, platform, ann):
    platform.faults.fail_next(Refused(400, 131056, "Pair rate limit hit"), times=1)
    platform.faults.fail_next(Refused(400, 130429, "Rate limit hit"))

    assert (await failure_of(send_to(channel, ann))).scope == "chat"
    assert (await failure_of(send_to(channel, ann))).scope == "bot"


async def test_a_check_says_who_the_number_is(channel):
    health = await channel.check()

    assert (health.ok, health.account) == (True, "106540352242922")
    assert health.detail == "Fake Shop (+1 555-078-3881)"


async def test_a_check_finds_a_number_of_another_id(make_channel):
    health = await make_channel(phone_number="+1 650 555 0000").check()

    assert (health.ok, health.revoked) == (False, False)
    assert "phone_number is wrong" in health.detail


async def test_a_check_finds_a_wrong_id(make_channel):
    health: ChannelHealth = await make_channel(phone_number_id="1").check()

    assert not health.ok


def test_a_link_has_the_text_written_already(channel):
    assert channel.deep_link("auth_a-b") == "https://wa.me/15550783881?text=start%20auth_a-b"
