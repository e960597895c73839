"""A DNS that answers what the test wants."""

import asyncio
import socket
from collections.abc import Callable

import pytest

Answer = str | Exception


@pytest.fixture
async def answer_dns(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`answer_dns("8.8.8.8", …)` makes the loop resolve every name to these, or raise."""
    answers: list[Answer] = []

    async def getaddrinfo(host, port, *, family=0, type=0, proto=0, flags=0):  # noqa: A002 - the loop calls it so
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [
            (socket.AF_INET6, type, 6, "", (answer, port, 0, 0))
            if ":" in answer
            else (socket.AF_INET, type, 6, "", (answer, port))
            for answer in map(str, answers)
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)

    def set_answers(*new: Answer) -> None:
        answers[:] = new

    return set_answers
