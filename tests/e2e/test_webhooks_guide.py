"""The guide of webhooks: a receiver that a service calls, without tools for tests, then its tests."""

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.guide_blocks import Block, blocks_of, run_in_a_shell
from tests.e2e.test_messages_guide import CONFIG, GUIDES, TIMEOUT_S, compare
from tests.ports import free_ports
from tests.process import Deployment

pytestmark = pytest.mark.slow

GUIDE = GUIDES / "receive-webhooks.md"

#: The port of the guide's receiver, which may be taken here.
PORT = "8091"

#: What the README's way to a running service does not install.
TEST_TOOLS = ("pytest", "pytest_asyncio", "httpx2")

#: What the guide gives the service in two variables.
ALLOWED = '[webhooks]\nallow_http = true\nallow_cidrs = ["127.0.0.0/8"]\n'


def blocks(*, of_tests: bool) -> list[Block]:
    """Those of the section that tests the receiver, or of all others."""
    text = GUIDE.read_text("utf-8")
    first = text[: text.index("\n## Test your receiver")].count("\n")
    last = text[: text.index("\n## Rotate the secret")].count("\n")
    return [block for block in blocks_of(GUIDE) if (first < block.line < last) == of_tests]


def write_files(found: list[Block], folder: Path) -> None:
    for block in found:
        if block.language in {"python", "toml"}:
            assert f"`{block.what}`" in block.before, f"line {block.line}: name {block.what} before"
            (folder / block.what).write_text(block.code, encoding="utf-8")


def check_printed(followed: list[Block], printed: str) -> None:
    for place, block in enumerate(followed):
        if block.language == "text":
            said = printed.partition(f"== {place - 1}\n")[2].partition("\n== ")[0]
            compare(block.code, said)


def test_a_receiver_gets_what_happens_without_any_tool_for_tests(
    tmp_path: Path,
) -> None:
    found = blocks(of_tests=False)
    write_files(found, tmp_path)
    port = str(free_ports())
    followed = [
        Block(b.language, b.what, b.code.replace(PORT, port), b.before, b.line)
        for b in found
        if b.language in {"sh", "text"}
    ]
    absent = tmp_path / "absent"
    absent.mkdir()
    for tool in TEST_TOOLS:
        (absent / f"{tool}.py").write_text(f"raise ModuleNotFoundError({tool!r})\n")
    deployment = Deployment(tmp_path)
    deployment.configure(CONFIG.replace('"auth"', '"auth", "webhooks"') + ALLOWED)
    with deployment.serving() as server:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(absent),
            "BASE": server.url,
            "KEY": deployment.create_key(),
        }
        done = run_in_a_shell(followed, tmp_path, environment, TIMEOUT_S)

    assert done.returncode == 0, done.stdout[-4000:]
    check_printed(followed, done.stdout)


def test_the_receivers_tests_pass(tmp_path: Path) -> None:
    found = blocks(of_tests=True)
    write_files([*blocks(of_tests=False), *found], tmp_path)
    followed = [block for block in found if block.language in {"sh", "text"}]
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("MSGSVC_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        # What the guide installs is there; a test asks no package index.
        "PIP_NO_INDEX": "1",
        # The service of the guide's test runs on SQLite here.
        "MSGSVC_TEST_POSTGRES_URL": "postgresql://127.0.0.1:1/nowhere",
    }

    done = run_in_a_shell(followed, tmp_path, environment, TIMEOUT_S)

    assert done.returncode == 0, done.stdout[-4000:]
    check_printed(followed, done.stdout)
