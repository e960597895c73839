"""Ends web servers of tests."""

import asyncio

from aiohttp import web

#: Seconds that a request in progress may take to end.
SHUTDOWN_S = 0.01


async def stop(runner: web.AppRunner | web.ServerRunner) -> None:
    """Closes the port and every connection, also one that was accepted while the port closed: else its loop
    could end before it is closed."""
    server = runner.server
    await runner.cleanup()
    for _ in range(2):
        await asyncio.sleep(0)
        if server is not None:
            await server.shutdown(SHUTDOWN_S)
