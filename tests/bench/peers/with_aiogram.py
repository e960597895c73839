"""A broadcast by aiogram: its usual session, with as many connections as calls at once."""

import ssl

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer

from tests.bench.peers.calling import TOKEN, main, timed


async def calls(
    url: str, count: int, at_once: int, text: str, tls: ssl.SSLContext | None
) -> dict[str, float]:
    session = AiohttpSession(api=TelegramAPIServer.from_base(url), limit=at_once)
    if tls is not None:
        # aiogram takes no context of its user's: these are the arguments of its connector.
        session._connector_init["ssl"] = tls
    async with Bot(TOKEN, session) as bot:
        return await timed(
            count,
            at_once,
            lambda number: bot.send_message(f"of-many-{number}", text, disable_notification=False),
        )


if __name__ == "__main__":
    main(calls)
