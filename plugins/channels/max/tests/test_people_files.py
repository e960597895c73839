"""What people send beside words on MAX, and what they change."""

import io
import json
from typing import Any

import pytest
from pydantic import SecretStr

from msgsvc_core.channels import (
    DeliveryError,
    MessageEdited,
    MessageReceived,
    Reason,
    ReceivedFile,
    Started,
)
from msgsvc_core.security import OutboundGuard
from msgsvc_devkit.platforms.max import FakeMax
from msgsvc_devkit.platforms.max.people import Person
from msgsvc_max.channel import MaxChannel
from msgsvc_max.client import MaxClient
from msgsvc_max.files import files_of, shown_of
from msgsvc_max.settings import MaxSettings
from plugins.channels.max.tests.conftest import PNG, MediaHost


def url(address: str) -> str:
    return json.dumps({"url": address}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("attachment", "file"),
    [
        (
            {"type": "image", "payload": {"photo_id": 1, "token": "t", "url": "https://i.ru/1"}},
            ReceivedFile("image", url("https://i.ru/1")),
        ),
        (
            {"type": "video", "payload": {"token": "v-1", "url": "https://player.ru/1"}},
            ReceivedFile("video", '{"video":"v-1"}'),
        ),
        (
            {"type": "audio", "payload": {"token": "t", "url": "https://a.ru/1"}},
            ReceivedFile("document", url("https://a.ru/1")),
        ),
        (
            {
                "type": "file",
                "payload": {"token": "t", "url": "https://f.ru/1"},
                "filename": "Счёт\0.pdf",
                "size": 7,
            },
            ReceivedFile("document", url("https://f.ru/1"), "Счёт\ufffd.pdf", size=7),
        ),
    ],
)
def test_an_attachment_is_a_file(attachment: dict[str, Any], file: ReceivedFile) -> None:
    assert files_of([attachment]) == (file,)


@pytest.mark.parametrize(
    "attachments",
    [
        None,
        "x",
        [None, 7, {}, {"type": "image"}, {"type": "image", "payload": {"url": 7}}],
        [{"type": "file", "payload": {"url": "file:///etc/passwd"}}],
        [{"type": "sticker", "payload": {"url": "https://s.ru", "code": "1"}}],
        [{"type": "location", "latitude": 1.0, "longitude": 2.0}],
    ],
)
def test_what_is_no_file_is_passed_over(attachments: Any) -> None:
    assert files_of(attachments) == ()


async def received(channel: MaxChannel) -> list[Any]:
    """What the person said after they had started the bot."""
    updates = (await channel.poll_updates("0")).updates
    return [update for update in updates if not isinstance(update, Started)]


async def fetch(channel: MaxChannel, file: ReceivedFile, most_bytes: int = 1_000_000) -> bytes:
    into = io.BytesIO()
    await channel.fetch_file(file.file_ref, into, most_bytes)
    return into.getvalue()


async def test_several_files_come_in_their_order_and_without_the_token(
    channel: MaxChannel, platform: FakeMax, ann: Person
) -> None:
    await ann.send_file("image", PNG, text="Look")
    await ann.send_file("audio", b"ID3 music")

    picture, music = await received(channel)

    assert isinstance(picture, MessageReceived)
    assert picture.text == "Look"
    assert await fetch(channel, picture.files[0]) == PNG
    assert await fetch(channel, music.files[0]) == b"ID3 music"
    downloads = [call for call in platform.calls if call.path.startswith("/download/")]
    assert len(downloads) == 2
    assert not any("Authorization" in call.headers for call in downloads)


async def test_a_video_that_is_too_large_is_fetched_in_a_smaller_size(
    channel: MaxChannel, ann: Person
) -> None:
    content = bytes(range(256)) * 16
    await ann.send_file("video", content)
    [update] = await received(channel)

    assert await fetch(channel, update.files[0]) == content
    assert await fetch(channel, update.files[0], 2000) == content[:1024]
    with pytest.raises(DeliveryError) as raised:
        await fetch(channel, update.files[0], 1000)
    assert raised.value.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("file_ref", ["", "7", "{}", '{"video": "none"}', '{"video": "../me"}'])
async def test_a_file_that_there_is_none_of_is_refused_for_good(
    channel: MaxChannel, file_ref: str
) -> None:
    with pytest.raises(DeliveryError) as raised:
        await fetch(channel, ReceivedFile("document", file_ref))

    assert raised.value.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "169.254.169.254"]
)
async def test_no_address_that_an_update_names_leads_into_our_own_network(
    platform: FakeMax, media_host: MediaHost, ann: Person, host: str
) -> None:
    await ann.send_file("image", PNG)
    settings = MaxSettings(token=SecretStr(platform.token), base_url=platform.url)
    client = MaxClient(settings, OutboundGuard(allow_http=True))
    try:
        [own] = files_of(platform.updates.all[-1]["message"]["body"]["attachments"])
        into = io.BytesIO()
        await client.download(json.loads(own.file_ref)["url"], into, 1000)
        with pytest.raises(DeliveryError) as raised:
            url = media_host.url.replace("127.0.0.1", host)
            await client.download(f"{url}/p.png", io.BytesIO(), 1000)
    finally:
        await client.close()

    # Where the Bot API is, the operator has said.
    assert into.getvalue() == PNG
    assert media_host.hits == []
    assert raised.value.reason is Reason.INVALID_MESSAGE


async def test_a_change_is_taken_and_the_bots_own_is_not(
    channel: MaxChannel, platform: FakeMax, ann: Person
) -> None:
    await ann.write("Helo")
    await ann.edit("Hello")

    written, edited = await received(channel)
    wire = platform.updates.all[-1]
    own = {**wire["message"], "sender": platform.bot.to_wire()}
    platform.updates.tell({**wire, "message": own})

    assert isinstance(edited, MessageEdited)
    assert (edited.message_ref, edited.text) == (written.message_ref, "Hello")
    assert len(await received(channel)) == 2


async def test_what_is_passed_on_answers_nothing(
    channel: MaxChannel, platform: FakeMax, ann: Person
) -> None:
    await ann.write("Look what somebody wrote")
    wire = platform.updates.all[-1]
    wire["message"]["link"] = {"type": "forward", "message": {"mid": "mid.1", "seq": 1}}

    [update] = await received(channel)

    assert update.reply_to is None


@pytest.mark.parametrize(
    ("attachment", "line"),
    [
        ({"type": "location", "latitude": 1.5, "longitude": 2}, "[Location: 1.5, 2]"),
        ({"type": "contact", "payload": {"max_info": {"name": "Ann"}}}, "[Contact: Ann]"),
        ({"type": "contact", "payload": 7}, "[Contact]"),
        ({"type": "inline_keyboard", "payload": {}}, ""),
        (
            {"type": "hologram"},
            "[Message of the kind hologram, which can be seen in the messenger only]",
        ),
        (7, ""),
        ({"type": 7}, ""),
    ],
)
def test_what_is_no_file_is_told_in_a_line(attachment: Any, line: str) -> None:
    assert shown_of([attachment]) == line
    assert shown_of({}) == ""
