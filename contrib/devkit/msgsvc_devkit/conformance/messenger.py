"""The interface that the conformance kit needs of a fake platform: a user of the bot, and injected faults."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason, Update, WebhookCall
from msgsvc_devkit.conformance.mischief import Mischief, Trick

#: How the platform fails one call: a response with a status of 500 or more, without an effect. With all
#: others the call has its effect, and its response is lost: a gateway's 504 after a timeout; a success status
#: with an invalid body; a connection closed without a response; no response for long.
Fault = Literal["5xx", "504", "garbage", "reset", "hang"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as the user sees it: `text` is without markup.

    `silent` is None if the platform does not show it. `thread` is the thread that it is in.
    """

    ref: str
    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    media_type: MediaType | None = None
    silent: bool | None = None
    thread: str | None = None


def cannot(what: str) -> NoReturn:
    """Skips the check, since the platform lacks the feature; `what` is the reason, a sentence."""
    pytest.skip(what)


class Messenger(ABC):
    """A fake platform as its single user sees it, who has not started the bot yet.

    A method's effect has happened when the call returns; its updates may still be pending. It has no rate
    limits, except by `fail_next`. If the platform lacks the feature of a method, the method calls `cannot`
    with the reason, which skips the check.
    """

    #: Settings in `[channels.<name>]` besides `plugin`, so that the channel uses this platform.
    settings: Mapping[str, Any]

    #: The user as the platform describes them in updates.
    user: ChannelUser

    #: Their chat with the bot, as `send` takes it.
    chat_id: str

    #: How the platform proves its webhook calls: by a secret that `set_webhook` told it, or by a signature
    #: of the body with a secret of the channel's settings: see `signed`.
    proof: Literal["secret", "signature"] = "secret"

    #: Whether buttons are shown in the rows that the bot gave them. Otherwise those that send data are
    #: shown in their order, and the URL of any other in the text, if it is no button.
    keeps_rows: bool = True

    #: Whether a link in a text can have a label. Otherwise its URL is shown after it, in brackets.
    labels_links: bool = True

    #: The tricks that the fake can play: those of `misbehave`, and `reordered` for `write_reordered`.
    tricks: frozenset[Trick] = frozenset()

    # ---- the user -------------------------------------------------------------------------------

    @abstractmethod
    async def follow(self, link: str) -> None:
        """Opens a link from `deep_link` and presses Start. Raises ValueError for any other link."""

    @abstractmethod
    async def start(self, payload: str = "") -> None:
        """Presses Start as after a link with that payload; opens the chat if the platform's links have no
        payload."""

    @abstractmethod
    async def write(self, text: str) -> None:
        """Writes to the bot."""

    @abstractmethod
    async def press(self, ref: str, data: str) -> None:
        """Presses the button with `data` of the message `ref`."""

    @abstractmethod
    async def block(self) -> None:
        """Stops or blocks the bot."""

    @abstractmethod
    async def unblock(self) -> None:
        """Unblocks the bot, without pressing Start."""

    @abstractmethod
    async def shown(self) -> Sequence[Shown]:
        """The bot's messages except deleted ones, oldest first."""

    @abstractmethod
    async def notices(self) -> Sequence[str]:
        """The notices that button presses got, in order; an empty text if there was none."""

    # ---- the platform ---------------------------------------------------------------------------

    @abstractmethod
    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        """The bot's next call fails for this reason, with the platform's error."""

    @abstractmethod
    async def break_next(self, fault: Fault) -> None:
        """The bot's next call fails; `Fault` says whether it has an effect."""

    @abstractmethod
    async def kill(self) -> None:
        """The platform's server crashes: all connections are closed, including those of calls in flight, and
        the port is closed."""

    @abstractmethod
    async def restart(self) -> None:
        """The server listens on the same port again, with its previous state."""

    @abstractmethod
    async def revoke(self) -> None:
        """From now on the platform rejects the bot's token."""

    @abstractmethod
    async def puzzle(self) -> None:
        """Sends the bot an update of an unknown kind, and malformed ones, e.g. a text that is null."""

    async def misbehave(self, trick: Trick, mischief: Mischief) -> None:
        """Sends the bot updates that no platform should send.

        `malformed` is an update with the text `NOISE`, spoilt by `mischief.spoilt`; `oversized` has
        `OVERSIZED` characters of `NOISE`; `doubled` repeats the last update, and `late` an earlier one. The
        first two have ids of their own.
        """
        # Not abstract: only used for `tricks`.
        raise NotImplementedError("where tricks is not empty, Messenger.misbehave")

    async def write_reordered(self, texts: Sequence[str], mischief: Mischief) -> None:
        """Writes texts that the platform delivers to the bot in a different order."""
        # Not abstract: only used where `tricks` has `reordered`.
        raise NotImplementedError("where tricks has reordered, Messenger.write_reordered")

    def signed(self, call: WebhookCall) -> WebhookCall:
        """The call with the platform's signature of its body, which may have been changed."""
        # Not abstract: only used where `proof` is `signature`.
        raise NotImplementedError("where proof is `signature`, Messenger.signed")

    async def leave(self) -> None:
        """Leaves the chat with the bot, or the platform, without blocking the bot."""
        cannot("people can't leave a chat on this platform but by blocking the bot")

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        """Sends the bot a file of that type, with or without a text.

        If users can't send files of that type, or none with a text, it calls `cannot`.
        """
        # Not abstract: only used for channels with the capability `receives_files`.
        raise NotImplementedError("where capabilities.receives_files is True, Messenger.send_file")

    async def edit_text(self, text: str) -> None:
        """Edits the text of the user's last message."""
        cannot("people can't change what they wrote on this platform, or it does not tell")

    async def reply(self, ref: str, text: str) -> None:
        """Replies to the bot's message `ref`, with a reference to it."""
        cannot("people can't answer one certain message on this platform, or it does not tell")

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        """The platform reports what became of the bot's message `ref`: with `failed`, that the user can't be
        reached in this chat; with `accepted`, only what the answer to the call has said. For a platform that
        never reports that it sends a state that the channel does not know, or calls `cannot`.
        """
        # Not abstract: only used for channels with `capabilities.reports`.
        raise NotImplementedError("where capabilities.reports is not empty, Messenger.report")

    async def write_in(self, thread: str, text: str) -> None:
        """Writes to the bot in a thread of the chat."""
        # Not abstract: only used for channels with the capability `threads`.
        raise NotImplementedError("where capabilities.threads is True, Messenger.write_in")

    async def end_thread(self, thread: str) -> None:
        """Deletes a thread of the chat."""
        cannot("threads can't be deleted on this platform")

    async def forget_presses(self) -> None:
        """The platform no longer accepts answers to earlier button presses."""
        cannot("presses of buttons don't expire on this platform")

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        """The signed data for the page of the bot's mini app, or another bot's, that the user opens."""
        # Not abstract: only used for channels with mini apps.
        raise NotImplementedError("where capabilities.mini_app is True, Messenger.mini_app_data")

    async def menu(self, lang: str) -> Mapping[str, str]:
        """The commands that the bot's menu shows in that language: descriptions by name."""
        # Not abstract: only used for channels with the capability `commands`.
        raise NotImplementedError("where capabilities.commands is True, Messenger.menu")

    async def told(self) -> Sequence[Update]:
        """The updates since the last call, if the channel's `receiving` is `nothing`."""
        # Not abstract: other channels get updates by polling or a webhook.
        raise NotImplementedError("where a channel receives `nothing`, Messenger.told")
