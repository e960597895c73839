"""One bot of the sandbox messenger: the implementation of the channel contract."""

from typing import IO

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    MiniAppUser,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.content.markup import Span
from msgsvc_sandbox import files
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.formatting import to_spans
from msgsvc_sandbox.links import start_link
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.mini_app import read
from msgsvc_sandbox.settings import SandboxChannelSettings

#: Faults of the whole bot, which `check` reports too.
BOT_FAULTS = frozenset({Reason.BOT_BANNED, Reason.PLATFORM_UNAVAILABLE})


class SandboxChannel(Channel):
    """Writes messages into people's chats, subject to its simulated faults."""

    capabilities = Capabilities(
        edit_media=True,
        mini_app=True,
        receives_files=True,
        tells_replies=True,
        repeatable=True,
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: SandboxChannelSettings
    ) -> None:
        super().__init__(identity)
        self._context = context
        self.title = settings.title or self.name.replace("_", " ").title()

    # Channels are made before the plugins' objects, so these are looked up when they are needed.
    @property
    def _mailbox(self) -> Mailbox:
        return self._context.provided(Mailbox)

    @property
    def _faults(self) -> Faults:
        return self._context.provided(Faults)

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await self._faults.suffer(self.key)
        return await self._mailbox.add(self.key, chat_id, message)

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self._faults.suffer(self.key)
        await self._mailbox.replace(self.key, chat_id, message_ref, message)

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await self._faults.suffer(self.key)
        await self._mailbox.remove(self.key, chat_id, message_ref)

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return [
            Span(span.text, tuple(span.marks), span.href)
            for span in to_spans(message.text, message.format)
        ]

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await self._faults.suffer(self.key)
        await self._mailbox.answer(self.key, button_ref, text)

    def deep_link(self, payload: str) -> str:
        return start_link(self._context.base_url, self.key, payload)

    async def check(self) -> ChannelHealth:
        fault = await self._faults.get(self.key)
        if fault.reason is not None and Reason(fault.reason) in BOT_FAULTS:
            return ChannelHealth(
                ok=False,
                detail=f"switched to {fault.reason}",
                revoked=Reason(fault.reason) is Reason.BOT_BANNED,
                unreachable=Reason(fault.reason).retryable,
            )
        return ChannelHealth(ok=True, detail=self.title, profile=BotProfile(self.title))

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        await self._faults.suffer(self.key)
        await files.fetch(self._context.db, self.key, file_ref, into, max_bytes)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        return read(self._context.secrets, self.key, init_data)
