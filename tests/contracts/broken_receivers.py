"""Channels that break one promise each, and the checks of the kit that have to notice: coming in."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any

from msgsvc_core.channels import (
    ButtonPressed,
    InvalidMiniApp,
    InvalidWebhook,
    MessageReceived,
    MiniAppUser,
    Polled,
    Started,
    Unblocked,
    Unreadable,
    Update,
    WebhookCall,
    WebhookHealth,
)
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel
from tests.contracts.pigeons import HEADER, SIGNATURE, signature_of


@breaks("test_a_press_brings_back_the_data_and_names_the_message")
class ChangesData(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, data=read.data.strip()) if isinstance(read, ButtonPressed) else read


@breaks("test_a_press_brings_back_the_data_and_names_the_message")
class NamesNoMessage(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, message_ref="") if isinstance(read, ButtonPressed) else read


@breaks("test_a_link_brings_its_payload_to_the_bot")
class ShortensPayloads(PigeonChannel):
    def deep_link(self, payload: str) -> str:
        return super().deep_link(payload[:63])


@breaks("test_a_link_brings_its_payload_to_the_bot")
class LeadsElsewhere(PigeonChannel):
    def deep_link(self, payload: str) -> str:
        return f"https://pigeon.example/other_bot?start={payload}"


@breaks("test_a_link_without_the_profile_is_made_or_said_to_be_not_ready")
class FailsWithoutProfile(PigeonChannel):
    def deep_link(self, payload: str) -> str:
        return f"https://pigeon.example/{self.profile.username}?start={payload}"  # type: ignore[union-attr] # the mistake


@breaks("test_a_start_without_a_link_has_an_empty_payload")
class StartsWithACommand(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return (
            replace(read, payload=read.payload or "/start") if isinstance(read, Started) else read
        )


@breaks("test_an_update_names_the_chat_and_the_person", "test_a_block_is_told")
class TakesThePersonForTheChat(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, chat_id=read.user.user_id)


@breaks("test_a_text_arrives_as_it_was_written")
class LosesCommands(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return (
            replace(read, text=read.text.lstrip("/")) if isinstance(read, MessageReceived) else read
        )


@breaks("test_updates_come_in_order_each_with_an_id_of_its_own")
class TurnsUpdatesRound(PigeonChannel):
    async def poll_updates(self, cursor: str | None) -> Polled:
        polled = await super().poll_updates(cursor)
        return replace(polled, updates=polled.updates[::-1])


@breaks(
    "test_updates_come_in_order_each_with_an_id_of_its_own",
    "test_the_same_thing_twice_is_two_updates",
    "test_a_platform_that_misbehaves_loses_and_doubles_nothing",
)
class NumbersByPerson(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, update_id=read.user.user_id)


@breaks("test_the_end_of_a_block_is_told")
class MissesTheEndOfABlock(PigeonChannel):
    def read(self, update: Any) -> Update | None:
        read = super().read(update)
        return None if isinstance(read, Unblocked) else read


@dataclass(frozen=True, slots=True, kw_only=True)
class WithItsSource(MessageReceived):
    """A text, and what it was read from."""

    source: object


@breaks("test_an_update_is_the_same_once_it_was_kept")
class AddsTheSource(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        if not isinstance(read, MessageReceived):
            return read
        values = {each.name: getattr(read, each.name) for each in fields(read)}
        return WithItsSource(**values, source=self)


@breaks("test_an_update_is_the_same_once_it_was_kept")
class RefersToAList(PigeonChannel):
    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, refers_to=["m1"]) if isinstance(read, MessageReceived) else read


@breaks("test_what_cannot_be_read_arrives_as_such_and_costs_only_itself")
class StopsAtTheUnknown(PigeonChannel):
    def read(self, update: Any) -> Update | None:
        return self.typed(update)


@breaks("test_what_cannot_be_read_arrives_as_such_and_costs_only_itself")
class SkipsInSilence(PigeonChannel):
    def read(self, update: Any) -> Update | None:
        try:
            return self.typed(update)
        except Exception:  # noqa: BLE001 - the mistake
            return None


@breaks("test_what_cannot_be_read_arrives_as_such_and_costs_only_itself")
class TakesNullForAText(PigeonChannel):
    def text(self, found: Any) -> str:
        return str(found)


@breaks("test_what_cannot_be_read_arrives_as_such_and_costs_only_itself")
class KeepsNothingOfIt(PigeonChannel):
    def read(self, update: Any) -> Update | None:
        read = super().read(update)
        return replace(read, raw=b"") if isinstance(read, Unreadable) else read


@breaks("test_what_cannot_be_read_arrives_as_such_and_costs_only_itself")
class FailsToTakeIt(PigeonChannel):
    async def take_anyway(self, item: Unreadable) -> list[Update]:
        return [self.typed(json.loads(item.raw))]


@breaks("test_polling_what_was_not_acknowledged_comes_again")
class AcknowledgesAtOnce(PigeonChannel):
    async def poll_updates(self, cursor: str | None) -> Polled:
        polled = await super().poll_updates(cursor)
        self.pigeons.updates.clear()
        return polled


@breaks("test_polling_what_was_acknowledged_does_not_come_again")
class NeverAcknowledges(PigeonChannel):
    async def poll_updates(self, cursor: str | None) -> Polled:
        return replace(await super().poll_updates(None), cursor="0")


@breaks("test_polling_an_old_cursor_after_a_restart_goes_on_where_it_was")
class KeepsItsOwnPlace(PigeonChannel):
    place = 0

    async def poll_updates(self, cursor: str | None) -> Polled:
        polled = await super().poll_updates(str(max(self.place, int(cursor or 0))))
        self.place = int(polled.cursor or 0)
        return polled


@breaks("test_polling_after_a_long_time_misses_nothing")
class LeavesOutWhatIsOld(PigeonChannel):
    async def poll_updates(self, cursor: str | None) -> Polled:
        polled = await super().poll_updates(cursor)
        return replace(polled, updates=polled.updates[-50:])


@breaks("test_polling_waits_and_is_cancelled_without_harm")
class PollsOnce(PigeonChannel):
    polling = False

    async def poll_updates(self, cursor: str | None) -> Polled:
        if self.polling:
            raise RuntimeError("polled already")
        self.polling = True
        polled = await super().poll_updates(cursor)
        self.polling = False
        return polled


@breaks("test_polling_begins_where_a_webhook_was_set")
class LeavesTheWebhook(PigeonChannel):
    async def poll_updates(self, cursor: str | None) -> Polled:
        return await super().poll_updates(cursor or "0")


@breaks("test_webhook_call_with_the_secret_brings_its_update", receiving="webhook")
class TakesNothing(PigeonChannel):
    def parse_update(self, call: WebhookCall) -> list[Update]:
        return []


@breaks("test_webhook_call_twice_has_the_same_update_id", receiving="webhook")
class CountsCalls(PigeonChannel):
    count = 0

    def parse_update(self, call: WebhookCall) -> list[Update]:
        self.count += 1
        return [replace(one, update_id=str(self.count)) for one in super().parse_update(call)]


@breaks("test_webhook_call_with_a_secret_of_before_is_taken", receiving="webhook")
class OnlyTheNewestSecret(PigeonChannel):
    def parse_update(self, call: WebhookCall) -> list[Update]:
        return super().parse_update(replace(call, secrets=call.secrets[:1]))


@breaks("test_webhook_call_that_does_not_prove_itself_is_refused", receiving="webhook")
class TrustsEverybody(PigeonChannel):
    def parse_update(self, call: WebhookCall) -> list[Update]:
        read = self.read(json.loads(call.body))
        return [read] if read else []


@breaks("test_webhook_call_that_does_not_prove_itself_is_refused", receiving="webhook")
class ComparesTheBeginning(PigeonChannel):
    def parse_update(self, call: WebhookCall) -> list[Update]:
        given = call.headers.get(HEADER, "")
        proven = any(given.startswith(secret) for secret in call.secrets)
        return super().parse_update(replace(call, secrets=(given,) if proven else ()))


class Signed(PigeonChannel):
    """Verifies the platform's signature, in place of the secret."""

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if not self.is_signed(call):
            raise InvalidWebhook("wrong signature")
        read = self.read(json.loads(call.body))
        return [read] if read else []

    def is_signed(self, call: WebhookCall) -> bool:
        return call.headers.get(SIGNATURE) == signature_of(call.body)


@breaks("test_webhook_call_that_is_not_signed_is_refused", receiving="webhook")
class TakesAnySignature(Signed):
    def is_signed(self, call: WebhookCall) -> bool:
        return SIGNATURE in call.headers


@breaks("test_webhook_call_that_is_not_signed_is_refused", receiving="webhook")
class TakesTheBeginningOfASignature(Signed):
    def is_signed(self, call: WebhookCall) -> bool:
        return signature_of(call.body).startswith(call.headers.get(SIGNATURE, "none"))


@breaks("test_webhook_secret_is_replaced_by_setting_it_again", receiving="webhook")
class SetsTheWebhookOnce(PigeonChannel):
    done = False

    async def set_webhook(self, url: str, secret: str) -> None:
        if not self.done:
            await super().set_webhook(url, secret)
        self.done = True


@breaks("test_webhook_that_was_set_is_found_well", receiving="webhook")
class DoubtsEveryWebhook(PigeonChannel):
    async def check_webhook(self, url: str) -> WebhookHealth:
        return WebhookHealth(ok=False, detail="the platform tells nothing")


@breaks("test_webhook_call_that_holds_no_update_gives_none", receiving="webhook")
class ChokesOnGarbage(PigeonChannel):
    def parse_update(self, call: WebhookCall) -> list[Update]:
        if call.has_secret(HEADER):
            json.loads(call.body)
        return super().parse_update(call)


@breaks("test_mini_app_says_who_opened_it")
class SecondsForMilliseconds(PigeonChannel):
    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        found = super().verify_mini_app(init_data)
        return replace(found, signed_at_ms=found.signed_at_ms // 1000)


@breaks(
    "test_mini_app_data_that_was_changed_is_refused",
    "test_mini_app_data_of_another_bot_is_refused",
    "test_mini_app_data_that_is_none_is_refused",
)
class BelievesMiniApps(PigeonChannel):
    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        try:
            return super().verify_mini_app(init_data)
        except InvalidMiniApp:
            return MiniAppUser(self.anybody, 0)

    @property
    def anybody(self) -> Any:
        return self.typed({"id": 1, "kind": "block", "from": dict.fromkeys(_FIELDS, "x")}).user


@breaks("test_mini_app_data_that_is_none_is_refused")
class FailsOnMiniApps(PigeonChannel):
    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        if not init_data:
            raise KeyError("hash")
        return super().verify_mini_app(init_data)


_FIELDS = ("id", "name", "username", "lang")
