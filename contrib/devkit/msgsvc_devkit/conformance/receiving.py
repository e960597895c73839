"""Checks that each action of a user becomes an update of the right type, and that nothing stops the bot."""

import pytest

from msgsvc_core.channels import (
    Blocked,
    Channel,
    ChannelNotReady,
    MessageReceived,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.shelf.failed_updates import KINDS, item_of, update_of
from msgsvc_core.service import Service
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import CHANNEL, Stage, needs
from msgsvc_devkit.conformance.verdicts import done

#: Payloads of all boundary lengths, and with each of the 64 allowed characters.
PAYLOADS = (
    "a",
    "-",
    "_",
    "0",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
    "-" * 64,
    "_" * 64,
    "auth_s_0123456789abcdefABCDEF",
)


#: How an update survives being kept.
PLAIN = "its fields must be texts, numbers, booleans, None, or tuples and classes of the contract"


class Receiving(Stage):
    """Links and updates, from polling or a webhook."""

    @pytest.mark.parametrize("payload", PAYLOADS)
    async def test_a_link_brings_its_payload_to_the_bot(
        self, channel: Channel, messenger: Messenger, inbox: Inbox, payload: str
    ) -> None:
        needs(channel.capabilities.start_links, "start links")
        link = channel.deep_link(payload)
        assert channel.link(payload) == link, "`link` is another link than `deep_link`"
        try:
            await messenger.follow(link)
        except ValueError as error:
            pytest.fail(f"`deep_link` made {link!r}, which does not lead to the bot: {error}")
        started = await inbox.expect(Started)

        assert started.payload == payload, (
            f"the link for {payload!r} brought {started.payload!r}; take it as the platform gives it"
        )

    def test_a_link_without_the_profile_is_made_or_said_to_be_not_ready(
        self, service: Service
    ) -> None:
        channel = service.channels[CHANNEL]
        assert channel.profile is None, "a channel begins without a profile; only `check` finds it"
        try:
            link = channel.deep_link("a")
        except ChannelNotReady:
            assert channel.link("a") is None, "`link` is None while `deep_link` can't be made"
        except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
            pytest.fail(
                f"`deep_link` before the first check raised {error!r}; raise ChannelNotReady"
            )
        else:
            assert link, "`deep_link` made an empty link; raise ChannelNotReady"

    async def test_a_start_without_a_link_has_an_empty_payload(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start()
        started = await inbox.expect(Started)

        assert started.payload == "", f"payload is {started.payload!r} where there was none"

    async def test_an_update_names_the_chat_and_the_person(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start("who")
        started, wanted = await inbox.expect(Started), messenger.user

        assert started.chat_id == messenger.chat_id, (
            f"chat_id is {started.chat_id!r}; make it what `send` takes, {messenger.chat_id!r}"
        )
        assert started.user.user_id == wanted.user_id, f"the person is {wanted}, not {started.user}"
        assert started.user.first_name == wanted.first_name, (
            f"the person is called {wanted.first_name!r}, not {started.user.first_name!r}"
        )
        names = {wanted.user_id} if channel.capabilities.addresses else {None, wanted.username}
        assert started.user.username in names, (
            f"username is {started.user.username!r}; make it one of {names}: the address where people are"
            " known by one, else the name without @"
        )
        assert started.user.lang in {None, wanted.lang}, (
            f"the person speaks {wanted.lang!r}, not {started.user.lang!r}"
        )

    @pytest.mark.parametrize("text", ["Hello", "<b>*_😀_*</b> & Привет", "/help", "two\nlines"])
    async def test_a_text_arrives_as_it_was_written(
        self, messenger: Messenger, inbox: Inbox, text: str
    ) -> None:
        await messenger.start()
        await messenger.write(text)
        received = await inbox.expect(MessageReceived)

        assert received.text == text, f"{text!r} was written, {received.text!r} received"

    async def test_updates_come_in_order_each_with_an_id_of_its_own(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start("first")
        updates: list[Update] = [await inbox.expect(Started)]
        for number in range(4):
            await messenger.write(f"text {number}")
        texts = [await inbox.expect(MessageReceived) for _ in range(4)]
        updates += texts
        ids = [update.update_id for update in updates]

        assert [one.text for one in texts] == [f"text {number}" for number in range(4)], (
            f"texts came as {[one.text for one in texts]}"
        )
        assert len(set(ids)) == len(ids), (
            f"update_ids {ids} repeat: the core would take an update for one that it has seen"
        )
        assert all(isinstance(one, str) and one for one in ids), f"update_ids are texts, not {ids}"

    async def test_the_same_thing_twice_is_two_updates(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start("again")
        first = await inbox.expect(Started)
        await messenger.start("again")
        second = await inbox.expect(Started)

        assert first.update_id != second.update_id, (
            f"two starts with one payload have one update_id, {first.update_id!r}"
        )

    async def test_a_block_is_told(self, messenger: Messenger, inbox: Inbox) -> None:
        # Nothing was polled before: the first answer of all has to tell it too.
        await messenger.start()
        await messenger.block()
        blocked = await inbox.expect(
            Blocked,
            "It happened before the first poll (cursor None): a platform that leaves out chats the bot is"
            " no longer in has to be asked for them, as Matrix is by `include_leave`",
        )

        _of_the_person(blocked, messenger)

    async def test_the_end_of_a_block_is_told(self, messenger: Messenger, inbox: Inbox) -> None:
        await messenger.start()
        await messenger.block()
        await messenger.unblock()

        _of_the_person(await inbox.expect(Unblocked), messenger)

    async def test_an_update_is_the_same_once_it_was_kept(
        self, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start("kept")
        updates: list[Update] = [await inbox.expect(Started)]
        await messenger.write("Hello")
        updates.append(await inbox.expect(MessageReceived))
        for update in updates:
            kind = type(update).__name__
            assert kind in KINDS, (
                f"{kind} is no class of msgsvc_core.channels.updates, so it can't be kept on the shelf if a"
                " handler fails: return one of those, not a subclass"
            )
            try:
                again = update_of(kind, item_of(update, RuntimeError()).raw)
            except TypeError as error:
                pytest.fail(f"{update} can't be kept as JSON ({error}): {PLAIN}")
            assert again == update, f"{update} is {again} after it was kept as JSON: {PLAIN}"

    async def test_what_cannot_be_read_arrives_as_such_and_costs_only_itself(
        self, channel: Channel, messenger: Messenger, inbox: Inbox
    ) -> None:
        await messenger.start()
        await inbox.expect(Started)
        await messenger.puzzle()
        await messenger.write("after it")
        received = await inbox.expect(MessageReceived)
        unreadable = [one for one in inbox.passed if isinstance(one, Unreadable)]

        assert received.text == "after it", f"instead of the text after it, {received} came"
        assert unreadable, (
            "updates that can't be read came as nothing, so nobody can look at them: return an Unreadable"
            " with the raw update in place of each"
        )
        for one in unreadable:
            await _kept(channel, one)


async def _kept(channel: Channel, one: Unreadable) -> None:
    """Checks an item that is put on the shelf."""
    assert isinstance(one.raw, bytes), f"raw is the item as it arrived, in bytes, not {one.raw!r}"
    assert one.raw, f"an Unreadable without its raw item can't be looked at or taken: {one}"
    assert isinstance(one.reason, UnreadableReason), f"{one.reason!r} is no UnreadableReason"
    assert one.update_id, f"an Unreadable has an id, so that it is kept once: {one}"
    if not channel.takes_anyway:
        return
    taken = await done(channel.take_anyway(one), "take_anyway")
    assert all(isinstance(each, Update) for each in taken), (
        f"take_anyway returns updates, an Unreadable among them if it still can't be read, not {taken!r}"
    )


def _of_the_person(update: Update, messenger: Messenger) -> None:
    assert update.user.user_id == messenger.user.user_id, f"{update} is not of the person"
    assert update.chat_id == messenger.chat_id, f"{update} is not of the person's chat"
