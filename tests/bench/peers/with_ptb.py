"""A broadcast by python-telegram-bot: as many connections as calls at once, and no rate limiter."""

import ssl

from telegram import Bot
from telegram.request import HTTPXRequest

from tests.bench.peers.calling import TOKEN, main, timed

#: Seconds that a call may wait for a connection or its answer: on a busy machine none is to fail.
PATIENCE_S = 60.0


async def calls(
    url: str, count: int, at_once: int, text: str, tls: ssl.SSLContext | None
) -> dict[str, float]:
    request = HTTPXRequest(
        connection_pool_size=at_once,
        pool_timeout=PATIENCE_S,
        read_timeout=PATIENCE_S,
        write_timeout=PATIENCE_S,
        connect_timeout=PATIENCE_S,
        httpx_kwargs={} if tls is None else {"verify": tls},
    )
    async with Bot(TOKEN, base_url=f"{url}/bot", request=request) as bot:
        return await timed(
            count,
            at_once,
            lambda number: bot.send_message(f"of-many-{number}", text, disable_notification=False),
        )


if __name__ == "__main__":
    main(calls)
