"""What every request asks for is remembered for a second."""

from msgsvc_devkit import FakeClock
from msgsvc_oidc.brief_cache import KNOWN_FOR_MS, BriefCache


class Source:
    """Values that can be looked up, and how often they were."""

    def __init__(self, **values: int) -> None:
        self.values = values
        self.lookups = 0

    async def load(self, key: str) -> int | None:
        self.lookups += 1
        return self.values.get(key)


async def test_a_value_is_looked_up_once_a_second() -> None:
    clock, source = FakeClock(), Source(a=1)
    cache = BriefCache(clock, source.load)

    assert [await cache.get("a"), await cache.get("a")] == [1, 1]
    assert source.lookups == 1

    source.values["a"] = 2
    clock.advance(KNOWN_FOR_MS / 1000)

    assert await cache.get("a") == 2


async def test_what_does_not_exist_is_looked_up_again() -> None:
    source = Source()
    cache = BriefCache(FakeClock(), source.load)
    missing = await cache.get("a")

    source.values["a"] = 1

    assert (missing, await cache.get("a")) == (None, 1)


async def test_a_value_that_changes_during_its_lookup_is_not_remembered() -> None:
    source = Source(a=1)

    async def load_while_it_changes(key: str) -> int | None:
        found = await source.load(key)
        source.values["a"] = 2
        cache.clear()
        return found

    cache = BriefCache(FakeClock(), load_while_it_changes)
    first = await cache.get("a")

    assert (first, await cache.get("a")) == (1, 2)
