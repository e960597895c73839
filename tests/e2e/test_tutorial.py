"""The tutorial, followed to its end: its commands and programs, and a person in a browser where it says."""

import ast
import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from msgsvc_devkit import until
from tests.e2e.guide_blocks import Block, blocks_of, merged
from tests.e2e.test_messages_guide import TIMEOUT_S, compare
from tests.e2e.windows import NewWindow, open_on_phone, picture
from tests.ports import free_ports

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"

#: Where the tutorial's service and site listen.
SERVICE_PORT, SITE_PORT = "8000", "9000"


class Reader:
    """Runs the commands in one folder, with the variables of those before; `serves` are left running.

    `environment` is what the reader's shell has; without it, what `make install` and `activate` give.
    """

    def __init__(
        self, folder: Path, ports: dict[str, str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._ports = ports
        self._here = folder
        self._state = folder / "state.sh"
        self._state.write_text("")
        self.printed = ""
        self._servers: dict[str, ExitStack] = {}
        self._output = folder / "printed.txt"
        self._environment = {
            **(_installed() if environment is None else environment),
            "MSGSVC_SERVER__PORT": ports[SERVICE_PORT],
            "MSGSVC_BASE_URL": f"http://127.0.0.1:{ports[SERVICE_PORT]}",
        }

    async def follow(self, block: Block) -> None:
        code = block.code
        for port, ours in self._ports.items():
            code = code.replace(f"127.0.0.1:{port}", f"127.0.0.1:{ours}")
            code = code.replace(f"--port {port}", f"--port {ours}")
        if (block.language, block.what) == ("sh", "serves"):
            await self._serve(code)
        elif block.language == "sh":
            await asyncio.to_thread(self._run, code)
        elif block.language == "text":
            compare(code, self.printed)
        elif block.language == "python":
            assert f"`{block.what}`" in block.before, f"line {block.line}: name {block.what} before"
            path = self._here / block.what
            path.write_text(_changed(path.read_text(), code) if path.exists() else code)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()

    def so_far(self) -> str:
        """What the last command has printed, also while it runs."""
        return self._output.read_text() if self._output.exists() else ""

    def _run(self, code: str) -> None:
        state = f"export -p > {self._state}; declare -f >> {self._state}; pwd > {self._state}.here"
        with self._output.open("w") as output:
            done = subprocess.run(
                ["bash", "-ec", f". {self._state}\n{code}\n{state}"],
                cwd=self._here,
                env=self._environment,
                stdout=output,
                stderr=output,
                timeout=TIMEOUT_S,
                check=False,
            )
        self.printed = self.so_far()
        assert done.returncode == 0, self.printed
        self._here = Path(Path(f"{self._state}.here").read_text().strip())

    async def _serve(self, code: str) -> None:
        if code in self._servers:
            # The reader presses Ctrl-C, and starts it again.
            self._servers.pop(code).close()
        stack = self._servers[code] = ExitStack()
        log = self._here / "serves.log"
        with log.open("a") as output:
            stack.enter_context(
                _running(
                    ["bash", "-ec", f". {self._state}\nexec {code}"],
                    cwd=self._here,
                    env=self._environment,
                    output=output.fileno(),
                )
            )
        port = self._ports[SITE_PORT if "uvicorn" in code else SERVICE_PORT]

        async def answers() -> bool:
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", int(port))) == 0

        await until(answers)


def _installed() -> dict[str, str]:
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("MSGSVC_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CHECKOUT": str(ROOT),
    }


@contextmanager
def _running(command: list[str], *, cwd: Path, env: dict[str, str], output: int) -> Iterator[None]:
    with subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=output) as process:
        yield
        process.terminate()


def _changed(source: str, piece: str) -> str:
    """As the tutorial says: new functions above ROUTES, the rest in the place of what it replaces."""
    functions = [node for node in ast.parse(piece).body if isinstance(node, ast.AsyncFunctionDef)]
    assert functions
    for function in functions:
        code = ast.get_source_segment(piece, function)
        source = source.replace("ROUTES = [", f"{code}\n\n\nROUTES = [", 1)
    return merged(source, piece)


@pytest.fixture
def ports() -> dict[str, str]:
    """Free ones, for the tutorial's."""
    first = free_ports(2)
    return {SERVICE_PORT: str(first), SITE_PORT: str(first + 1)}


async def sign_in(window: Page, phone: Page, site: str) -> None:
    """Section 5."""
    await window.goto(site)
    await window.get_by_role("link", name="Sign in with a messenger").click()
    await expect(window.locator("[part=number]")).to_be_visible()
    number = await window.locator("[part=number]").inner_text()
    link = window.get_by_role("link", name="Open Messenger_a")
    await open_on_phone(phone, str(await link.get_attribute("href")), "Ann")
    await phone.get_by_role("button", name=number, exact=True).click()
    await expect(window.get_by_text("Hello, Ann!")).to_be_visible()
    await picture(window, "tutorial-signed-in")


async def order(window: Page, phone: Page, site: str) -> None:
    """Section 6."""
    await window.goto(site)
    await window.get_by_role("button", name="Order a book").click()
    chat = phone.get_by_role("log")
    await expect(chat.get_by_text("Thank you, Ann! Your book has been shipped.")).to_be_visible()
    await phone.get_by_role("button", name="Leave it at the door").click()
    await picture(phone, "tutorial-message")


@pytest.mark.browser
async def test_whoever_follows_the_tutorial_has_a_site_with_sign_in_and_a_notification(
    new_window: NewWindow, ports: dict[str, str], tmp_path: Path
) -> None:
    window, phone = await new_window(), await new_window(390, 800)
    site = f"http://127.0.0.1:{ports[SITE_PORT]}"
    acts = iter([sign_in, order])
    reader = Reader(tmp_path, ports)
    try:
        for block in blocks_of(TUTORIAL):
            if block.language == "text" and "pressed" in block.code:
                await _until_pressed(reader, block)
                continue
            await reader.follow(block)
            if block.what == "serves" and "uvicorn" in block.code:
                await next(acts)(window, phone, site)
    finally:
        reader.close()

    assert list(acts) == []


async def _until_pressed(reader: Reader, block: Block) -> None:
    """The press becomes an event a moment later."""

    async def seen() -> bool:
        await reader.follow(Block("sh", "", "python3 presses.py\n", "", block.line))
        return "pressed" in reader.printed

    await until(seen)
    await reader.follow(block)


def test_the_russian_tutorial_has_the_same_code_and_as_many_sections() -> None:
    russian = ROOT / "docs" / "ru" / "tutorial.md"
    ours, theirs = list(blocks_of(TUTORIAL)), list(blocks_of(russian))

    def headings(path: Path) -> list[str]:
        return [line for line in path.read_text().splitlines() if line.startswith("## ")]

    assert len(ours) > 12
    assert [(b.language, b.what, b.code) for b in theirs] == [
        (b.language, b.what, b.code) for b in ours
    ]
    assert len(headings(russian)) == len(headings(TUTORIAL))
