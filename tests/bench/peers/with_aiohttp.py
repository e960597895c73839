"""The bare client: aiohttp's session in a loop, the same bodies as the service's, nothing written."""

from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from tests.bench.courier import PATH, body_of
from tests.bench.peers.calling import main, timed


async def calls(url: str, count: int, at_once: int, text: str) -> dict[str, float]:
    async with ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar()) as http:

        async def call(number: int) -> None:
            body = body_of(f"of-many-{number}", text, silent=False)
            async with http.post(url + PATH, json=body, allow_redirects=False) as answer:
                await answer.json()

        return await timed(count, at_once, call)


if __name__ == "__main__":
    main(calls)
