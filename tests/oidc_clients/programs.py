"""Programs that hold the clients: found or asked for, and driven by lines of JSON.

A script gets its configuration as its argument, and writes lines of JSON: `{"ask": name, ...}` is answered
by a line, `{"result": ...}` ends the conversation. What it writes to its standard error explains a failure.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from msgsvc_devkit import machine, until
from tests.process import PATIENCE_S

HERE = Path(__file__).parent

#: Where `install.sh` builds the environments of Python clients.
ENVIRONMENTS = HERE.parents[1] / ".venv" / "oidc-clients"

#: Characters of a line: a page of claims, and a JWK set.
MAX_LINE = 1 << 20

Ask = Callable[[dict[str, Any]], Awaitable[Any]]


def missing(what: str) -> None:
    """Skips the test, or fails it where everything has to be there."""
    reason = f"{what} is missing: make oidc-clients"
    machine.missing("oidc-clients", reason)


def program(*names: str) -> str:
    """The path of the first of these programs that the machine has, in the folders of root too."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    missing(names[0])
    raise AssertionError("missing() returns nothing")


def node() -> str:
    """Node, if the clients for it are installed."""
    if not (HERE / "node_modules" / "openid-client").is_dir():
        missing("npm's openid-client")
    return program("node")


def node_environment() -> dict[str, str]:
    """The environment of a Node program."""
    return {**os.environ, "NODE_ENV": "test"}


def python(name: str) -> str:
    """The interpreter of the environment with the clients of `requirements/<name>.txt`."""
    found = ENVIRONMENTS / name / "bin" / "python"
    if not found.exists():
        missing(f"the environment {name}")
    return str(found)


def _text_of(log: Path) -> str:
    return log.read_text()


@asynccontextmanager
async def serving(command: Sequence[str | Path], log: Path, probe: str) -> AsyncIterator[None]:
    """A server that runs; it does once `probe`, a URL, is answered with success. Raises `AssertionError`
    with its log if it ends before."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=output, stderr=output, cwd=log.parent
        )
    try:
        async with httpx2.AsyncClient() as client:

            async def answers() -> bool:
                assert process.returncode is None, _text_of(log)
                try:
                    return (await client.get(probe)).is_success
                except httpx2.TransportError:
                    return False

            await until(answers)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def converse(
    command: Sequence[str | Path], config: Mapping[str, Any], asks: Mapping[str, Ask]
) -> Any:
    """The result of a script, with its questions answered by `asks`. Raises `AssertionError` with what it
    complained about if it ends without a result."""
    process = await asyncio.create_subprocess_exec(
        *command,
        json.dumps(config),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE,
        env=node_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for line in process.stdout:
                said = json.loads(line)
                if "result" in said:
                    return said["result"]
                answer = await asks[said["ask"]](said)
                process.stdin.write(json.dumps(answer).encode() + b"\n")
                await process.stdin.drain()
            raise AssertionError((await complaints).decode())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await complaints
