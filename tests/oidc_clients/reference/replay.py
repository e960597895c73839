"""The script of requests, against one provider."""

from collections.abc import Awaitable, Callable, Sequence

import httpx2

from tests.oidc_clients.provider import Clocked, Provider
from tests.oidc_clients.reference import authorize_cases, expiry_cases, other_cases, token_cases
from tests.oidc_clients.reference.recording import Recording, Script, script_for

Play = Callable[[Script], Awaitable[None]]

PLAYS: Sequence[Play] = (*other_cases.CASES, *authorize_cases.CASES, *token_cases.CASES)


async def replay(provider: Provider) -> Recording:
    """What the provider answers, by case. What comes of time is left out where nobody can let it pass."""
    async with httpx2.AsyncClient() as http:
        script = await script_for(provider, http)
        for play in PLAYS:
            await play(script)
        if isinstance(provider, Clocked):
            for wait in expiry_cases.CASES:
                await wait(script, provider)
    return script.recording
