"""What must hold at the end of every simulation, whatever failed in it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.platform import BotSide, Platform
from tests.simulation.workload import Item

#: Seconds within which a sign-in question comes, beside any backlog, while nothing disturbs its bot.
QUESTION_S = 2.0

#: Violations of one kind that are listed; more say nothing new.
LISTED = 5


class Violated(AssertionError):
    """An invariant does not hold. The message names the seed, which repeats the run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a message ended by the database: its status and reason."""

    status: str
    reason: str | None


#: The outcomes by the chat and the text.
Outcomes = Mapping[tuple[str, str], list[Ended]]


def check(seed: int, found: Iterable[str]) -> None:
    """Raises `Violated` with the first of what was found."""
    listed = list(found)
    if listed:
        more = f", and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
        text = "; ".join(listed[:LISTED])
        raise Violated(f"seed {seed}: {text}{more}")


def pace_kept(platform: Platform) -> list[str]:
    """No window of a bot, a chat or a group ever held more calls than the platform allows."""
    return platform.breaches


def in_order(platform: Platform, items: Iterable[Item]) -> list[str]:
    """Single messages of a tenant to a chat are shown in the order in which they were accepted."""
    found = []
    chats: defaultdict[tuple[int, str], list[tuple[float, int]]] = defaultdict(list)
    for item in items:
        if item.kind == "single":
            for call in platform.shown.get(item.key, ()):
                assert call.came_s is not None
                chats[item.tenant, item.chat_id].append((call.came_s, item.number))
    for (tenant, chat_id), shown in chats.items():
        numbers = [number for _, number in sorted(shown)]
        if numbers != sorted(numbers):
            found.append(f"tenant {tenant} in {chat_id} was shown in the order {numbers}")
    return found


def nothing_twice(
    platform: Platform, items: Iterable[Item], *, doubted: set[tuple[str, str]]
) -> list[str]:
    """Nobody is shown a message twice, unless it is a system message whose first call was in doubt."""
    found = []
    for item in items:
        times = len(platform.shown.get(item.key, ()))
        if times > 1 and not (item.kind == "question" and item.key in doubted):
            found.append(f"{item.text!r} was shown {times} times in {item.chat_id}")
    return found


def nothing_lost(
    platform: Platform, items: Iterable[Item], outcomes: Outcomes, *, doubted: set[tuple[str, str]]
) -> list[str]:
    """What the database says of a message is what its recipient saw; `unknown` is only what was in doubt."""
    found = []
    for item in items:
        is_shown = item.key in platform.shown
        if item.kind == "question":
            if not is_shown:
                found.append(f"{item.text!r} was never shown in {item.chat_id}")
            continue
        ended = outcomes.get(item.key, [])
        where = f"{item.text!r} in {item.chat_id}"
        if len(ended) != 1:
            found.append(f"{where} has {len(ended)} outcomes")
        elif ended[0].status == "sent" and not is_shown:
            found.append(f"{where} is said to be sent, and was not shown")
        elif ended[0].status == "unknown" and item.key not in doubted:
            found.append(f"{where} is unknown, and its call was never in doubt")
        elif ended[0].status not in {"sent", "unknown"}:
            found.append(f"{where} ended as {ended[0].status} ({ended[0].reason})")
    return found


def questions_in_time(
    platform: Platform, items: Iterable[Item], *, most_s: float = QUESTION_S
) -> list[str]:
    """A sign-in question waits for `most_s` and as long as something disturbed its bot meanwhile."""
    found = []
    for item in items:
        if item.kind != "question" or item.key in platform.unshown:
            continue
        for call in platform.shown.get(item.key, ())[:1]:
            assert call.came_s is not None
            wait_s = call.came_s - item.asked_s
            undisturbed_s = wait_s - disturbed_s(platform.bots[item.bot], item.asked_s, call.came_s)
            if undisturbed_s > most_s:
                found.append(
                    f"{item.text!r} of {item.bot} waited {wait_s:.2f} s from {item.asked_s:.2f} s,"
                    f" {undisturbed_s:.2f} of them undisturbed"
                )
    return found


def disturbed_s(bot: BotSide, from_s: float, to_s: float) -> float:
    """Seconds of that time in which something disturbed the bot."""
    total, reached = 0.0, from_s
    for span_from_s, span_to_s in sorted(bot.disturbed):
        begins_s, ends_s = max(span_from_s, reached), min(span_to_s, to_s)
        if ends_s > begins_s:
            total, reached = total + ends_s - begins_s, ends_s
    return total


def jain(shares: Iterable[float]) -> float:
    """Jain's index: 1 if all have the same share, 1/n if one has everything."""
    found = list(shares)
    squares = sum(share * share for share in found)
    return 1.0 if not squares else sum(found) ** 2 / (len(found) * squares)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
