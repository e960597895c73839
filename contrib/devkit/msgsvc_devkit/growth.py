"""Measures how a parser's time grows with its input: what strangers send must take time linear in its size.

assert growing(read_mail, [b"<div ", b"\\n", b"("]) == []
"""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import AnyStr

#: Sizes of the two inputs. Quadratic time is sixteen times as much for the longer one.
SHORT, LONG = 8_000, 32_000

#: How many times as long the longer input may take: some caches are left on the way.
MOST_GROWTH = 8.0

#: Seconds below which growth can't be measured.
SHORTEST_S = 0.002

#: How often a measurement is repeated before it counts, as the machine may be busy.
ROUNDS = 8


def growing(
    parse: Callable[[AnyStr], object],
    units: Iterable[AnyStr],
    *,
    before: AnyStr | None = None,
    after: AnyStr | None = None,
    sizes: tuple[int, int] = (SHORT, LONG),
) -> list[str]:
    """The units which, repeated, make `parse` take more than linear time. `before` and `after` stand around
    the repetition. An exception from `parse` counts as a result.

    Only the two measurements are compared: the same work takes up to five times as much processor time when
    other programs share the caches, so a bound in seconds would measure the machine."""
    found = []
    for unit in units:
        begin, end = before or unit[:0], after or unit[:0]
        short, long = (begin + _repeated(unit, size) + end for size in sizes)
        short_s = long_s = math.inf
        for _ in range(ROUNDS):
            # What else runs only adds to a measurement, so the least is the nearest to the truth.
            short_s = min(short_s, _seconds(parse, short))
            long_s = min(long_s, _seconds(parse, long))
            if long_s / max(short_s, SHORTEST_S) <= MOST_GROWTH:
                break
        else:
            found.append(f"{unit!r}: {short_s:.4f} s, {long_s:.4f} s")
    return found


def _repeated(unit: AnyStr, size: int) -> AnyStr:
    return (unit * (size // len(unit) + 1))[:size]


def _seconds(parse: Callable[[AnyStr], object], text: AnyStr) -> float:
    began = time.thread_time()
    # A refusal is an answer; other tests say which.
    with suppress(Exception):
        parse(text)
    return time.thread_time() - began
