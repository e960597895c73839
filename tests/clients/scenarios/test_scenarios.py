"""One file of scenarios is played by both clients against a running service, and their answers agree."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from contrib.clients.codegen.contract import Contract
from tests.clients.scenarios.python_client import AsyncPerformer, SyncPerformer
from tests.clients.scenarios.script import Scenario, script
from tests.clients.scenarios.stage import Perform, Place, new_stage, running_service
from tests.clients.scenarios.transcript import Transcript
from tests.clients.typescript.building import built_client, program

ROOT = Path(__file__).parents[3]
PLAYER = Path(__file__).with_name("typescript_client.mjs")

CLIENTS = ["python", "python sync", "typescript"]

#: Bytes of a line of the TypeScript client's answers: more than any.
LONGEST_LINE = 16 * 1024 * 1024


@cache
def statuses() -> dict[str, int]:
    """The status of each error code that a method of the clients may raise."""
    contract = Contract.read(ROOT / "contrib/openapi.json")
    return {each.code: each.status for each in contract.error_codes}


def injected() -> Scenario:
    """The codes that no request brings about, each answered by the proxy."""
    steps = [
        {
            "call": "project.get",
            "once": True,
            "faults": [{"kind": "answer", "status": statuses()[code], "code": code}],
            "error": code,
        }
        for code in script().unreachable
    ]
    return Scenario("Errors that no request brings about", tuple(steps))


SCENARIOS = (*script().scenarios, injected())


@dataclass(slots=True)
class Theatre:
    """Plays all scenarios with a client when its transcript is asked for, in a project of its own."""

    place: Place
    _played: dict[str, Transcript] = field(default_factory=dict)

    async def transcript(self, client: str) -> Transcript:
        if client not in self._played:
            if client == "typescript":
                # It may be missing, which skips the test: then there is no account yet that stays.
                built_client()
            async with (
                new_stage(self.place, client.replace(" ", "-"), "https://docs.example") as stage,
                performing(client, stage.proxy.url) as perform,
            ):
                for scenario in SCENARIOS:
                    await stage.play(scenario, perform)
            self._played[client] = stage.transcript
        return self._played[client]


@asynccontextmanager
async def performing(client: str, url: str) -> AsyncIterator[Perform]:
    """The calls of one client."""
    if client == "typescript":
        async with typescript(url) as perform:
            yield perform
        return
    performer = SyncPerformer(url) if client == "python sync" else AsyncPerformer(url)
    yield performer
    await performer.close()


@asynccontextmanager
async def typescript(url: str) -> AsyncIterator[Perform]:
    """Calls of the TypeScript client, in a process of its own. Skips the test if it can't be built."""
    module = built_client() / "index.js"
    process = await asyncio.create_subprocess_exec(
        program("node"), str(PLAYER), module.as_uri(), url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    async def perform(call: Mapping[str, Any]) -> dict[str, Any]:
        stdin.write(json.dumps(call).encode() + b"\n")
        await stdin.drain()
        line = await stdout.readline()
        assert line, f"the TypeScript client ended at {call.get('call')}"
        found: dict[str, Any] = json.loads(line)
        return found

    try:
        yield perform
    finally:
        stdin.close()
        await process.wait()


@pytest_asyncio.fixture(scope="module")
async def theatre(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Theatre]:
    async with running_service(tmp_path_factory.mktemp("scenarios")) as place:
        yield Theatre(place)


@pytest.mark.parametrize("client", CLIENTS)
async def test_each_step_comes_out_as_written(theatre: Theatre, client: str) -> None:
    transcript = await theatre.transcript(client)
    played = {scenario.title: transcript.of(scenario.title) for scenario in SCENARIOS}

    problems = {
        f"{title}, step {each.number}, {each.does}": each.problems
        for title, entries in played.items()
        for each in entries
        if each.problems
    }
    assert problems == {}
    assert {title: len(entries) for title, entries in played.items()} == {
        scenario.title: len(scenario.steps) for scenario in SCENARIOS
    }


@pytest.mark.parametrize("client", CLIENTS[1:])
async def test_the_clients_agree(theatre: Theatre, client: str) -> None:
    transcripts = [await theatre.transcript("python"), await theatre.transcript(client)]
    first, other = (
        {
            scenario.title: [each.comparable for each in one.of(scenario.title)]
            for scenario in SCENARIOS
        }
        for one in transcripts
    )

    assert other == first


@pytest.mark.parametrize("client", CLIENTS)
async def test_each_error_code_has_its_own_class(theatre: Theatre, client: str) -> None:
    found = (await theatre.transcript(client)).codes()

    assert set(statuses()) - set(found) == set()
    assert found == {code: class_of(code) for code in found}


def class_of(code: str) -> str:
    """`not_found`: `NotFound`. Both clients may add `Error`, which is left out here."""
    return "".join(part.capitalize() for part in code.split("_")).removesuffix("Error")


async def test_a_code_is_injected_only_if_no_scenario_brings_it_about() -> None:
    brought_about = {
        step["error"]
        for scenario in script().scenarios
        for step in scenario.steps
        if "error" in step and not any("code" in fault for fault in step.get("faults", ()))
    }

    assert brought_about & set(script().unreachable) == set()
    assert brought_about | set(script().unreachable) == set(statuses())
