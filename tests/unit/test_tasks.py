"""How tasks are ended, and how work is shielded from that."""

import asyncio
from contextlib import suppress

import pytest

from msgsvc_core.db.tx import shielded
from msgsvc_core.kernel import aio as tasks


async def begun(task: "asyncio.Task[None]") -> None:
    """Lets a task come to its first wait."""
    await asyncio.sleep(0)
    assert not task.done()


async def stubborn(times: int) -> None:
    """Swallows so many cancellations."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    await asyncio.Event().wait()


async def failing_at_its_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("while it ended")


@pytest.mark.timeout(10)
async def test_a_task_that_swallows_its_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "CANCEL_AGAIN_S", 0.01)
    task = asyncio.create_task(stubborn(3))
    await begun(task)

    await tasks.cancel_and_wait(task)

    assert task.cancelled()


async def test_what_fails_or_has_ended_holds_nothing_up() -> None:
    failing = asyncio.create_task(failing_at_its_end())
    ended = asyncio.create_task(asyncio.sleep(0))
    await ended
    await begun(failing)

    await tasks.cancel_and_wait(failing, ended)
    await tasks.cancel_and_wait()

    assert failing.done()


@pytest.mark.timeout(10)
async def test_who_is_cancelled_while_they_end_a_task_hands_it_on_and_is_cancelled() -> None:
    task = asyncio.create_task(stubborn(1))
    await begun(task)
    ending = asyncio.create_task(tasks.cancel_and_wait(task))
    await begun(ending)
    # The first cancellation is swallowed by now.
    await begun(task)

    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending

    assert task.cancelled()


@pytest.mark.parametrize("fails", [False, True])
async def test_shielded_work_ends_and_its_caller_is_cancelled_however_it_ended(fails: bool) -> None:
    go_on, ended = asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        ended.append(True)
        if fails:
            raise RuntimeError("the database is away")

    caller = asyncio.create_task(shielded(work()))
    await begun(caller)
    caller.cancel()
    await begun(caller)
    go_on.set()

    with pytest.raises(asyncio.CancelledError) as raised:
        await caller
    assert ended == [True]
    assert isinstance(raised.value.__cause__, RuntimeError) == fails


async def test_an_error_of_shielded_work_is_its_callers() -> None:
    async def work() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await shielded(work())
