"""Checks of threads in a chat, e.g. topics."""

from msgsvc_core.channels import Channel, MessageReceived
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs, plainest, sent, shown_as
from msgsvc_devkit.conformance.verdicts import done


class Threads(Stage):
    """`open_thread`, and messages in threads both ways, where `capabilities.threads` says so."""

    async def test_messages_are_in_the_thread_that_they_name(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        one = await _opened(channel, chat_id, "#1 My parcel")
        other = await _opened(channel, chat_id, "#2 My invoice")
        takes = channel.capabilities
        for thread in (one, other, None):
            ref = await sent(channel, chat_id, plainest("hello", takes).in_thread(thread))
            found = (await shown_as(messenger, ref)).thread
            assert found == thread, (
                f"a message with thread={thread!r} is in {found!r}: pass `message.thread` to the platform"
            )

        assert one != other, f"`open_thread` returned {one!r} for two threads of a chat"

    async def test_a_thread_has_a_title_of_any_length(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        threads = [await _opened(channel, chat_id, "😀 long" * length) for length in (20, 500)]

        assert len(set(threads)) == len(threads)

    async def test_what_the_user_writes_in_a_thread_names_it(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, chat_id: str
    ) -> None:
        thread = await _opened(channel, chat_id, "#1 My parcel")
        await messenger.write_in(thread, "in it")
        inside = await inbox.expect(MessageReceived)
        await messenger.write("beside it")
        beside = await inbox.expect(MessageReceived)

        assert (inside.text, inside.thread) == ("in it", thread), (
            f"`open_thread` returned {thread!r}, and the update names {inside.thread!r}"
        )
        assert (beside.text, beside.thread) == ("beside it", None), (
            f"the message is in no thread, and the update names {beside.thread!r}"
        )

    async def test_a_message_to_a_thread_that_is_gone_is_shown_beside_it(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        thread = await _opened(channel, chat_id, "#1 My parcel")
        await messenger.end_thread(thread)
        message = plainest("for you all the same", channel.capabilities).in_thread(thread)
        ref = await sent(channel, chat_id, message)

        shown = await shown_as(messenger, ref)
        assert (shown.text.strip(), shown.thread) == ("for you all the same", None)


async def _opened(channel: Channel, chat_id: str, title: str) -> str:
    __tracebackhide__ = True
    needs(channel.capabilities.threads, "threads")
    thread = await done(channel.open_thread(chat_id, title), "open_thread")
    assert isinstance(thread, str), (
        f"`open_thread` returned {thread!r}; the settings of `Messenger` are for a bot that has threads"
    )
    assert thread, "`open_thread` returned an empty id"
    return thread
