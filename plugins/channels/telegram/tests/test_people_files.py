"""What people send beside words, what they change, and which message they answer."""

import io

import pytest

from msgsvc_core.channels import (
    ChannelUser,
    DeliveryError,
    InboundContext,
    InboundRule,
    MessageEdited,
    MessageReceived,
    Reason,
    ReceivedFile,
)
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.platforms.telegram.methods import MAX_DOWNLOAD_BYTES
from msgsvc_telegram.updates import read_updates
from plugins.channels.telegram.tests.conftest import PNG, SiteFactory

WHO = {"update_id": "42", "chat_id": "1001", "user": ChannelUser("1001", "Anna")}
FILE = {"file_id": "f-1", "file_unique_id": "u", "file_size": 7}
NAMED = {**FILE, "file_name": "song.mp3", "mime_type": "audio/mpeg"}


def message(kind="message", **content):
    sender = {"id": 1001, "is_bot": False, "first_name": "Anna"}
    chat = {"id": 1001, "type": "private", "first_name": "Anna"}
    body = {"message_id": 9, "from": sender, "chat": chat, "date": 1_780_000_000, **content}
    return {"update_id": 42, kind: body}


def size(file_id, width, height):
    return {"file_id": file_id, "file_unique_id": "u", "width": width, "height": height}


@pytest.mark.parametrize(
    ("content", "file"),
    [
        (
            {"photo": [size("s", 90, 90), size("l", 1280, 720), size("m", 320, 180)]},
            ReceivedFile("image", "l"),
        ),
        ({"video": FILE}, ReceivedFile("video", "f-1", size=7)),
        ({"animation": FILE, "document": FILE}, ReceivedFile("video", "f-1", size=7)),
        ({"video_note": FILE}, ReceivedFile("video", "f-1", size=7)),
        ({"voice": FILE}, ReceivedFile("document", "f-1", "voice.ogg", size=7)),
        ({"audio": NAMED}, ReceivedFile("document", "f-1", "song.mp3", "audio/mpeg", 7)),
        ({"document": NAMED}, ReceivedFile("document", "f-1", "song.mp3", "audio/mpeg", 7)),
    ],
)
def test_a_message_has_the_one_file_that_was_sent_and_its_caption(content, file):
    found = read_updates([message(caption="Look", **content)], "messenger_a")

    assert found == [MessageReceived(**WHO, text="Look", files=(file,), message_ref="9")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"sticker": {}}, "[Message of the kind sticker, which can be seen in the messenger only]"),
        ({"location": {}}, "[Location]"),
        (
            {"document": {}},
            "[Message of the kind document, which can be seen in the messenger only]",
        ),
        (
            {"photo": [{"width": 1}]},
            "[Message of the kind photo, which can be seen in the messenger only]",
        ),
    ],
)
def test_what_is_no_file_that_bots_can_fetch_arrives_as_a_line_without_one(content, text):
    found = read_updates([message(**content)], "messenger_a")

    assert found == [MessageReceived(**WHO, text=text, message_ref="9")]


@pytest.mark.parametrize(
    ("content", "text", "files"),
    [
        ({"text": "/start auth_x"}, "/start auth_x", ()),
        ({"caption": "Better", "voice": FILE}, "Better", ("f-1",)),
        ({"document": FILE}, "", ("f-1",)),
    ],
)
def test_a_change_brings_what_the_message_says_now_and_starts_nothing(content, text, files):
    [found] = read_updates([message("edited_message", **content)], "messenger_a")

    assert isinstance(found, MessageEdited)
    assert (found.message_ref, found.text) == ("9", text)
    assert tuple(file.file_ref for file in found.files) == files


async def fetched(channel) -> bytes:
    update = (await channel.poll_updates("0")).updates[-1]
    into = io.BytesIO()
    await channel.fetch_file(update.files[0].file_ref, into, 50_000_000)
    return into.getvalue()


async def test_the_largest_size_of_a_photo_is_fetched(channel, telegram, anna):
    await anna.send_file("photo", PNG)

    assert await fetched(channel) == PNG


async def test_a_file_beyond_what_telegram_gives_bots_fails_and_says_so(channel, telegram, anna):
    await anna.send_file("video", bytes(MAX_DOWNLOAD_BYTES + 1))

    with pytest.raises(DeliveryError) as raised:
        await fetched(channel)

    assert raised.value.reason is Reason.INVALID_MESSAGE
    assert raised.value.text == "Telegram gives bots no file of more than 20 MB"


@pytest.mark.parametrize(
    "path", [b'"/var/lib/telegram/7.pdf"', b'"documents/nowhere.pdf"', b"null", b"7"]
)
async def test_a_file_that_telegram_does_not_hand_out_fails_for_good(channel, telegram, anna, path):
    await anna.send_file("document", b"%PDF-1.7", name="a.pdf")
    answer = b'{"ok": true, "result": {"file_path": %s}}' % path
    telegram.answer_next("getFile", 200, answer)

    with pytest.raises(DeliveryError) as raised:
        await fetched(channel)

    assert raised.value.reason is Reason.INVALID_MESSAGE
    assert telegram.bot.token not in str(raised.value)


async def test_a_download_that_breaks_names_no_token(channel, telegram, anna):
    await anna.send_file("document", b"%PDF-1.7", name="a.pdf")
    update = (await channel.poll_updates("0")).updates[-1]
    telegram.bot.revoked = True

    with pytest.raises(DeliveryError) as raised:
        await channel._api.download("documents/a.pdf", io.BytesIO(), 1000)

    assert raised.value.reason is Reason.BOT_BANNED
    assert telegram.bot.token not in str(raised.value)
    assert update.files[0].filename == "a.pdf"


class Album:
    """A plugin that takes what people send and change."""

    def __init__(self) -> None:
        self.changes = []

    @hookimpl
    def create_plugin(self, context):
        return AlbumPlugin(self, context.files)


class AlbumPlugin:
    def __init__(self, album, files):
        self._album = album
        self._files = files

    @hookimpl
    def register_inbound(self):
        return [InboundRule("message", self.take), InboundRule("edit", self.note)]

    async def take(self, ctx: InboundContext) -> None:
        project_id = ctx.chat.project_id
        await self._files.receive(ctx, project_id, "sub_of_nobody", ctx.update.files)

    async def note(self, ctx: InboundContext) -> None:
        self._album.changes.append((ctx.update.message_ref, ctx.update.text))


@pytest.mark.parametrize("receiving", ["poll", "webhook"])
async def test_a_photo_and_its_changed_caption_come_to_whoever_takes_messages(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    album = Album()
    site = await make_site(receiving, extra_plugins=[("album", album)])
    anna = telegram.person()
    await site.subscribe(anna)

    await anna.send_file("photo", PNG, caption="Helo")
    await anna.edit("Hello")

    async def ready():
        async with site.service.db.read() as tx:
            return await tx.fetch_one("SELECT file_id FROM core_files WHERE status = 'ready'")

    row = await until(ready)
    await until(lambda: _some(album.changes))
    path = f"/v1/files/{row['file_id']}"
    shown = (await site.client.get(path)).json()
    assert (shown["type"], shown["filename"], shown["mime_type"]) == (
        "image",
        "image.png",
        "image/png",
    )
    assert (await site.client.get(f"{path}/content")).content == PNG
    assert album.changes == [(str(anna.last_message_id), "Hello")]


async def test_a_stored_file_is_uploaded_and_its_address_shown_to_nobody(
    make_site: SiteFactory, telegram: FakeTelegram
) -> None:
    site = await make_site("poll")
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)
    stored = (await site.client.post("/v1/files", files={"file": ("cup.png", PNG)})).json()

    media = {"type": "image", "url": stored["url"]}
    await site.post("/v1/send", subscriber_id=subscriber_id, text="Your cup", media=media)
    message = await anna.wait_for("Your cup")

    assert message.file is not None
    assert (message.file.content, message.file.url) == (PNG, None)


async def _some(found: list[object]) -> bool:
    return bool(found)
