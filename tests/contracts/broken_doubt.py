"""Channels that break one promise each, and the checks of the kit that have to notice: what is shown once."""

import hashlib
from typing import Any

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel, RepeatablePigeonChannel

SAME_KEY = "test_the_same_key_twice_is_one_message_and_another_key_another"
SENT_AGAIN = "test_a_message_whose_answer_was_lost_is_sent_again_and_shown_once"


@breaks("test_a_message_that_may_have_arrived_is_in_doubt")
class NeverInDoubt(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            raise DeliveryError(error.reason, error.text, error.retry_after_s) from None


@breaks("test_a_message_that_may_have_arrived_is_in_doubt")
class OnlyBrokenConnectionsAreInDoubt(PigeonChannel):
    """What the scaffold once did: answers of gateways and rubbish were taken for refusals."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            is_broken = error.text == "the connection broke"
            raise DeliveryError(
                error.reason, error.text, error.retry_after_s, in_doubt=is_broken
            ) from None


@breaks("test_a_message_that_may_have_arrived_is_in_doubt")
class RepeatsWithoutAKey(PigeonChannel):
    """What HTTP clients do by themselves: the message is shown twice."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            if not error.in_doubt:
                raise
        return await super().send(chat_id, message)


@breaks("test_a_message_that_may_have_arrived_is_in_doubt")
class ClearsUpItsOwnDoubt(RepeatablePigeonChannel):
    """It could repeat, and tells the core that nothing can have been shown."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            raise DeliveryError(error.reason, error.text, error.retry_after_s) from None


@breaks("test_a_server_that_does_not_listen_leaves_no_doubt")
class EveryFailureIsInDoubt(PigeonChannel):
    async def call(self, method: str, *, fine: Any = (), **fields: Any) -> Any:
        try:
            return await super().call(method, fine=fine, **fields)
        except DeliveryError as error:
            doubtful = error.reason is Reason.PLATFORM_UNAVAILABLE
            raise DeliveryError(error.reason, error.text, in_doubt=doubtful) from None


@breaks(SAME_KEY, SENT_AGAIN)
class KeepsTheKeyToItself(PigeonChannel):
    """It says that it can repeat, and hands no key on."""

    capabilities = RepeatablePigeonChannel.capabilities


@breaks(SAME_KEY)
class KeysByContent(RepeatablePigeonChannel):
    """Two messages with the same words become one."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        key = hashlib.sha256(message.text.encode()).hexdigest()
        return await super().send(chat_id, message.with_key(key))


@breaks(SAME_KEY)
class RemembersByItself(PigeonChannel):
    """It knows what it has sent as long as it lives."""

    capabilities = RepeatablePigeonChannel.capabilities

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        refs: dict[str, str] = self.__dict__.setdefault("refs", {})
        if message.key not in refs:
            refs[message.key] = await super().send(chat_id, message)
        return refs[message.key]


@breaks("test_a_chat_that_the_person_has_left_gets_nothing")
class WritesIntoEmptyRooms(PigeonChannel):
    """The platform takes messages for a room with nobody in it."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.pigeons.chats.add(chat_id)
        return await super().send(chat_id, message)


@breaks("test_a_chat_that_the_person_has_left_gets_nothing")
class TakesLeavingForABadMessage(PigeonChannel):
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            if error.reason is not Reason.CHAT_NOT_FOUND:
                raise
        raise DeliveryError(Reason.INVALID_MESSAGE, "refused")


@breaks("test_an_edit_after_a_deletion_does_not_bring_the_message_back")
class RevivesByEditing(PigeonChannel):
    """It is told that the message is gone, and shows it again all the same."""

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        try:
            await super().edit(chat_id, message_ref, message)
        except DeliveryError:
            await super().send(chat_id, message)
            raise


@breaks("test_a_deletion_takes_the_edits_of_the_message_along")
class EditsAreMessagesOfTheirOwn(PigeonChannel):
    """As on Matrix: who redacts the first event alone leaves those that replaced its content."""

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await super().edit(chat_id, message_ref, message)
        self.__dict__.setdefault("replacing", {})[message_ref] = self.body(message)

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await super().delete(chat_id, message_ref)
        left = self.__dict__.get("replacing", {}).pop(message_ref, None)
        if left is not None:
            self.pigeons.messages[self.pigeons.number()] = left
