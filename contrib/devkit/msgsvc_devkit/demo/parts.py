"""The demo's processes: the service on SQLite, and the example site beside it."""

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from msgsvc_devkit.deadlines import patient

#: Seconds within which a process must answer.
START_TIMEOUT_S = 60.0

#: Lines of a process's log that are shown when it fails.
LOG_LINES = 15

SLUG = "demo"
PROJECT = "Pinewood Library"

#: Whose project it is, and who runs the installation.
OWNER, OWNER_NAME = "dora@library.example", "Dora"

_SETTINGS = """\
base_url = "{service_url}"
database_url = "sqlite:///{folder}/demo.db"
secret_keys = ["{secret_key}"]
plugins = [
  "sandbox", "telegram", "auth", "oidc", "otp", "broadcasts", "scheduling", "drip", "forms", "helpdesk",
  "webhooks", "billing", "dashboard",
]

[server]
port = {port}

[channels.messenger_a]
plugin = "sandbox"

[channels.messenger_b]
plugin = "sandbox"

[auth]
# The default of five an hour per project is too low for a demo.
sessions_per_hour = 1000
sessions_per_hour_per_address = 1000
pages_per_hour_per_address = 1000

[billing]
# The plan with members and saved lists.
default_plan = "pro"

[limits]
requests_per_minute = 6000

[webhooks]
# The demo's receiver is on this machine, without TLS.
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
"""


class DemoError(Exception):
    """A process of the demo failed. The text names it and shows the end of its log."""


@dataclass(slots=True)
class Parts:
    """URLs, credentials and processes of the running demo."""

    folder: Path
    service_url: str
    site_url: str
    project_id: str = ""
    api_key: str = ""
    webhook_secret: str = ""
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The service's configuration."""
        return self.folder / "msgsvc.toml"

    async def until_one_ends(self) -> None:
        """Returns only with an error: the processes are meant to run until Ctrl-C."""
        waiting = {asyncio.create_task(p.wait()): name for name, p in self.processes.items()}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        name = waiting[done.pop()]
        raise DemoError(f"{name} stopped unexpectedly\n{self.log_end(name)}")

    def log_end(self, name: str) -> str:
        """The last lines of a process's log."""
        path = self.folder / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "\n".join(lines[-LOG_LINES:])


@asynccontextmanager
async def running_parts(
    folder: Path,
    site: Path,
    port: int,
    site_port: int,
    *,
    before: Callable[[Parts], Awaitable[None]] | None = None,
) -> AsyncIterator[Parts]:
    """Starts the service, sets up a project and starts the site; stops both on exit.

    `before` is awaited once the project and its key are there, and nothing is served yet.
    """
    async with AsyncExitStack() as stack:
        # Held until both are served: making the database takes seconds, in which others look for ports.
        port = stack.enter_context(held_port(port))
        site_port = stack.enter_context(held_port(0 if site_port == port else site_port))
        parts = await stack.enter_async_context(_running(folder, site, port, site_port, before))
        yield parts


@asynccontextmanager
async def _running(
    folder: Path,
    site: Path,
    port: int,
    site_port: int,
    before: Callable[[Parts], Awaitable[None]] | None,
) -> AsyncIterator[Parts]:
    parts = Parts(folder, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{site_port}")
    parts.config.write_text(
        _SETTINGS.format(
            service_url=parts.service_url,
            folder=folder,
            secret_key=secrets.token_urlsafe(32),
            port=port,
        )
    )
    try:
        parts.project_id, parts.api_key = await _new_project(parts.config)
        if before is not None:
            await before(parts)
        await _start(parts, "service", [*_MSGSVC, "serve", "--config", str(parts.config)])
        await _answers(parts, "service", f"{parts.service_url}/readyz")
        await _set_up(parts)
        await _start(
            parts, "site", [sys.executable, str(site)], _site_environment(parts, site_port)
        )
        await _answers(parts, "site", f"{parts.site_url}/session.json")
        yield parts
    finally:
        await _end_all(parts)


_MSGSVC = [sys.executable, "-m", "msgsvc_core"]


async def _new_project(config: Path) -> tuple[str, str]:
    """Creates the database, an account, its project and an API key, with the operator's commands."""
    await _output([*_MSGSVC, "migrate", "-c", str(config)])
    account = ["account", "create", OWNER, "--name", OWNER_NAME, "--operator", "--json"]
    await _run([*_MSGSVC, *account, "-c", str(config)])
    created = ["project", "create", PROJECT, "--account", OWNER, "--json"]
    project = await _run([*_MSGSVC, *created, "-c", str(config)])
    command = [*_MSGSVC, "key", "create", project["project_id"], "--name", "site", "--json"]
    key = await _run([*command, "-c", str(config)])
    return project["project_id"], key["key"]


async def sign_in_link(parts: Parts) -> str:
    """A one-time link that signs in to the dashboard."""
    return await _output([*_MSGSVC, "account", "link", OWNER, "-c", str(parts.config)])


async def _set_up(parts: Parts) -> None:
    """Registers the site's webhook receiver and its permanent sign-in link."""
    headers = {"Authorization": f"Bearer {parts.api_key}"}
    async with aiohttp.ClientSession(parts.service_url, headers=headers) as api:
        endpoint = {"url": f"{parts.site_url}/webhooks", "description": "the example site"}
        parts.webhook_secret = (await _post(api, "/v1/webhooks", endpoint))["secret"]
        link = {"slug": SLUG, "name": PROJECT, "callback_url": f"{parts.site_url}/callback"}
        await _post(api, "/v1/auth/links", link)


async def _post(api: aiohttp.ClientSession, path: str, body: dict[str, str]) -> dict[str, str]:
    async with api.post(path, json=body) as answer:
        text = await answer.text()
        if answer.status != 201:
            raise DemoError(f"POST {path} answered {answer.status}: {text}")
        found: dict[str, str] = json.loads(text)
        return found


def _site_environment(parts: Parts, port: int) -> dict[str, str]:
    return {
        "LOGIN_SITE_SERVICE_URL": parts.service_url,
        "LOGIN_SITE_API_KEY": parts.api_key,
        "LOGIN_SITE_WEBHOOK_SECRET": parts.webhook_secret,
        "LOGIN_SITE_PORT": str(port),
        "LOGIN_SITE_URL": parts.site_url,
        "LOGIN_SITE_LINK_SLUG": SLUG,
        "LOGIN_SITE_NAME": PROJECT,
    }


async def _run(command: list[str]) -> dict[str, str]:
    answer: dict[str, str] = json.loads(await _output(command))
    return answer


async def _output(command: list[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    out, err = await process.communicate()
    if process.returncode:
        raise DemoError(f"{' '.join(command[3:5])} failed: {err.decode(errors='replace')}")
    return out.decode().strip()


async def _start(
    parts: Parts, name: str, command: list[str], environment: dict[str, str] | None = None
) -> None:
    with (parts.folder / f"{name}.log").open("wb") as log:
        parts.processes[name] = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**_environment(), **(environment or {})},
            # Ctrl-C must reach only this process, which stops the others in order.
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    """Our environment without `MSGSVC_*`, which may be the settings of another deployment."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MSGSVC_")}


async def _answers(parts: Parts, name: str, url: str) -> None:
    """Waits until the process serves; raises `DemoError` if it ends or takes too long."""
    process = parts.processes[name]
    with suppress(TimeoutError):
        async with asyncio.timeout(START_TIMEOUT_S), aiohttp.ClientSession() as http:
            while process.returncode is None:
                with suppress(aiohttp.ClientError):
                    async with http.get(url) as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.05)
    raise DemoError(f"{name} does not answer at {url}\n{parts.log_end(name)}")


async def _end_all(parts: Parts) -> None:
    for process in reversed(parts.processes.values()):
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(patient(15)):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@contextmanager
def held_port(wanted: int) -> Iterator[int]:
    """Reserves `wanted`, or any free port if that is in use, until the end of the block.

    The kernel does not assign a reserved port to programs that bind port 0, but a server that names the port
    can listen on it. Only Linux allows this, by a bound socket with `SO_REUSEADDR` that does not listen;
    elsewhere the port is released at once.
    """
    with ExitStack() as stack:
        for port in (wanted, 0):
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = listener.getsockname()[1]
            if sys.platform != "linux":
                listener.close()
            yield found
            return
    raise DemoError("there is no free port on 127.0.0.1")
