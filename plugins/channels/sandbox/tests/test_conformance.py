"""The sandbox keeps the contract of channels, and that of plugins."""

from collections.abc import Sequence

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason, Update
from msgsvc_core.service import Service
from msgsvc_devkit import ChannelContract, Fault, Messenger, PluginContract, Shown, cannot
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_sandbox import plugin
from msgsvc_sandbox.mini_app import sign
from msgsvc_sandbox.models import Fault as Switches
from msgsvc_sandbox.service import Messenger as SandboxMessenger

NAME = "messenger_a"


class SandboxSide(Messenger):
    """A person of the sandbox messenger, in process."""

    def __init__(self, service: Service, person: SandboxPerson) -> None:
        self._service = service
        self._messenger = service.get(SandboxMessenger)
        self._person = person
        self._told: list[Update] = []
        service.inbound.receive = self._hear
        self.chat_id = person.person_id
        self.user = ChannelUser(person.person_id, "Anna", "anna", "ru")

    async def _hear(self, _channel: str, update: Update) -> None:
        self._told.append(update)

    async def told(self) -> Sequence[Update]:
        told, self._told = self._told, []
        return told

    async def follow(self, link: str) -> None:
        await self._person.open(link)

    async def start(self, payload: str = "") -> None:
        await self._person.start(NAME, payload)

    async def write(self, text: str) -> None:
        self._last = await self._person.say(text, channel=NAME)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        self._last = await self._person.send_file(filename, content, text, channel=NAME)

    async def edit_text(self, text: str) -> None:
        await self._person.edit(self._last, text)

    async def reply(self, ref: str, text: str) -> None:
        await self._person.say(text, channel=NAME, reply_to=ref)

    async def press(self, ref: str, data: str) -> None:
        message = next(one for one in await self._person.messages(NAME) if one.ref == ref)
        places = [
            (row, column)
            for row, buttons in enumerate(message.buttons)
            for column, button in enumerate(buttons)
            if button.data == data
        ]
        await self._messenger.press(self.chat_id, NAME, ref, *places[0])

    async def block(self) -> None:
        await self._person.block(NAME)

    async def unblock(self) -> None:
        await self._person.unblock(NAME)

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                one.ref,
                one.text,
                tuple(tuple(Button(b.text, b.url, b.data) for b in row) for row in one.buttons),
                one.media.type if one.media else None,
                one.silent,
            )
            for one in await self._person.messages(NAME)
        ]

    async def notices(self) -> Sequence[str]:
        state = await self._messenger.state(self.chat_id)
        return [chat.notice for chat in state.chats]

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        if not of_other_bot:
            return await self._person.open_mini_app(NAME, payload)
        return sign(self._service.secrets, "other_bot", self._person.profile, payload, 10**12)

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        switches = {"reason": reason.value, "remaining": 1}
        if retry_after_s is not None:
            switches["retry_after_s"] = int(retry_after_s)
        await self._messenger.set_fault(NAME, Switches(**switches))

    async def break_next(self, fault: Fault) -> None:
        if fault == "hang":
            await self._messenger.set_fault(NAME, Switches(delay_s=60, remaining=1))
        elif fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            cannot("there is no connection between the sandbox and its bots that could break")

    async def kill(self) -> None:
        cannot("the sandbox has no server of its own: it ends with the service")

    async def restart(self) -> None:
        cannot("the sandbox has no server of its own: it ends with the service")

    async def revoke(self) -> None:
        await self._messenger.set_fault(NAME, Switches(reason="bot_banned"))

    async def puzzle(self) -> None:
        cannot("the sandbox calls the core with updates, of which all are known")


@pytest.mark.both_databases(
    "test_a_block_is_told",
    "test_a_file_is_fetched_once_the_platform_is_back",
    "test_a_person_who_blocked_the_bot_gets_nothing",
    "test_calls_at_the_same_time_do_not_disturb_each_other",
    "test_the_end_of_a_block_is_told",
    "test_the_text_beside_a_file_is_edited",
)
class TestSandbox(ChannelContract):
    plugin = plugin
    kind = "sandbox"

    @pytest.fixture
    async def service(self, make_service) -> Service:
        return await make_service(
            extra_plugins=[("sandbox", plugin)], channels={NAME: {"plugin": "sandbox"}}
        )

    @pytest.fixture
    async def messenger(self, service: Service) -> Messenger:
        sandbox = Sandbox.in_process(service)
        return SandboxSide(service, await sandbox.person("Anna", username="anna", lang="ru"))


class TestSandboxPlugin(PluginContract):
    plugin = plugin
    name = "sandbox"
    tables_without_project = frozenset(
        {
            "sandbox_people",
            "sandbox_chats",
            "sandbox_messages",
            "sandbox_faults",
            "sandbox_files",
            "sandbox_file_chunks",
        }
    )
