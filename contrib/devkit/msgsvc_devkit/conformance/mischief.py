"""A seeded script of a platform that misbehaves: updates are malformed, late, doubled, reordered, oversized,
or unknown."""

import copy
import random
from collections.abc import Collection, Iterator
from typing import Any, Literal

#: What a platform does before the user's next text. `unknown` is `Messenger.puzzle`.
Trick = Literal["malformed", "unknown", "doubled", "late", "reordered", "oversized"]

#: The text of updates that are no user's: no check waits for them.
NOISE = "noise"

#: Characters of an oversized text.
OVERSIZED = 300_000

#: Values that stand where others belong.
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    0.5,
    "",
    "x" * 5_000,
    "\ud800",
    "\x00",
    [],
    [None],
    {},
    {"id": {"id": None}},
)


class Mischief:
    """The script of one seed. The same seed does the same each time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a repeatable order of mischief, not a secret

    def trick(self, possible: Collection[Trick]) -> Trick | None:
        """What comes before the next text; None for nothing."""
        return self._random.choice([None, "unknown", *sorted(possible)])

    def pick(self, values: Collection[Any]) -> Any:
        return self._random.choice(list(values))

    def shuffled(self, values: Collection[Any]) -> list[Any]:
        """The values in another order."""
        found = list(values)
        while len(found) > 1 and found == list(values):
            self._random.shuffle(found)
        return found

    def spoilt(self, update: Any) -> Any:
        """A copy of an update in which one value is missing, or odd. Its text has to be `NOISE`: it may still
        be readable."""
        spoilt = copy.deepcopy(update)
        holder, key = self._random.choice(list(_places(spoilt)))
        if self._random.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(self._random.choice(_ODD))
        return spoilt


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value in an update: what holds it, and its key or position."""
    if not isinstance(value, dict | list):
        return
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        yield from _places(inner)
