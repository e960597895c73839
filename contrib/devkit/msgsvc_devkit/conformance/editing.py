"""Checks that sent messages can be edited and deleted, also repeatedly."""

from msgsvc_core.channels import Button, Channel, Reason
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import (
    Stage,
    needs,
    picture,
    plainest,
    sent,
    shown_as,
)
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal


class Changing(Stage):
    """`edit` and `delete`."""

    async def test_an_edit_replaces_text_and_buttons(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.edit, "edits")
        buttons = _buttons(channel, "before")
        old = plainest("before", channel.capabilities, buttons=buttons)
        ref, other = await sent(channel, chat_id, old), await sent(channel, chat_id, old)
        after = _buttons(channel, "after")
        new = plainest("after", channel.capabilities, buttons=after)
        await done(channel.edit(chat_id, ref, new), "edit")
        seen, untouched = await shown_as(messenger, ref), await shown_as(messenger, other)

        assert (seen.text, seen.buttons) == ("after", after), f"the edited message shows {seen}"
        assert untouched.text == "before", "`edit` changed another message"

    async def test_an_edit_without_buttons_takes_them_away(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(
            channel.capabilities.edit and channel.capabilities.buttons == "native",
            "edits with buttons",
        )
        buttons = _buttons(channel, "press")
        ref = await sent(channel, chat_id, plainest("asked", channel.capabilities, buttons=buttons))
        await done(channel.edit(chat_id, ref, plainest("over", channel.capabilities)), "edit")
        seen = await shown_as(messenger, ref)

        assert (seen.text, seen.buttons) == ("over", ()), (
            f"an edit without buttons leaves {seen.buttons}; what was asked could be answered twice."
            " Tell the platform an empty keyboard"
        )

    async def test_the_text_beside_a_file_is_edited(
        self, channel: Channel, messenger: Messenger, chat_id: str, door: Door
    ) -> None:
        takes = channel.capabilities
        needs(takes.edit and bool(takes.media_types), "edits of messages with media")
        media = picture(door, min(takes.media_types))
        ref = await sent(channel, chat_id, plainest("before", takes, media=media))
        new = plainest("after", takes, media=media)
        await done(channel.edit(chat_id, ref, new), "edit of a message with a file")

        assert (await shown_as(messenger, ref)).text == "after", (
            "the text beside the file is the old"
        )

    async def test_an_edit_to_what_is_shown_already_is_no_error(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.edit, "edits")
        message = plainest("same", channel.capabilities, buttons=_buttons(channel, "same"))
        ref = await sent(channel, chat_id, message)
        doing = "edit of a message that shows the same already"
        await done(
            channel.edit(chat_id, ref, message),
            doing,
            "Treat the platform's 'not modified' as success",
        )

        seen = (await shown_as(messenger, ref)).text
        assert seen == "same", f"an edit to 'same' shows {seen!r}"

    async def test_an_edit_of_a_message_that_is_gone_is_an_invalid_message(
        self, channel: Channel, chat_id: str
    ) -> None:
        needs(channel.capabilities.edit and channel.capabilities.delete, "edits and deletions")
        ref = await sent(channel, chat_id, plainest("gone soon", channel.capabilities))
        await done(channel.delete(chat_id, ref), "delete")
        new = plainest("too late", channel.capabilities)
        error = await refusal(channel.edit(chat_id, ref, new), "edit of a deleted message")

        expect_reason(error, Reason.INVALID_MESSAGE, "an edit of a message that is gone")

    async def test_an_edit_after_a_deletion_does_not_bring_the_message_back(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.edit and channel.capabilities.delete, "edits and deletions")
        ref = await sent(channel, chat_id, plainest("taken back", channel.capabilities))
        await done(channel.delete(chat_id, ref), "delete")
        new = plainest("back again", channel.capabilities)
        await refusal(channel.edit(chat_id, ref, new), "edit of a deleted message")
        seen = [one.text for one in await messenger.shown()]

        assert not {"taken back", "back again"} & set(seen), (
            f"a message was deleted, then edited, and {seen} is shown: what was taken back came back."
            " Ask for the message before you edit it, where the platform does not"
        )

    async def test_a_deletion_takes_the_edits_of_the_message_along(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.edit and channel.capabilities.delete, "edits and deletions")
        ref = await sent(channel, chat_id, plainest("first words", channel.capabilities))
        for text in ("second words", "third words"):
            await done(channel.edit(chat_id, ref, plainest(text, channel.capabilities)), "edit")
        await done(channel.delete(chat_id, ref), "delete")
        seen = [one.text for one in await messenger.shown()]

        assert not any(text.endswith(" words") for text in seen), (
            f"a message was edited, then deleted, and {seen} is shown. Where an edit is a message of its"
            " own on the platform, delete every one of them"
        )

    async def test_a_deleted_message_is_gone_and_the_others_stay(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.delete, "deletions")
        message = plainest("text", channel.capabilities)
        ref, other = await sent(channel, chat_id, message), await sent(channel, chat_id, message)
        await done(channel.delete(chat_id, ref), "delete")
        refs = [one.ref for one in await messenger.shown()]

        assert ref not in refs, "`delete` returned, and the message is still shown"
        assert other in refs, "`delete` removed another message too"

    async def test_a_message_that_is_gone_is_deleted_again_without_error(
        self, channel: Channel, chat_id: str
    ) -> None:
        needs(channel.capabilities.delete, "deletions")
        ref = await sent(channel, chat_id, plainest("text", channel.capabilities))
        await done(channel.delete(chat_id, ref), "delete")

        await done(
            channel.delete(chat_id, ref),
            "delete of a message that is gone",
            "Treat the platform's 'not found' of a message as success",
        )


def _buttons(channel: Channel, data: str) -> tuple[tuple[Button, ...], ...]:
    return ((Button(data, data=data),),) if channel.capabilities.buttons == "native" else ()
