"""Rate limits of a bot's calls, as the platform counts them.

In the memory of the process that owns the channel's lane. Times are seconds of a monotonic clock. See
docs/decisions/0014-pacing.md.
"""

import heapq
from collections import deque
from collections.abc import Callable
from math import floor

from msgsvc_core.channels.contract import Pace

#: The fraction of a window in which late calls may catch up, before calls are spread evenly again.
CATCH_UP = 0.1

#: The fraction by which a window is extended, for differences between round trips.
MARGIN = 0.002

#: Seconds after which a call without a response is assumed to have reached the platform.
ARRIVAL_S = 0.5

#: Round trips that are remembered, and the minimum number for an estimate.
TRIPS, ENOUGH_TRIPS = 64, 16

#: Seconds between removals of unused chats.
PRUNE_S = 60.0


class Road:
    """Estimates the minimum time that every call to the platform takes for its round trip."""

    def __init__(self) -> None:
        self._trips: deque[float] = deque(maxlen=TRIPS)
        self.sure_s = 0.0

    def note(self, trip_s: float) -> None:
        self._trips.append(trip_s)
        if len(self._trips) >= ENOUGH_TRIPS:
            trips = sorted(self._trips)
            # The more they differ, the less the quickest of them says.
            unsure_s = trips[len(trips) // 2] - trips[0]
            self.sure_s = max(0.0, min(trips[0] - unsure_s, ARRIVAL_S))


class Window:
    """Sliding window: at most `calls` in any `window_s`, as the platform sees them, and evenly spread.

    They are spread by a bucket of a tenth of the window's calls. That would be exact only if all calls took
    equally long to arrive. So a call occupies its place until its response is as old as the window is long,
    less the minimum round trip.

    The bucket starts empty: another process may have made calls until `now_s`.
    """

    def __init__(self, calls: int, window_s: float, now_s: float, road: Road | None = None) -> None:
        self._calls = calls
        self._window_s = window_s
        self._step_s = window_s / calls
        self._catch_up_s = window_s * CATCH_UP
        first_s = min(2 * self._step_s + self._catch_up_s, window_s)
        #: The time of the next call if all were spread evenly.
        self._even_s = now_s + first_s + self._catch_up_s
        #: The time at which each call frees its place, and the same as a heap, which has a call twice after
        #: its response.
        self._taken: dict[int, float] = {}
        self._ends: list[tuple[float, int]] = []
        self._last_id = 0
        self._road = road or Road()

    @property
    def step_s(self) -> float:
        """Seconds between two calls that are evenly spread."""
        return self._step_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until a call may be made; 0 if it may be made now."""
        self._give_free(now_s)
        wait_s = self._even_s - self._catch_up_s - now_s
        if len(self._taken) >= self._calls:
            wait_s = max(wait_s, self._ends[0][0] - now_s)
        return max(0.0, wait_s)

    def begin(self, now_s: float) -> int:
        """Records a call; returns the value that `end` needs."""
        self._even_s = max(self._even_s, now_s) + self._step_s
        self._last_id += 1
        self._take(self._last_id, now_s + ARRIVAL_S)
        return self._last_id

    def put_off(self, call: int, now_s: float) -> None:
        """The recorded call is made only now, since it had to wait for another window."""
        self._take(call, now_s + ARRIVAL_S)

    def cancel(self, call: int) -> None:
        """The call was not made."""
        self._taken.pop(call, None)

    def end(self, call: int, began_s: float, now_s: float) -> None:
        """The call was answered, or failed."""
        arrived_s = min(began_s + ARRIVAL_S, now_s - self._road.sure_s)
        if call in self._taken:
            self._take(call, arrived_s)

    def room(self, now_s: float, within_s: float) -> int:
        """How many calls may start until `within_s` from now."""
        self._give_free(now_s)
        until_s = now_s + within_s
        even = (until_s - max(self._even_s, now_s) + self._catch_up_s) / self._step_s
        later = sum(free_s > until_s for free_s in self._taken.values())
        return max(0, min(floor(even) + 1, self._calls - later))

    def is_idle(self, now_s: float) -> bool:
        """Whether a new window would allow as many calls."""
        self._give_free(now_s)
        return not self._taken and self._even_s <= now_s

    def _take(self, call: int, arrived_s: float) -> None:
        free_s = arrived_s + self._window_s * (1 + MARGIN)
        self._taken[call] = free_s
        heapq.heappush(self._ends, (free_s, call))

    def _give_free(self, now_s: float) -> None:
        while self._ends:
            free_s, call = self._ends[0]
            taken_s = self._taken.get(call)
            if taken_s == free_s and free_s > now_s:
                return
            heapq.heappop(self._ends)
            if taken_s == free_s:
                del self._taken[call]


class Entry:
    """A call that has a place in its chat's windows, and later in the bot's."""

    def __init__(self, windows: list[Window], road: Road, now_s: float) -> None:
        self._road = road
        self._places = [(window, window.begin(now_s)) for window in windows]
        self._began_s = now_s

    def join(self, window: Window, now_s: float) -> None:
        """Records that the bot makes the call now."""
        for earlier, call in self._places:
            earlier.put_off(call, now_s)
        self._places.append((window, window.begin(now_s)))
        self._began_s = now_s

    def cancel(self) -> None:
        """The call was not made."""
        for window, call in self._places:
            window.cancel(call)

    def end(self, now_s: float) -> None:
        """Records that the call has ended, with a response or a failure."""
        self._road.note(now_s - self._began_s)
        for window, call in self._places:
            window.end(call, self._began_s, now_s)


class Pacer:
    """The windows of one bot: its own, and one or two of each chat."""

    def __init__(
        self, pace: Pace, is_group: Callable[[str], bool], now_s: Callable[[], float]
    ) -> None:
        self.pace = pace
        self._is_group = is_group
        self._now_s = now_s
        self._since_s = self._pruned_s = now_s()
        self._road = Road()
        self.bot = self._window(pace.per_bot_s, 1.0)
        self._chats: dict[str, list[Window]] = {}

    def chat_wait_s(self, chat_id: str) -> float:
        """Seconds until the chat's rate limit allows a call."""
        now_s = self._now_s()
        return max((window.wait_s(now_s) for window in self._chat(chat_id)), default=0.0)

    def enter(self, chat_id: str | None) -> Entry:
        """Takes a place in the chat's windows; None for a call that shows nothing in a chat."""
        self._prune()
        windows = [] if chat_id is None else self._chat(chat_id)
        return Entry(windows, self._road, self._now_s())

    def _chat(self, chat_id: str) -> list[Window]:
        windows = self._chats.get(chat_id)
        if windows is None:
            windows = self._chats[chat_id] = self._new_chat(chat_id)
        return windows

    def _new_chat(self, chat_id: str) -> list[Window]:
        # Counted from when the lane was taken: since then nobody else has written to the chat.
        found = [self._window(self.pace.per_chat_s, 1.0)]
        if self.pace.per_group_min is not None and self._is_group(chat_id):
            found.append(self._window(self.pace.per_group_min, 60.0))
        return [window for window in found if window is not None]

    def _window(self, rate: float | None, per_s: float) -> Window | None:
        """A window for a rate, rounded down: 2.5 per second is two, 0.5 is one in two seconds."""
        if rate is None:
            return None
        calls, window_s = (floor(rate), per_s) if rate >= 1 else (1, per_s / rate)
        return Window(calls, window_s, self._since_s, self._road)

    def _prune(self) -> None:
        now_s = self._now_s()
        if now_s - self._pruned_s < PRUNE_S:
            return
        self._pruned_s = now_s
        self._chats = {
            chat_id: windows
            for chat_id, windows in self._chats.items()
            if not all(window.is_idle(now_s) for window in windows)
        }
