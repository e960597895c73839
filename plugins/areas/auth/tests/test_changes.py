"""Who waits for a change, and how often is looked for one."""

import asyncio

import pytest

from msgsvc_auth import changes
from msgsvc_auth.changes import Changes, Key
from msgsvc_devkit import until
from msgsvc_devkit.work import PATIENCE_S

SESSIONS: list[Key] = [("prj_1", f"ses_{number}") for number in range(100)]


class Elsewhere:
    """Sessions that another process changes."""

    def __init__(self) -> None:
        self.changes = Changes(self._find_changed)
        self.changed: set[Key] = set()
        self.looks: list[list[Key]] = []
        self.broken = False

    async def _find_changed(self, keys):
        self.looks.append(list(keys))
        if self.broken:
            raise ZeroDivisionError
        return [key for key in keys if key in self.changed]

    async def looked(self, times=2):
        """Returns after so many more looks."""
        wanted = len(self.looks) + times

        async def enough():
            return len(self.looks) >= wanted

        await until(enough)


@pytest.fixture
def elsewhere(monkeypatch):
    monkeypatch.setattr(changes, "REREAD_S", 0.001)
    return Elsewhere()


async def test_one_look_serves_all_who_wait(elsewhere):
    watched = [elsewhere.changes.watch(key) for key in SESSIONS]

    await elsewhere.looked()

    assert elsewhere.looks[0] == SESSIONS
    assert not any(changed.done() for changed in watched)


async def test_only_who_waits_for_a_changed_session_is_woken(elsewhere):
    watched = {key: elsewhere.changes.watch(key) for key in SESSIONS}
    elsewhere.changed = {SESSIONS[7]}

    await elsewhere.looked()

    assert [key for key, changed in watched.items() if changed.done()] == [SESSIONS[7]]


async def test_everybody_who_waits_for_a_session_is_told(elsewhere):
    watched = [elsewhere.changes.watch(SESSIONS[0]) for _ in range(3)]

    elsewhere.changes.notify(SESSIONS[0])

    assert all(changed.done() for changed in watched)


async def test_nobody_looks_when_nobody_waits(elsewhere):
    before = asyncio.all_tasks()
    watched = {key: elsewhere.changes.watch(key) for key in SESSIONS}
    await elsewhere.looked()
    for key, changed in watched.items():
        elsewhere.changes.unwatch(key, changed)
    await asyncio.sleep(0)

    assert asyncio.all_tasks() <= before


async def test_who_comes_after_all_have_gone_is_looked_for_again(elsewhere):
    elsewhere.changes.unwatch(SESSIONS[0], elsewhere.changes.watch(SESSIONS[0]))
    elsewhere.changed = {SESSIONS[1]}

    async with asyncio.timeout(PATIENCE_S):
        await elsewhere.changes.watch(SESSIONS[1])


async def test_a_look_that_fails_wakes_all_to_see_for_themselves(elsewhere):
    elsewhere.broken = True
    watched = [elsewhere.changes.watch(key) for key in SESSIONS]

    await elsewhere.looked()
    elsewhere.broken = False
    elsewhere.changed = {SESSIONS[0]}

    assert all(changed.done() for changed in watched)
    async with asyncio.timeout(PATIENCE_S):
        await elsewhere.changes.watch(SESSIONS[0])
