"""Channels that break one promise each, and the checks of the kit that have to notice: going out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from msgsvc_core.channels import (
    Button,
    Capabilities,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Pace,
    Reason,
)
from msgsvc_core.content.markup import Span
from tests.contracts.pigeon import PigeonChannel, PigeonSettings
from tests.contracts.pigeons import Pigeons


@dataclass(frozen=True)
class Broken:
    """What is broken, the check that notices, and how the channel receives meanwhile."""

    channel: type[PigeonChannel]
    check: str
    receiving: str = "poll"


BROKEN: list[Broken] = []


def breaks(
    *checks: str, receiving: str = "poll"
) -> Callable[[type[PigeonChannel]], type[PigeonChannel]]:
    """Enters a channel for these checks."""

    def enter(channel: type[PigeonChannel]) -> type[PigeonChannel]:
        BROKEN.extend(Broken(channel, check, receiving) for check in checks)
        return channel

    return enter


def edited(**changes: Any) -> Callable[[Any, OutgoingMessage], Any]:
    """A `body` that says something else than the message."""
    return lambda self, message: {**PigeonChannel.body(self, message), **changes}


@breaks("test_a_sent_message_is_shown_and_its_ref_unique_in_the_chat")
class OneRefForAll(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await super().send(chat_id, message)
        return "1"


@breaks(
    "test_a_text_shows_the_same_in_every_format_whatever_it_holds",
    "test_markup_does_not_count_to_the_length",
)
class MarkupAsText(PigeonChannel):
    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        return {**super().body(message), "text": message.text}

    def problem(self, message: OutgoingMessage) -> str | None:
        return "text: long" if len(message.text) > 4096 else None


@breaks("test_a_text_shows_the_same_in_every_format_whatever_it_holds")
class ChokesOnMarkup(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if message.text.count("*") % 2:
            raise DeliveryError(Reason.INVALID_MESSAGE, "can't parse entities")
        return await super().send(chat_id, message)


@breaks("test_a_rich_text_shows_the_same_words_on_every_channel")
class LosesTables(PigeonChannel):
    capabilities = replace(PigeonChannel.capabilities, rich=True)

    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        text, table, _ = message.text.partition("<table>")
        return super().body(replace(message, text=text) if table else message)


@breaks("test_a_rich_text_shows_the_same_words_on_every_channel")
class RefusesRichTexts(PigeonChannel):
    def problem(self, message: OutgoingMessage) -> str | None:
        return "format: rich" if message.format == "rich" else super().problem(message)


@breaks("test_a_preview_has_the_text_that_is_shown_whatever_it_holds")
class PreviewsMarkup(PigeonChannel):
    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return [Span(message.text)]


@breaks("test_no_short_text_is_refused_for_its_markup")
class RefusesMarkup(PigeonChannel):
    def problem(self, message: OutgoingMessage) -> str | None:
        return "text: unbalanced" if message.text.count("*") % 2 else super().problem(message)


@breaks("test_markup_that_shows_nothing_is_refused", "test_a_caption_is_as_long_as_declared")
class NoProblems(PigeonChannel):
    def problem(self, message: OutgoingMessage) -> str | None:
        return None


@breaks(
    "test_a_text_of_the_greatest_length_is_taken_and_shown_whole",
    "test_a_text_that_is_too_long_is_refused_and_never_cut",
    "test_a_caption_is_as_long_as_declared",
)
class Cuts(PigeonChannel):
    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        return {**super().body(message), "text": message.text[:1000]}


@breaks("test_a_text_of_the_greatest_length_is_taken_and_shown_whole")
class CountsCharacters(PigeonChannel):
    """Where the platform counts UTF-16."""

    capabilities = replace(PigeonChannel.capabilities, text_unit="characters")


@breaks("test_a_text_that_is_too_long_is_refused_and_never_cut")
class NamesNoField(PigeonChannel):
    def problem(self, message: OutgoingMessage) -> str | None:
        return "too long" if super().problem(message) else None


@breaks("test_a_file_goes_with_its_text", "test_a_caption_is_as_long_as_declared")
class FilesWithoutText(PigeonChannel):
    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        body = super().body(message)
        return {**body, "text": ""} if message.media else body


@breaks("test_a_silent_message_is_silent_and_another_is_not")
class NeverSilent(PigeonChannel):
    body = edited(silent=False)


@breaks("test_what_the_channel_does_not_take_is_a_problem_of_the_field")
class TakesLessThanItSays(PigeonChannel):
    capabilities = Capabilities(formats=frozenset({"plain"}), media_types=frozenset())

    def problem(self, message: OutgoingMessage) -> str | None:
        return None


@breaks("test_buttons_are_shown_in_their_rows_with_their_labels_and_addresses")
class OneRowOfButtons(PigeonChannel):
    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        body = super().body(message)
        return {**body, "buttons": [[one for row in body["buttons"] for one in row]]}


@breaks("test_a_style_changes_nothing_but_the_colour")
class RefusesStyles(PigeonChannel):
    def problem(self, message: OutgoingMessage) -> str | None:
        if any(button.style for row in message.buttons for button in row):
            return "buttons: there are no styles"
        return super().problem(message)


@breaks("test_buttons_that_nobody_can_answer_are_a_problem")
class ButtonsAllTheSame(PigeonChannel):
    capabilities = Capabilities(buttons="links")

    def problem(self, message: OutgoingMessage) -> str | None:
        return None


@breaks("test_a_pressed_button_is_answered")
class NoNotices(PigeonChannel):
    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await super().answer_button(button_ref)


@breaks(
    "test_a_press_that_nobody_waits_for_is_answered_without_error",
    "test_a_press_that_has_expired_is_answered_without_error",
    "test_an_edit_to_what_is_shown_already_is_no_error",
    "test_a_message_that_is_gone_is_deleted_again_without_error",
)
class NothingIsFine(PigeonChannel):
    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        return await super().call(method, **fields)


@breaks("test_an_edit_replaces_text_and_buttons", "test_an_edit_without_buttons_takes_them_away")
class EditsOnlyText(PigeonChannel):
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        old = self.pigeons.messages[int(message_ref)]["buttons"]
        rows = tuple(tuple(Button(*one) for one in row) for row in old)
        await super().edit(chat_id, message_ref, replace(message, buttons=rows))


@breaks("test_the_text_beside_a_file_is_edited")
class EditsNoCaptions(PigeonChannel):
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        if not message.media:
            await super().edit(chat_id, message_ref, message)


@breaks("test_an_edit_of_a_message_that_is_gone_is_an_invalid_message")
class EditsWhatIsGone(PigeonChannel):
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        if int(message_ref) in self.pigeons.messages:
            await super().edit(chat_id, message_ref, message)


@breaks("test_a_deleted_message_is_gone_and_the_others_stay")
class DeletesNothing(PigeonChannel):
    async def delete(self, chat_id: str, message_ref: str) -> None:
        pass


@breaks("test_a_deleted_message_is_gone_and_the_others_stay")
class DeletesAll(PigeonChannel):
    async def delete(self, chat_id: str, message_ref: str) -> None:
        self.pigeons.messages.clear()


@breaks(
    "test_a_refusal_has_the_reason_that_the_platform_gave",
    "test_a_person_who_blocked_the_bot_gets_nothing",
    "test_a_revoked_bot_is_found_by_check_and_refused_as_banned",
)
class UnknownReasons(PigeonChannel):
    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        try:
            return await super().call(method, fine=fine, **fields)
        except DeliveryError as error:
            raise DeliveryError(Reason.UNKNOWN, error.text) from None


@breaks("test_the_wait_that_the_platform_asks_for_is_kept")
class ForgetsTheWait(PigeonChannel):
    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        try:
            return await super().call(method, fine=fine, **fields)
        except DeliveryError as error:
            raise DeliveryError(error.reason, error.text, in_doubt=error.in_doubt) from None


@breaks("test_a_platform_that_is_away_is_told_by_every_call")
class RaisesWhatItGets(PigeonChannel):
    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        if method != "answer":
            return await super().call(method, fine=fine, **fields)
        status, _ = await self.pigeons.call(self.token, method, **fields)
        if status >= 500:
            raise RuntimeError(status)
        return None


@breaks("test_a_platform_that_is_away_is_told_by_every_call")
class SwallowsFaults(PigeonChannel):
    async def delete(self, chat_id: str, message_ref: str) -> None:
        try:
            await super().delete(chat_id, message_ref)
        except DeliveryError:
            return


@breaks("test_a_refusal_leaves_no_doubt")
class AlwaysInDoubt(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            raise DeliveryError(error.reason, error.text, in_doubt=True) from None


@breaks("test_after_a_fault_the_next_call_succeeds")
class GivesUp(PigeonChannel):
    broken = False

    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        if self.broken:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "broken for good")
        try:
            return await super().call(method, fine=fine, **fields)
        except DeliveryError as error:
            self.broken = error.reason is Reason.PLATFORM_UNAVAILABLE
            raise


@breaks("test_a_cancelled_call_leaves_the_channel_usable")
class KeepsItsLock(PigeonChannel):
    def __init__(
        self, identity: ChannelIdentity, pigeons: Pigeons, settings: PigeonSettings
    ) -> None:
        super().__init__(identity, pigeons, settings)
        self.busy = False

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if self.busy:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "another call is under way")
        self.busy = True
        ref = await super().send(chat_id, message)
        self.busy = False
        return ref


@breaks("test_calls_at_the_same_time_do_not_disturb_each_other")
class SharesItsMessage(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.shared = message
        await asyncio.sleep(0)
        return await super().send(chat_id, self.shared)


@breaks("test_what_the_channel_declares_makes_sense")
class NoPace(PigeonChannel):
    pace = Pace(per_bot_s=0)


@breaks("test_its_settings_say_what_they_mean_and_where_calls_go_is_the_operators")
class LetsProjectsChooseThePlatform(PigeonChannel):
    operator_settings = frozenset()


class SilentSettings(PigeonSettings):
    """One setting without a description."""

    colour: str = "grey"


@breaks("test_its_settings_say_what_they_mean_and_where_calls_go_is_the_operators")
class ExplainsNoSettings(PigeonChannel):
    settings = SilentSettings


@breaks("test_a_check_of_a_bot_that_works_says_who_it_is")
class Nobody(PigeonChannel):
    def deep_link(self, payload: str) -> str:
        return f"https://pigeon.example/pigeon_bot?start={payload}"

    async def check(self) -> ChannelHealth:
        return replace(await super().check(), profile=None)


@breaks("test_a_check_of_a_platform_that_is_away_does_not_raise")
class RaisesInCheck(PigeonChannel):
    async def check(self) -> ChannelHealth:
        await self.call("me")
        return await super().check()


@breaks("test_a_check_of_a_platform_that_is_away_does_not_raise")
class TakesAwayForRevoked(PigeonChannel):
    async def check(self) -> ChannelHealth:
        health = await super().check()
        return replace(health, revoked=not health.ok)


@breaks("test_a_revoked_bot_is_found_by_check_and_refused_as_banned")
class NeverRevoked(PigeonChannel):
    async def check(self) -> ChannelHealth:
        return replace(await super().check(), revoked=False)


@breaks("test_no_secret_shows_in_what_the_channel_says_and_logs")
class KeepsTheCause(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            await self.pigeons.call(self.token, "me")
        except ConnectionError as error:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "broken") from error
        return await super().send(chat_id, message)


@breaks("test_no_secret_shows_in_what_the_channel_says_and_logs")
class ShowsItsToken(PigeonChannel):
    def __repr__(self) -> str:
        return f"<bot {self.token}>"


@breaks("test_a_channel_is_closed_twice_and_unused")
class ClosesOnce(PigeonChannel):
    closed = False

    async def close(self) -> None:
        # The service's own, after the check, is let pass.
        if self.closed:
            self.closed = False
            raise RuntimeError("closed already")
        self.closed = True
