"""The bare client: aiohttp's session in a loop, the same bodies as the service's, nothing written."""

import ssl

from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from tests.bench.courier import PATH, body_of
from tests.bench.peers.calling import main, timed


async def calls(
    url: str, count: int, at_once: int, text: str, tls: ssl.SSLContext | None
) -> dict[str, float]:
    connector = TCPConnector(limit=0, ssl=True if tls is None else tls)
    async with ClientSession(connector=connector, cookie_jar=DummyCookieJar()) as http:

        async def call(number: int) -> None:
            body = body_of(f"of-many-{number}", text, silent=False)
            async with http.post(url + PATH, json=body, allow_redirects=False) as answer:
                await answer.json()

        return await timed(count, at_once, call)


if __name__ == "__main__":
    main(calls)
