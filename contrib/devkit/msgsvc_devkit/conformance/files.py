"""Checks of files that users send, messages that they edit, and replies."""

import io

import pytest

from msgsvc_core.channels import Channel, MediaType, MessageEdited, MessageReceived, Reason, Started
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Fault, Messenger
from msgsvc_devkit.conformance.stage import Stage, needs, plainest, sent
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal

#: One file of each type: some thousand bytes of every value, after the magic bytes.
CONTENTS: dict[MediaType, bytes] = {
    "image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 16,
    "video": b"\0\0\0\x18ftypisom" + bytes(range(256)) * 16,
    "document": b"%PDF-1.7\n" + bytes(range(256)) * 16,
}
NAMES: dict[MediaType, str] = {"image": "cat.png", "video": "cat.mp4", "document": "Счёт №1.pdf"}


class Files(Stage):
    """`MessageReceived` with its files and subject, `fetch_file`, `MessageEdited` and `reply_to`."""

    @pytest.mark.parametrize("media_type", list(CONTENTS))
    async def test_a_file_comes_with_its_text_and_is_fetched_whole(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, media_type: MediaType
    ) -> None:
        needs(channel.capabilities.receives_files, "files from people")
        content = CONTENTS[media_type]
        await messenger.start()
        await messenger.send_file(media_type, content, NAMES[media_type], "Look at <this>")
        received = await inbox.expect(MessageReceived)
        assert len(received.files) == 1, f"one file was sent, and there are {received.files}"
        [file], into = received.files, io.BytesIO()
        await done(channel.fetch_file(file.file_ref, into, len(content)), "fetch_file")

        assert file.type == media_type, f"a file of type {media_type!r} came as {file.type!r}"
        assert received.text == "Look at <this>", (
            f"the text beside the file is {received.text!r}; some platforms call it a caption"
        )
        assert into.getvalue() == content, (
            f"{len(content)} bytes were sent and {len(into.getvalue())} fetched, or other ones; write"
            " the file as the platform hands it out"
        )

    async def test_a_file_without_a_word_has_an_empty_text_and_its_name(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        needs(channel.capabilities.receives_files, "files from people")
        await messenger.start()
        name = NAMES["document"]
        await messenger.send_file("document", CONTENTS["document"], name)
        received = await inbox.expect(MessageReceived)

        assert received.text == "", f"nothing was written, and the text is {received.text!r}"
        assert [file.filename for file in received.files] == [name], (
            f"the document {name!r} came as {received.files}; keep the name that its sender gave it"
        )

    async def test_a_file_that_is_larger_than_it_may_be_is_refused(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        content, file_ref = await _sent_file(channel, messenger, inbox)
        fetching = channel.fetch_file(file_ref, io.BytesIO(), len(content) - 1)
        error = await refusal(fetching, "fetch_file of a file with more bytes than it may have")

        expect_reason(error, Reason.INVALID_MESSAGE, "`fetch_file` of a file that is too large")

    async def test_a_file_that_is_not_there_is_refused_for_good(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        """Asks by the reference of a file whose last four characters are changed: a fake's ids of files have
        at least five."""
        _, file_ref = await _sent_file(channel, messenger, inbox)
        changed = file_ref[:-4] + "".join("b" if letter == "a" else "a" for letter in file_ref[-4:])
        fetching = channel.fetch_file(changed, io.BytesIO(), 10_000)
        error = await refusal(fetching, f"fetch_file({changed!r}), a file that does not exist,")

        expect_reason(
            error,
            Reason.INVALID_MESSAGE,
            f"`fetch_file({changed!r})` of a file that does not exist",
        )

    @pytest.mark.parametrize("fault", ["5xx", "reset"])
    async def test_a_file_is_fetched_once_the_platform_is_back(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, fault: Fault
    ) -> None:
        content, file_ref = await _sent_file(channel, messenger, inbox)
        await messenger.break_next(fault)
        fetching = channel.fetch_file(file_ref, io.BytesIO(), len(content))
        if fault == "5xx":
            # HTTP clients may retry after a connection reset.
            error = await refusal(fetching, "fetch_file while the platform is away")
            expect_reason(
                error, Reason.PLATFORM_UNAVAILABLE, "`fetch_file` while the platform is away"
            )
        else:
            try:
                await fetching
            except Exception as failure:  # noqa: BLE001 - whatever a channel raises is a finding
                error = await refusal(_raising(failure), "fetch_file while the connection broke")
                expect_reason(
                    error, Reason.PLATFORM_UNAVAILABLE, "`fetch_file` on a broken connection"
                )
        into = io.BytesIO()
        await done(channel.fetch_file(file_ref, into, len(content)), "fetch_file after a fault")

        assert into.getvalue() == content, "after a fault, `fetch_file` brought another file"

    async def test_a_change_names_the_message_and_brings_its_new_text(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start()
        await inbox.expect(Started)
        await messenger.write("Helo")
        await messenger.edit_text("Hello <b>")
        received = await inbox.expect(MessageReceived)
        edited = await inbox.expect(MessageEdited)

        assert edited.text == "Hello <b>", f"it was changed to 'Hello <b>', and came as {edited}"
        assert edited.message_ref == received.message_ref, (
            f"the message came as {received.message_ref!r} and its change names"
            f" {edited.message_ref!r}; both are the platform's id of the message"
        )
        assert (edited.chat_id, edited.user.user_id) == (
            messenger.chat_id,
            messenger.user.user_id,
        ), f"the change is said to be of {edited.user} in the chat {edited.chat_id!r}"

    async def test_each_change_is_an_update_of_its_own(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start()
        await inbox.expect(Started)
        await messenger.write("One")
        for text in ("Two", "Three", "Two"):
            await messenger.edit_text(text)
        first = await inbox.expect(MessageReceived)
        changes = [await inbox.expect(MessageEdited) for _ in range(3)]
        ids = {first.update_id, *(change.update_id for change in changes)}

        assert [change.text for change in changes] == ["Two", "Three", "Two"], (
            f"the changes came as {changes}"
        )
        assert len(ids) == 4, (
            f"a message and three changes have the update_ids {ids}: the core would take one for"
            " another, and pass it over"
        )

    async def test_an_answer_names_the_message_that_it_answers(
        self, channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox
    ) -> None:
        needs(channel.capabilities.tells_replies, "telling what a message answers")
        first = await sent(channel, chat_id, plainest("first", channel.capabilities))
        await sent(channel, chat_id, plainest("second", channel.capabilities))
        await messenger.reply(first, "to the first")
        received = await inbox.expect(MessageReceived)

        assert received.reply_to == first, (
            f"reply_to is {received.reply_to!r}; make it what `send` returned, {first!r}"
        )

    async def test_a_message_has_a_subject_where_the_channel_has_subjects(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start()
        await messenger.write("hello")
        received = await inbox.expect(MessageReceived)
        has_subjects = channel.capabilities.subjects

        assert (received.subject is not None) == has_subjects, (
            f"subject is {received.subject!r}, and `Capabilities.subjects` is {has_subjects}"
        )


async def _sent_file(channel: Channel, messenger: Messenger, inbox: Inbox) -> tuple[bytes, str]:
    """The content of a document that the user has sent, and its `file_ref`."""
    needs(channel.capabilities.receives_files, "files from people")
    content = CONTENTS["document"]
    await messenger.start()
    await messenger.send_file("document", content, NAMES["document"])
    received = await inbox.expect(MessageReceived)
    assert received.files, "a file was sent, and `MessageReceived.files` is empty"
    return content, received.files[0].file_ref


async def _raising(failure: Exception) -> None:
    raise failure
