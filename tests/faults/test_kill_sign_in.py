"""kill -9 between a Yes and what the bot says to it, and between a one-time code and its delivery."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.deadlines import patient
from tests.faults import till
from tests.faults.conftest import Figure, Rounds
from tests.faults.sign_in_desk import Desk, open_desk

pytestmark = pytest.mark.faults

SECTIONS = """
[auth]
sessions_per_hour = 1000000
"""

#: Seconds of a call of the messenger, and up to which after a request the kill comes: before its
#: transaction, in it, before the bot's call, in that, or after all of it.
DELAY_S, KILL_S = 0.2, 0.5

#: Seconds after which what a killed process held must be done.
PATIENCE_S = patient(60.0)

_CODE = re.compile(r"^(\d{6})$", re.MULTILINE)


@pytest.fixture
async def desk(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[Desk]:
    url = await backend.empty()
    modules = [Path(till.__file__)]
    async with open_desk(
        tmp_path, url, ["auth", "otp"], SECTIONS, modules=modules, delay_s=DELAY_S
    ) as made:
        async with made.service.db.transaction() as tx:
            await tx.execute(till.TABLE)
        yield made
    await backend.give_back(url)


class Caller:
    """Calls the desk's one server, and does so again where a kill left a call unanswered."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and body. Raises `aiohttp.ClientError` when the server dies meanwhile."""
        url = self._desk.servers[0].url + path
        async with (
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {self._desk.key}", **headers}
            ) as session,
            session.request(method, url, json=body) as answer,
        ):
            text = await answer.text()
            return answer.status, await answer.json() if text else None

    async def through_a_kill(self, path: str, body: Any, **headers: str) -> tuple[int, Any, bool]:
        """The answer to a POST around which the server is killed and started anew, and whether it had
        been answered before. If not it is sent again, as messengers and clients do."""
        first = asyncio.create_task(self.ask("POST", path, body, **headers))
        await asyncio.sleep(random.uniform(0, KILL_S))  # a kill at any moment is the fault itself
        self._desk.kill()
        outcome = (await asyncio.gather(first, return_exceptions=True))[0]
        self._desk.start(1)
        if isinstance(outcome, aiohttp.ClientError):
            return (*await self.ask("POST", path, body, **headers), False)
        if isinstance(outcome, BaseException):
            raise outcome
        return (*outcome, True)


async def charged(desk: Desk) -> Counter[tuple[str, str]]:
    rows = await desk.query("SELECT operation, resource_id FROM till_charges")
    return Counter((row["operation"], row["resource_id"]) for row in rows)


async def call_in(desk: Desk, chat_id: str, call: str) -> dict[str, Any]:
    """What the bot does in a chat, once it has."""

    async def done() -> dict[str, Any] | None:
        found = [one for one in desk.calls if (one["chat_id"], one["call"]) == (chat_id, call)]
        return found[-1] if found else None

    found = await until(done, timeout_s=PATIENCE_S)
    assert found is not None
    return found


async def test_a_yes_before_a_kill_is_answered_and_its_code_is_good_after_it(
    desk: Desk, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=2, long=30)
    caller, answered, expected = Caller(desk), 0, Counter[tuple[str, str]]()
    desk.start(1)
    for number in range(kills):
        chat_id = f"chat-{number}"
        _, session = await caller.ask("POST", "/v1/auth/session", {"state": "xyz"})
        payload = session["links"]["messenger_a"].partition("?start=")[2]
        opening = {"id": f"open-{number}", "chat_id": chat_id, "payload": payload}
        assert (await caller.ask("POST", "/hooks/messenger_a", opening))[0] == 200
        question = await call_in(desk, chat_id, "send")
        press = {
            "id": f"press-{number}",
            "chat_id": chat_id,
            "data": question["data"][0],
            "ref": question["ref"],
        }
        status, _, was_answered = await caller.through_a_kill("/hooks/messenger_a", press)
        answered += was_answered
        edit = await call_in(desk, chat_id, "edit")
        path = f"/v1/auth/session/{session['session_id']}/status"
        found = (await caller.ask("GET", path))[1]
        verified = await caller.ask("POST", "/v1/auth/verify", {"code": found["code"]})
        again = await caller.ask("POST", "/v1/auth/verify", {"code": found["code"]})
        expected["auth.confirmed", session["session_id"]] += 1

        assert status == 200
        assert edit["ref"] == question["ref"]
        assert found["status"] == "confirmed"
        assert (verified[0], again[0]) == (200, 409)
    found_charges = await charged(desk)

    figure(
        f"kill -9 around a Yes ({desk.service.db.dialect})",
        f"{kills} kills, {answered} after the Yes was taken; {len(found_charges)} charged,"
        f" {sum(found_charges.values()) - len(found_charges)} twice; every code good, every question edited",
        kills=kills,
        answered=answered,
        charged=len(found_charges),
        twice=sum(found_charges.values()) - len(found_charges),
    )
    assert found_charges == expected


async def test_a_one_time_code_sent_before_a_kill_is_delivered_after_it(
    desk: Desk, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=2, long=30)
    caller, answered, expected = Caller(desk), 0, Counter[tuple[str, str]]()
    people = await desk.people(kills)
    desk.start(1)
    for subscriber_id, chat_id in people.items():
        headers = {"Idempotency-Key": f"key-of-{subscriber_id}"}
        status, sent, was_answered = await caller.through_a_kill(
            "/v1/otp/send", {"subscriber_id": subscriber_id}, **headers
        )
        answered += was_answered
        assert status == 202
        await call_in(desk, chat_id, "send")
        await _is_sent(caller, sent["otp_id"])
        shown = {
            match[1] for chat, text in desk.outbox if chat == chat_id for match in _codes(text)
        }
        code = shown.pop()
        body = {"otp_id": sent["otp_id"], "code": code}
        verified = await caller.ask("POST", "/v1/otp/verify", body)
        expected["otp.send", sent["otp_id"]] += 1

        # It may be shown twice, and is the same then.
        assert not shown
        assert verified[0] == 200
    found_charges = await charged(desk)

    figure(
        f"kill -9 around a one-time code ({desk.service.db.dialect})",
        f"{kills} kills, {answered} after it was accepted; {len(found_charges)} charged,"
        f" {sum(found_charges.values()) - len(found_charges)} twice; every code delivered and good",
        kills=kills,
        answered=answered,
        charged=len(found_charges),
        twice=sum(found_charges.values()) - len(found_charges),
    )
    assert found_charges == expected


async def _is_sent(caller: Caller, otp_id: str) -> None:
    async def sent() -> bool:
        return (await caller.ask("GET", f"/v1/otp/{otp_id}"))[1]["status"] == "sent"

    await until(sent, timeout_s=PATIENCE_S)


def _codes(text: str) -> list[re.Match[str]]:
    return list(_CODE.finditer(text))
