"""Channels that break one promise each about threads, and the checks of the kit that have to notice."""

from dataclasses import replace
from typing import Any

from msgsvc_core.channels import OutgoingMessage, Update
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


@breaks("test_messages_are_in_the_thread_that_they_name")
class WritesBeside(PigeonChannel):
    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        return {**super().body(message), "thread": None}


@breaks("test_messages_are_in_the_thread_that_they_name")
class OpensNothing(PigeonChannel):
    async def open_thread(self, chat_id: str, title: str) -> str | None:
        return None


@breaks("test_a_thread_has_a_title_of_any_length")
class CutsNoTitle(PigeonChannel):
    async def open_thread(self, chat_id: str, title: str) -> str | None:
        return str(await self.call("thread", chat=chat_id, title=title))


class Told(PigeonChannel):
    """Changes the thread of each update."""

    def thread(self, known: str | None) -> str | None:
        return None

    def typed(self, update: Any) -> Update:
        read = super().typed(update)
        return replace(read, thread=self.thread(read.thread))


@breaks("test_what_the_user_writes_in_a_thread_names_it")
class TellsNoThread(Told):
    pass


@breaks("test_what_the_user_writes_in_a_thread_names_it")
class TellsThreadsAlways(Told):
    def thread(self, known: str | None) -> str | None:
        return known or "t0"


@breaks("test_a_message_to_a_thread_that_is_gone_is_shown_beside_it")
class GivesUp(PigeonChannel):
    async def post(self, chat_id: str, message: OutgoingMessage, **more: Any) -> str:
        return str(await self.call("send", chat=chat_id, body=self.body(message), **more))
