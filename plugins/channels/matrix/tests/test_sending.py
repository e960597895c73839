"""What the homeserver is told, and what its refusals mean."""

import asyncio

import pytest
from pydantic import ValidationError

from msgsvc_core.channels import Channel, OutgoingMessage, Reason
from msgsvc_devkit.platforms.matrix import FakeMatrix, Person, Refused
from msgsvc_devkit.platforms.matrix.api import PASSWORD
from msgsvc_matrix.settings import MatrixSettings

from .conftest import ChannelFactory, failure_of

REFUSALS = [
    (403, "M_FORBIDDEN", Reason.CHAT_NOT_FOUND),
    (404, "M_NOT_FOUND", Reason.CHAT_NOT_FOUND),
    (401, "M_UNKNOWN_TOKEN", Reason.BOT_BANNED),
    (401, "M_MISSING_TOKEN", Reason.BOT_BANNED),
    (403, "M_USER_DEACTIVATED", Reason.BOT_BANNED),
    (401, "M_USER_LOCKED", Reason.BOT_BANNED),
    (403, "M_USER_SUSPENDED", Reason.BOT_BANNED),
    (429, "M_LIMIT_EXCEEDED", Reason.RATE_LIMITED),
    (403, "M_RESOURCE_LIMIT_EXCEEDED", Reason.PLATFORM_UNAVAILABLE),
    (400, "M_BAD_JSON", Reason.INVALID_MESSAGE),
    (413, "M_TOO_LARGE", Reason.INVALID_MESSAGE),
    (400, "M_UNKNOWN", Reason.INVALID_MESSAGE),
    (500, "M_UNKNOWN", Reason.PLATFORM_UNAVAILABLE),
    (502, "", Reason.PLATFORM_UNAVAILABLE),
    (404, "", Reason.PLATFORM_UNAVAILABLE),
    (403, "M_SOMETHING_NEW", Reason.UNKNOWN),
]


@pytest.mark.parametrize(("status", "code", "reason"), REFUSALS)
async def test_an_errors_code_gives_the_reason(
    channel: Channel, homeserver: FakeMatrix, ann: Person, status: int, code: str, reason: Reason
) -> None:
    await ann.start()
    homeserver.faults.fail_next(Refused(status, code, "no"))
    error = await failure_of(channel.send(ann.chat_id, OutgoingMessage("Hi", key="k")))

    assert error.reason is reason


async def test_the_limit_of_the_homeserver_is_told_with_its_wait(
    channel: Channel, homeserver: FakeMatrix, ann: Person
) -> None:
    await ann.start()
    homeserver.faults.burst = 1
    await channel.send(ann.chat_id, OutgoingMessage("one", key="k1"))
    error = await failure_of(channel.send(ann.chat_id, OutgoingMessage("two", key="k2")))

    assert error.reason is Reason.RATE_LIMITED
    assert 4 < (error.retry_after_s or 0) <= 5


async def test_a_person_who_has_left_is_not_written_to(
    channel: Channel, homeserver: FakeMatrix, ann: Person
) -> None:
    await ann.start()
    await ann.leave()
    error = await failure_of(channel.send(ann.chat_id, OutgoingMessage("Hi", key="k")))

    assert error.reason is Reason.CHAT_NOT_FOUND
    assert homeserver.calls_of("send") == []


@pytest.mark.parametrize("how", ["kick", "ban"])
async def test_a_bot_that_was_removed_knows_it(channel: Channel, ann: Person, how: str) -> None:
    await ann.start()
    await getattr(ann, how)()
    error = await failure_of(channel.send(ann.chat_id, OutgoingMessage("Hi", key="k")))

    assert error.reason is Reason.USER_BLOCKED_BOT


async def test_markup_is_html_with_plain_text_beside_it(
    channel: Channel, homeserver: FakeMatrix, ann: Person
) -> None:
    await ann.start()
    text = "**Hi**  &\nsee [it](https://a.example/?b=1&c=2)"
    await channel.send(ann.chat_id, OutgoingMessage(text, format="markdown", key="k"))
    [call] = homeserver.calls_of("send")

    assert call.body == {
        "msgtype": "m.text",
        "body": "Hi  &\nsee it (https://a.example/?b=1&c=2)",
        "format": "org.matrix.custom.html",
        "formatted_body": "<strong>Hi</strong>&nbsp;&nbsp;&amp;<br />see"
        '&nbsp;<a href="https://a.example/?b=1&amp;c=2">it</a>',
    }


async def test_html_that_is_too_large_is_sent_as_plain_text(channel: Channel, ann: Person) -> None:
    await ann.start()
    message = OutgoingMessage("<b>x</b>y" * 2000, format="html", key="k")
    problem = channel.problem(message)
    await channel.send(ann.chat_id, message)
    [shown] = ann.messages

    assert problem is None
    assert (shown.text, shown.tags) == ("xy" * 2000, ())
    assert all(not span.marks for span in channel.appearance(message))


async def test_the_longest_text_fits_into_an_edit(channel: Channel, ann: Person) -> None:
    await ann.start()
    ref = await channel.send(ann.chat_id, OutgoingMessage("short", key="k"))
    text = "<b>" + "😀" * 4000 + "</b>"
    await channel.edit(ann.chat_id, ref, OutgoingMessage(text, format="html"))

    assert ann.messages[0].text == "😀" * 4000


async def test_a_message_that_is_edited_to_and_fro_shows_the_last_text(
    channel: Channel, ann: Person
) -> None:
    await ann.start()
    ref = await channel.send(ann.chat_id, OutgoingMessage("one", key="k"))
    for text in ("two", "one", "two", "one"):
        await channel.edit(ann.chat_id, ref, OutgoingMessage(text, key="k"))

    assert [(one.event_id, one.text) for one in ann.messages] == [(ref, "one")]


async def test_all_edits_are_deleted_also_many(
    channel: Channel, homeserver: FakeMatrix, ann: Person
) -> None:
    await ann.start()
    ref = await channel.send(ann.chat_id, OutgoingMessage("text 0", key="k"))
    for number in range(120):
        await channel.edit(ann.chat_id, ref, OutgoingMessage(f"text {number}"))
    await channel.delete(ann.chat_id, ref)
    left = [event for event in ann.room.events if "text" in str(event.content.get("body"))]

    assert left == []


async def test_a_password_gives_a_token_and_another_when_it_has_ended(
    make_channel: ChannelFactory, homeserver: FakeMatrix, ann: Person
) -> None:
    await ann.start()
    channel = make_channel(user="shop_bot", token=PASSWORD)
    await asyncio.gather(*(channel.check() for _ in range(3)))
    homeserver.tokens.clear()
    await channel.send(ann.chat_id, OutgoingMessage("Hi", key="k"))
    devices = {call.body["device_id"] for call in homeserver.calls_of("login")}

    assert len(homeserver.calls_of("login")) == 2
    assert devices == {"msgsvc-messenger_a"}
    assert [message.text for message in ann.messages] == ["Hi"]


async def test_a_wrong_password_stops_the_bot(make_channel: ChannelFactory) -> None:
    health = await make_channel(user="shop_bot", token="wrong").check()

    assert (health.ok, health.revoked) == (False, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"homeserver_url": "matrix.example"},
        {"homeserver_url": "https://matrix.example/?a"},
        {"token": "two words"},
        {"allowed_homeservers": ["https://example.org"]},
        {"allowed_homeservers": ["@ann:example.org"]},
        {"proxy": "nowhere"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    right = {"homeserver_url": "https://matrix.example", "token": "syt_abc"}
    MatrixSettings.model_validate(right)

    with pytest.raises(ValidationError):
        MatrixSettings.model_validate({**right, **wrong})
