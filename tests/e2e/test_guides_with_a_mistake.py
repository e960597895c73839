"""A reader who makes one mistake is told what it is, and waits for nothing that can't come."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgsvc_devkit.deadlines import patient
from tests.e2e.guide_blocks import Block, blocks_of, run_in_a_shell
from tests.e2e.test_messages_guide import CONFIG, GUIDES, TIMEOUT_S
from tests.ports import free_ports
from tests.process import Deployment, Server

pytestmark = pytest.mark.slow

#: Seconds within which a guide ends that can't go on: it waits for 10 of them at most, and its commands take
#: theirs. What loops for ever is ended after `TIMEOUT_S`.
PATIENCE_S = patient(60)

#: How guides wait: each has these lines, letter for letter.
WAITING = re.compile(r"^wait_for\(\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)

#: A shell's loop that nothing bounds.
LOOP = re.compile(r"(?:^|[;{(])\s*(?:while|until)\b", re.MULTILINE)


def commands_of(guide: Path) -> list[Block]:
    return [block for block in blocks_of(guide) if block.language == "sh"]


#: The guides that wait for what a service does.
WAITING_GUIDES = sorted(
    guide.name
    for guide in GUIDES.glob("*.md")
    if any("wait_for " in block.code for block in commands_of(guide))
)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made = Deployment(tmp_path_factory.mktemp("guides"))
    made.configure(CONFIG)
    return made


@pytest.fixture(scope="module")
def server(deployment: Deployment) -> Iterator[Server]:
    with deployment.serving() as running:
        yield running


def follow(name: str, folder: Path, base: str, key: str) -> tuple[int, str, float]:
    """How a guide's commands end, what they print, and the seconds that they take."""
    began = time.monotonic()
    environment = {**os.environ, "BASE": base, "KEY": key}
    done = run_in_a_shell(commands_of(GUIDES / name), folder, environment, TIMEOUT_S)
    return done.returncode, done.stdout, time.monotonic() - began


@pytest.mark.parametrize("name", WAITING_GUIDES)
def test_a_wrong_key_ends_a_guide_with_the_reason(
    deployment: Deployment, server: Server, name: str, tmp_path: Path
) -> None:
    status, printed, took_s = follow(name, tmp_path, server.url, "msk_mistyped")

    assert status != 0
    assert '"code":"invalid_api_key"' in printed
    assert took_s < PATIENCE_S


@pytest.mark.parametrize("name", WAITING_GUIDES)
def test_a_wrong_port_ends_a_guide_with_the_reason(name: str, tmp_path: Path) -> None:
    status, printed, took_s = follow(name, tmp_path, f"http://127.0.0.1:{free_ports()}", "msk_any")

    assert status != 0
    assert "Failed to connect to 127.0.0.1" in printed
    assert took_s < PATIENCE_S


def test_what_never_comes_ends_a_guide_with_the_last_answer(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    deployment.configure(f'{CONFIG}\n[jobs]\nrunner = "none"\n')
    with deployment.serving() as server:
        status, printed, took_s = follow(
            "messages.md", tmp_path, server.url, deployment.create_key()
        )

    assert status != 0
    assert 'not seen within 10 s: "sent"; the last answer: ' in printed
    assert '"status":"queued"' in printed.rpartition("the last answer: ")[2]
    assert took_s < PATIENCE_S


@pytest.mark.parametrize("name", sorted(guide.name for guide in GUIDES.glob("*.md")))
def test_a_guide_loops_nowhere_but_where_it_gives_up(name: str) -> None:
    commands = "".join(block.code for block in commands_of(GUIDES / name))
    model = WAITING.search((GUIDES / "messages.md").read_text("utf-8"))
    assert model is not None

    assert not LOOP.findall(commands.replace(model[0], ""))
