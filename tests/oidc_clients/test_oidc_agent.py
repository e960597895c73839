"""Debian's `oidc-agent`: a program in a terminal, whose person signs in on another device."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_devkit import until
from tests.oidc_clients.programs import program
from tests.oidc_clients.provider import DEVICE, REFRESH, ClientSpec, Provider, RegisteredClient
from tests.process import PATIENCE_S

#: What it shows, among colours and a QR code.
SHOWN = re.compile(r"visit:\s*(\S+)\s.*code: (\S+)", re.DOTALL)

ACCOUNT = "ann"


@dataclass(slots=True)
class Terminal:
    """A terminal with an agent of its own."""

    folder: Path
    environment: dict[str, str]

    async def start(self, *command: str) -> asyncio.subprocess.Process:
        """Starts a command, which writes to `<name>.log`."""
        with self.log(command[0]).open("w") as log:
            return await asyncio.create_subprocess_exec(
                program(command[0]),
                *command[1:],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env=self.environment,
            )

    async def run(self, *command: str) -> str:
        """What a command prints. Raises `AssertionError` unless it ends well."""
        process = await self.start(*command)
        await self.end(process, command[0])
        return self.log(command[0]).read_text().strip()

    async def end(self, process: asyncio.subprocess.Process, name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            code = await process.wait()
        assert code == 0, self.log(name).read_text()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@asynccontextmanager
async def agent(folder: Path) -> AsyncIterator[Terminal]:
    """A terminal whose agent is running."""
    socket, config = folder / "agent", folder / "config"
    config.mkdir()
    environment = {
        **os.environ,
        "HOME": str(folder),
        "OIDC_CONFIG_DIR": str(config),
        "OIDC_SOCK": str(socket),
        "OIDC_ENCRYPTION_PW": "a-password-for-tests-only",
    }
    terminal = Terminal(folder, environment)
    running = await terminal.start("oidc-agent", "--console", "-a", str(socket))
    try:

        async def listens() -> bool:
            assert running.returncode is None, terminal.log("oidc-agent").read_text()
            return socket.exists()

        await until(listens)
        yield terminal
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    program("oidc-agent")
    async with agent(tmp_path) as made:
        yield made


async def sign_in(
    terminal: Terminal, provider: Provider, client: RegisteredClient
) -> asyncio.subprocess.Process:
    """Starts the sign-in of an account, and has the person answer."""
    process = await terminal.start(
        "oidc-gen",
        "--manual",
        "--pw-env",
        "--prompt=none",
        "--confirm-yes",
        "--flow=device",
        f"--issuer={provider.issuer}",
        f"--client-id={client.client_id}",
        f"--client-secret={client.client_secret}",
        "--redirect-uri=http://localhost:4242",
        "--scope=openid profile offline_access",
        ACCOUNT,
    )

    async def shown() -> re.Match[str] | None:
        text = terminal.log("oidc-gen").read_text()
        assert process.returncode is None, text
        return SHOWN.search(text)

    uri, user_code = (await until(shown)).groups()
    await provider.answer_device(uri, user_code)
    return process


async def user_info(provider: Provider, token: str) -> dict[str, Any]:
    async with httpx2.AsyncClient() as client:
        found = await client.get(f"{provider.issuer}/.well-known/openid-configuration")
        answer = await client.get(
            found.json()["userinfo_endpoint"], headers={"Authorization": f"Bearer {token}"}
        )
    claims: dict[str, Any] = answer.raise_for_status().json()
    return claims


async def test_a_terminal_gets_tokens_by_a_sign_in_on_another_device(
    terminal: Terminal, provider: Provider
) -> None:
    client = await provider.register(ClientSpec(name="Terminal", grant_types=(DEVICE, REFRESH)))

    process = await sign_in(terminal, provider, client)
    await terminal.end(process, "oidc-gen")
    token = await terminal.run("oidc-token", ACCOUNT)
    fresh = await terminal.run("oidc-token", "--force-new", ACCOUNT)

    assert token != fresh
    assert (await user_info(provider, token))["name"]
    assert (await user_info(provider, fresh))["name"]
