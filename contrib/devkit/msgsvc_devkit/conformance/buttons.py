"""Checks that buttons have the right targets, and that a press returns its exact data."""

from dataclasses import replace
from typing import get_args

import pytest

from msgsvc_core.channels import Button, ButtonPressed, Channel
from msgsvc_core.content.outgoing import ButtonStyle
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs, plainest, sent, shown_as
from msgsvc_devkit.conformance.verdicts import done

#: Data of buttons: 64 bytes of every kind, and values that resemble other formats.
BUTTON_DATA = (
    "x" * 64,
    "я" * 32,
    "😀" * 16,
    "~auth_y_1.2-3",
    '{"a": [1, "<b>"]}',
    "a&b=c%20d;e",
    " space ",
)


class Buttons(Stage):
    """Buttons under messages, presses of them, and `answer_button`."""

    async def test_buttons_are_shown_in_their_rows_with_their_labels_and_addresses(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        rows = (
            (Button("Yes 👍", data="yes"), Button("<b>No</b> *", data="no")),
            (Button("Site", url="https://shop.example/a_b?c=*d*&e=%20f#g"),),
            (Button("1", data="1"), Button("2", data="2"), Button("3", data="3")),
        )
        ref = await sent(channel, chat_id, plainest("choose", channel.capabilities, buttons=rows))
        message = await shown_as(messenger, ref)
        seen = message.buttons

        if messenger.keeps_rows:
            assert seen == rows, f"buttons {rows} are shown as {seen}"
            return
        flat = [button for row in seen for button in row]
        wanted = [button for row in rows for button in row if button.data is not None]
        assert [button for button in flat if button.data is not None] == wanted, (
            f"buttons {rows} are shown as {seen}; keep their order, labels and data"
        )
        [site] = rows[1]
        assert site in flat or f"{site.text}: {site.url}" in message.text, (
            f"{site} is neither a button nor a line of the text {message.text!r}"
        )

    async def test_a_style_changes_nothing_but_the_colour(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        rows = tuple((Button(style, data=style, style=style),) for style in get_args(ButtonStyle))
        message = plainest("choose", channel.capabilities, buttons=rows)
        assert channel.problem(message) is None, "a messenger without styles shows any button"
        shown = await shown_as(messenger, await sent(channel, chat_id, message))
        seen = [replace(button, style=None) for row in shown.buttons for button in row]

        assert seen == [replace(button, style=None) for row in rows for button in row], (
            f"buttons {rows} are shown as {shown.buttons}; leave out a style that the platform has not"
        )

    def test_buttons_that_nobody_can_answer_are_a_problem(self, channel: Channel) -> None:
        if channel.capabilities.answers:
            pytest.skip("people can answer on this channel")
        message = plainest("text", channel.capabilities, buttons=((Button("Yes", data="y"),),))
        problem = channel.problem(message)

        assert (problem or "").startswith("buttons"), (
            f"`problem` says {problem!r} of buttons that the channel can't show; name the field"
        )

    @pytest.mark.parametrize("data", BUTTON_DATA)
    async def test_a_press_brings_back_the_data_and_names_the_message(
        self, channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox, data: str
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        ref, pressed = await pressed_button(channel, messenger, chat_id, inbox, data)

        assert pressed.data == data, f"data {data!r} came back as {pressed.data!r}; change nothing"
        assert pressed.message_ref == ref, (
            f"message_ref is {pressed.message_ref!r}; make it what `send` returned, {ref!r}"
        )
        assert (pressed.chat_id, pressed.user.user_id) == (chat_id, messenger.user.user_id), (
            f"the press is said to be of {pressed.user} in the chat {pressed.chat_id!r}"
        )

    @pytest.mark.parametrize("notice", [None, "Done 👍"], ids=["no notice", "a notice"])
    async def test_a_pressed_button_is_answered(
        self,
        channel: Channel,
        messenger: Messenger,
        chat_id: str,
        inbox: Inbox,
        notice: str | None,
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        needs(channel.capabilities.notices, "notices")
        _, pressed = await pressed_button(channel, messenger, chat_id, inbox, "yes")
        await done(channel.answer_button(pressed.button_ref, notice), "answer_button")
        seen = list(await messenger.notices())

        assert seen == [notice or ""], f"answered with {notice!r}, the person saw {seen}"

    async def test_a_press_that_nobody_waits_for_is_answered_without_error(
        self, channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        needs(channel.capabilities.notices, "notices")
        _, pressed = await pressed_button(channel, messenger, chat_id, inbox, "yes")
        await done(channel.answer_button(pressed.button_ref), "answer_button")
        advice = "Treat what the platform says of a press that is over as success"

        await done(channel.answer_button(pressed.button_ref), "a second answer_button", advice)

    async def test_a_press_that_has_expired_is_answered_without_error(
        self, channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox
    ) -> None:
        needs(channel.capabilities.buttons == "native", "buttons")
        needs(channel.capabilities.notices, "notices")
        _, pressed = await pressed_button(channel, messenger, chat_id, inbox, "yes")
        await messenger.forget_presses()
        advice = "Treat what the platform says of a press that is over as success"

        await done(channel.answer_button(pressed.button_ref), "a late answer_button", advice)


async def pressed_button(
    channel: Channel, messenger: Messenger, chat_id: str, inbox: Inbox, data: str
) -> tuple[str, ButtonPressed]:
    """The `ref` of a message with a button with `data`, and the user's press of it."""
    buttons = ((Button("Other", data="other"), Button("Press", data=data)),)
    ref = await sent(channel, chat_id, plainest("press", channel.capabilities, buttons=buttons))
    await messenger.press(ref, data)
    return ref, await inbox.expect(ButtonPressed)
