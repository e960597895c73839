"""The messenger of the simulation: counts every call, keeps its own windows, and fails by seed.

A call is under way in the platform's hands: once sent, it arrives even if the process that made it is dead.
"""

import asyncio
import math
import random
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from msgsvc_core.channels import (
    BotProfile,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Pace,
    Reason,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel
from tests.simulation.virtual_time import VirtualTime

#: The limits of a bot, as Telegram has them.
PACE = Pace(per_bot_s=30, per_chat_s=1, per_group_min=20)

#: Seconds that a call takes in one direction.
TRIP_S = (0.015, 0.045)

#: Seconds after which the client gives up a call without a response.
CALL_TIMEOUT_S = 5.0

#: The share of calls without a response whose message is shown all the same.
ARRIVED = 0.5

#: Chats whose windows are remembered before those that are empty are forgotten.
MANY_CHATS = 5000

GROUP = "group"


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the platform fails: shares of all calls. `away_s` is how long one outage lasts."""

    refused: float = 0.0005
    chat_refused: float = 0.001
    failed: float = 0.002
    lost: float = 0.0005
    retry_after_s: tuple[int, int] = (1, 4)
    away_s: tuple[float, float] = (3.0, 8.0)


NO_FAULTS = Faults(refused=0, chat_refused=0, failed=0, lost=0)


@dataclass(slots=True)
class Call:
    """A call as the platform saw it. `came_s` is None if it never arrived, and `outcome` is what became of
    it: `shown`, a reason, or `lost` for one without a response."""

    process: str
    bot: str
    chat_id: str
    text: str
    sent_s: float
    came_s: float | None = None
    answered_s: float | None = None
    outcome: str = ""
    is_shown: bool = False


class Window:
    """Counts calls in a sliding window, as a platform does; independent of the product's own."""

    def __init__(self, calls: int, window_s: float) -> None:
        self._calls = calls
        self._window_s = window_s
        self._came: deque[float] = deque()

    def is_empty(self, now_s: float) -> bool:
        return not self._came or self._came[-1] <= now_s - self._window_s

    def exceeds(self, now_s: float) -> bool:
        """Records a call; whether it is one too many."""
        came = self._came
        # A float's error is no breach.
        while came and came[0] <= now_s - self._window_s + 1e-9:
            came.popleft()
        came.append(now_s)
        return len(came) > self._calls


@dataclass(slots=True)
class BotSide:
    """One bot, as the platform knows it."""

    window: Window
    calls: int = 0
    shown: int = 0
    first_s: float = math.inf
    last_s: float = 0.0
    refused_until_s: float = 0.0
    away_until_s: float = 0.0
    refusals: int = 0
    #: Times during which the bot could not be expected to send, as (from, to) in seconds.
    disturbed: list[tuple[float, float]] = field(default_factory=list)


class Platform:
    """All bots of one messenger."""

    def __init__(
        self,
        virtual: VirtualTime,
        rng: random.Random,
        faults: Faults,
        *,
        trip_s: tuple[float, float] = TRIP_S,
        tracks: Callable[[Call], bool] | None = None,
    ) -> None:
        self.virtual = virtual
        self.faults = faults
        self._trip_s = trip_s
        #: The calls whose message is looked up afterwards; None for all.
        self._tracks = tracks
        self._rng = rng
        self.bots: dict[str, BotSide] = {}
        #: All calls, or the latest if not all are tracked.
        self.calls: deque[Call] = deque(maxlen=None if tracks is None else 1000)
        #: Where and when a message was shown, by chat and text.
        self.shown: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
        #: Calls of a message that had another outcome.
        self.unshown: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
        self.breaches: list[str] = []
        self._chats: dict[tuple[str, str], list[Window]] = {}
        self._chat_refused_until_s: dict[tuple[str, str], float] = {}
        self.on_arrived: Callable[[Call], None] = lambda _call: None
        #: What the next call comes to, whatever the faults say.
        self.next_outcome: Literal["refused", "failed", "lost"] | None = None

    def add_bot(self, key: str) -> None:
        assert PACE.per_bot_s is not None
        self.bots[key] = BotSide(Window(int(PACE.per_bot_s), 1.0))

    def disturb(self, key: str, from_s: float, to_s: float) -> None:
        self.bots[key].disturbed.append((from_s, to_s))

    def go_away(self, key: str) -> None:
        """The platform answers none of the bot's calls for a while."""
        now_s = self.virtual.now_s
        self.bots[key].away_until_s = until_s = now_s + self._rng.uniform(*self.faults.away_s)
        # Probes come after 1, 2, 4 ... s, with a jitter; then a trial.
        self.disturb(key, now_s, until_s + 2 * (until_s - now_s) + 3)

    async def call(self, process: str, bot: str, chat_id: str, text: str) -> str:
        """Makes a call; returns the message's id, or raises `DeliveryError`."""
        call = Call(process, bot, chat_id, text, self.virtual.now_s)
        self.calls.append(call)
        side = self.bots[bot]
        if side.refused_until_s > call.sent_s and self._knows(process, bot):
            self.breaches.append(f"{bot} called at {call.sent_s:.3f} s while told to wait")
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        trip_s = self._trip()
        self.virtual.at(call.sent_s + trip_s, lambda: self._arrive(call, answer))
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no response", in_doubt=True) from None

    def health(self, bot: str) -> ChannelHealth:
        if self.bots[bot].away_until_s > self.virtual.now_s:
            return ChannelHealth(False, "no response", unreachable=True)
        return ChannelHealth(True, bot, BotProfile(bot))

    def _knows(self, process: str, bot: str) -> bool:
        """Whether the process has been told to wait by the refusal that still holds."""
        for call in islice(reversed(self.calls), 1000):
            if call.bot == bot and call.process == process and call.outcome == "refused":
                return call.answered_s is not None and call.answered_s < self.virtual.now_s
        return False

    def _arrive(self, call: Call, answer: "asyncio.Future[str]") -> None:
        now_s = call.came_s = self.virtual.now_s
        side = self.bots[call.bot]
        side.calls += 1
        side.first_s, side.last_s = min(side.first_s, now_s), now_s
        self._count(call, side)
        error = self._decide(call, side)
        key = (call.chat_id, call.text)
        side.shown += call.is_shown
        if self._tracks is None or self._tracks(call):
            if call.is_shown:
                self.shown[key].append(call)
            if call.outcome != "shown":
                self.unshown[key].append(call)
        self.on_arrived(call)
        if call.outcome != "lost":
            self.virtual.at(now_s + self._trip(), lambda: _give(call, answer, error, now_s))

    def _draw(self) -> str:
        """What the next call comes to, unless something that lasts decides it."""
        wanted, self.next_outcome = self.next_outcome, None
        if wanted is not None:
            return wanted
        faults = self.faults
        if faults == NO_FAULTS:
            return "shown"
        luck = self._rng.random()
        for outcome, share in (
            ("refused", faults.refused),
            ("chat refused", faults.chat_refused),
            ("failed", faults.failed),
            ("lost", faults.lost),
        ):
            if luck < share:
                return outcome
            luck -= share
        return "shown"

    def _trip(self) -> float:
        least_s, most_s = self._trip_s
        return least_s if least_s == most_s else self._rng.uniform(least_s, most_s)

    def _count(self, call: Call, side: BotSide) -> None:
        now_s, chat = self.virtual.now_s, (call.bot, call.chat_id)
        if side.window.exceeds(now_s):
            self.breaches.append(f"{call.bot} exceeded its pace at {now_s:.3f} s")
        windows = self._chats.get(chat)
        if windows is None:
            if len(self._chats) > MANY_CHATS:
                self._chats = {
                    key: found
                    for key, found in self._chats.items()
                    if not all(window.is_empty(now_s) for window in found)
                }
            windows = self._chats[chat] = [Window(1, 1.0)]
            if call.chat_id.startswith(GROUP):
                windows.append(Window(20, 60.0))
        # Of all of them: each records the call.
        if sum(window.exceeds(now_s) for window in windows):
            self.breaches.append(f"{call.chat_id} exceeded its pace at {now_s:.3f} s")

    def _decide(self, call: Call, side: BotSide) -> DeliveryError | None:
        now_s, chat = self.virtual.now_s, (call.bot, call.chat_id)
        if side.away_until_s > now_s:
            call.outcome = "failed"
            return DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")
        outcome = self._draw()
        if outcome == "refused" and side.refused_until_s <= now_s:
            side.refused_until_s = now_s + self._rng.randint(*self.faults.retry_after_s)
            self.disturb(call.bot, now_s, side.refused_until_s + 0.5)
        elif outcome == "chat refused":
            self._chat_refused_until_s[chat] = now_s + self._rng.randint(*self.faults.retry_after_s)
        if side.refused_until_s > now_s:
            return self._refuse(call, side, side.refused_until_s - now_s, "bot")
        chat_until_s = self._chat_refused_until_s.get(chat, 0.0)
        if chat_until_s > now_s:
            return self._refuse(call, side, chat_until_s - now_s, "chat")
        call.outcome = outcome
        if outcome == "failed":
            return DeliveryError(Reason.PLATFORM_UNAVAILABLE, "500")
        call.is_shown = outcome == "shown" or self._rng.random() < ARRIVED
        return None

    def _refuse(
        self, call: Call, side: BotSide, wait_s: float, scope: Literal["bot", "chat"]
    ) -> DeliveryError:
        side.refusals += 1
        call.outcome = "refused" if scope == "bot" else "chat refused"
        return DeliveryError(Reason.RATE_LIMITED, "429", wait_s, scope=scope)


def _give(
    call: Call, answer: "asyncio.Future[str]", error: DeliveryError | None, came_s: float
) -> None:
    loop = answer.get_loop()
    if answer.done() or loop.is_closed():
        return
    call.answered_s = loop.time()
    if error is None:
        answer.set_result(f"m{came_s:.6f}")
    else:
        answer.set_exception(error)


class SimulatedChannel(SendOnlyChannel):
    """A bot, as one process uses it."""

    pace = PACE

    def __init__(self, identity: ChannelIdentity, platform: Platform, process: str) -> None:
        super().__init__(identity)
        self._platform = platform
        self._process = process

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return await self._platform.call(self._process, self.key, chat_id, message.text)

    async def check(self) -> ChannelHealth:
        return self._platform.health(self.key)

    def is_group(self, chat_id: str) -> bool:
        return chat_id.startswith(GROUP)


class SimulatedPlugin:
    """Registers the channel kind `simulated` in one process."""

    def __init__(self, platform: Platform, process: str) -> None:
        self._platform = platform
        self._process = process

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
            return SimulatedChannel(identity, self._platform, self._process)

        return [ChannelKind("simulated", Section, create)]
