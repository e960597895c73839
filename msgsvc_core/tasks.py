"""How tasks are ended."""

import asyncio
from typing import Any

import structlog

#: Seconds after which a task that was cancelled and goes on is cancelled again.
AGAIN_S = 10.0

log = structlog.get_logger(__name__)


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks, and waits until they have ended, in whatever way.

    One that goes on is cancelled again after `AGAIN_S`: code of plugins, or of a library, may have
    swallowed the cancellation. A caller that is cancelled meanwhile hands that on to the tasks, and is
    cancelled once they have ended.
    """
    going_on, cancelled = set(tasks), None
    while going_on:
        for task in going_on:
            task.cancel()
        try:
            _ended, going_on = await asyncio.wait(going_on, timeout=AGAIN_S)
        except asyncio.CancelledError as error:
            cancelled = error
            going_on = {task for task in going_on if not task.done()}
        else:
            if going_on:
                log.warning("tasks_go_on", tasks=sorted(task.get_name() for task in going_on))
    for task in tasks:
        if not task.cancelled():
            # Looked at, or asyncio would say that nobody has.
            task.exception()
    if cancelled is not None:
        raise cancelled
