"""A DNS that answers what the test wants."""

import socket
from collections.abc import Callable

import pytest

from msgsvc_core.security import dns

Answer = str | Exception


@pytest.fixture
async def answer_dns(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`answer_dns("8.8.8.8", …)` makes the resolver lead every name to these, or raise."""
    answers: list[Answer] = []

    def ask(_host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        kind = socket.SOCK_STREAM
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [
            (socket.AF_INET6, kind, 6, "", (answer, port, 0, 0))
            if ":" in answer
            else (socket.AF_INET, kind, 6, "", (answer, port))
            for answer in map(str, answers)
        ]

    monkeypatch.setattr(dns, "query_system", ask)

    def set_answers(*new: Answer) -> None:
        answers[:] = new

    return set_answers
