"""Ends web servers of tests."""

import asyncio

from aiohttp import web

#: Seconds that a request in progress may take to end.
SHUTDOWN_S = 0.01


async def stop(runner: web.AppRunner | web.ServerRunner) -> None:
    """Closes the port and every connection, also one that is accepted while the port closes: aiohttp forgets
    such a one when it is done with the others, and nobody would close it."""
    server = runner.server
    if server is not None:
        # Of this server only, so mypy's rule on replaced methods does not apply.
        server.connection_made = _refuse  # type: ignore[assignment,method-assign]
    await runner.cleanup()
    # What was accepted last is connected in the next round of the loop.
    for _ in range(2):
        await asyncio.sleep(0)
    if server is not None:
        await server.shutdown(SHUTDOWN_S)


def _refuse(_handler: object, transport: asyncio.Transport) -> None:
    transport.close()
