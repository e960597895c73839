"""What the conformance kit needs of a platform: a person who uses the bot, and faults to order."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason, Update

#: How the platform's side of one call breaks: an answer with a status of 500 or more, and nothing is done.
#: With all others the call is done, and its answer is lost: a gateway's 504, which gave up waiting; a status
#: of success whose body is not what it should be; a connection that ends without an answer; none for long.
Fault = Literal["5xx", "504", "garbage", "reset", "hang"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as the person sees it: `text` is without markup.

    `silent` is None where the platform does not show it.
    """

    ref: str
    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    media_type: MediaType | None = None
    silent: bool | None = None


def cannot(what: str) -> NoReturn:
    """Skips the check: the platform has nothing like it. `what` says so in a sentence."""
    pytest.skip(what)


class Messenger(ABC):
    """A fake platform, seen by its one person, who has not started the bot yet.

    A method's effect has happened when the call returns; its updates may still be pending.
    It does not limit how often it is called, except by `fail_next`. Where the platform has nothing
    like what a method does, the method calls `cannot` with the reason, which skips the check.
    """

    #: What stands in `[channels.<name>]` beside `plugin`, so that the channel talks to this platform.
    settings: Mapping[str, Any]

    #: The person as the platform describes them in updates.
    user: ChannelUser

    #: Their chat with the bot, as `send` takes it.
    chat_id: str

    # ---- the person -----------------------------------------------------------------------------

    @abstractmethod
    async def follow(self, link: str) -> None:
        """Opens a link of `deep_link` and presses Start. Raises ValueError for one to anywhere else."""

    @abstractmethod
    async def start(self, payload: str = "") -> None:
        """Presses Start, as a link with that payload would have it; opens the chat where no link has one."""

    @abstractmethod
    async def write(self, text: str) -> None:
        """Writes to the bot."""

    @abstractmethod
    async def press(self, ref: str, data: str) -> None:
        """Presses the button that carries `data`, of the message `ref`."""

    @abstractmethod
    async def block(self) -> None:
        """Stops or blocks the bot."""

    @abstractmethod
    async def unblock(self) -> None:
        """Lets the bot write again, without pressing Start."""

    @abstractmethod
    async def shown(self) -> Sequence[Shown]:
        """What the bot has said and not deleted, the oldest first."""

    @abstractmethod
    async def notices(self) -> Sequence[str]:
        """What pressed buttons were answered with, in order; an empty text where there was none."""

    # ---- the platform ---------------------------------------------------------------------------

    @abstractmethod
    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        """The bot's next call is refused, in the platform's words, for this reason."""

    @abstractmethod
    async def break_next(self, fault: Fault) -> None:
        """The bot's next call breaks; `Fault` says what is done before."""

    @abstractmethod
    async def kill(self) -> None:
        """The platform's server dies: connections end, calls in hand too, and nothing listens any more."""

    @abstractmethod
    async def restart(self) -> None:
        """It listens again where it did, and knows all that it had done."""

    @abstractmethod
    async def revoke(self) -> None:
        """From now on the platform takes the bot's token no more."""

    @abstractmethod
    async def puzzle(self) -> None:
        """Sends the bot what it can't know: an update of a kind that is new, and a broken one."""

    async def leave(self) -> None:
        """Leaves the chat with the bot, or the platform, without blocking the bot."""
        cannot("people can't leave a chat on this platform but by blocking the bot")

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        """Sends the bot a file of that type, with a text beside it or without.

        Where people can't send files of that type, or none with a text, it calls `cannot`.
        """
        # Not abstract: asked only of platforms whose channel says that people may send files.
        raise NotImplementedError("where capabilities.receives_files is True, Messenger.send_file")

    async def edit_text(self, text: str) -> None:
        """Changes the text of the last message that the person wrote."""
        cannot("people can't change what they wrote on this platform, or it does not tell")

    async def reply(self, ref: str, text: str) -> None:
        """Writes an answer to the bot's message `ref`, that shows which one it answers."""
        cannot("people can't answer one certain message on this platform, or it does not tell")

    async def forget_presses(self) -> None:
        """The platform waits for answers to pressed buttons no more."""
        cannot("presses of buttons don't expire on this platform")

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        """What the platform gives the page of the bot's mini app, or another's, that the person opens."""
        # Not abstract: asked only of platforms whose channel has mini apps.
        raise NotImplementedError("where capabilities.mini_app is True, Messenger.mini_app_data")

    async def menu(self, lang: str) -> Mapping[str, str]:
        """What commands the bot's menu shows to somebody of that language: descriptions by name."""
        # Not abstract: asked only of platforms whose channel says that it has such a menu.
        raise NotImplementedError("where capabilities.commands is True, Messenger.menu")

    async def told(self) -> Sequence[Update]:
        """The updates since the last call, where the channel's `receiving` is `nothing`."""
        # Not abstract: other channels bring updates by themselves.
        raise NotImplementedError("where a channel receives `nothing`, Messenger.told")
