"""The guides to a first plugin: one file, which the command writes and a service in another process loads."""

import os
import re
import sys
from pathlib import Path

import pytest

from msgsvc_devkit.scaffold.packages import Kind, NewPlugin, write_file
from tests.e2e.guide_blocks import Block, blocks_of, run_in_a_shell
from tests.e2e.test_messages_guide import GUIDES, TIMEOUT_S, compare
from tests.ports import free_ports

pytestmark = pytest.mark.slow

#: The ports of the guides, which may be taken here.
SERVICE_PORT, MESSENGER_PORT = "8000", "8099"

#: Words of a guide, without its code.
MAX_WORDS = 600

#: Some 60 lines of a file that are neither empty nor comments nor part of the module's docstring.
MAX_CODE_LINES = 64

FIRST: list[tuple[Kind, str, str]] = [
    ("channel", "lark", "first-channel.md"),
    ("area", "feedback", "first-area.md"),
]


@pytest.mark.parametrize(("kind", "name", "guide"), FIRST)
def test_the_printed_file_is_what_the_command_writes(
    kind: Kind, name: str, guide: str, tmp_path: Path
) -> None:
    [printed] = [block for block in blocks_of(GUIDES / guide) if block.language == "python"]

    written = write_file(NewPlugin(kind, name), tmp_path)

    assert printed.what == f"plugins/{name}.py"
    assert printed.code == written.read_text("utf-8")


@pytest.mark.parametrize(("kind", "name", "guide"), FIRST)
def test_the_file_and_its_guide_are_short(
    kind: Kind, name: str, guide: str, tmp_path: Path
) -> None:
    code = write_file(NewPlugin(kind, name), tmp_path).read_text("utf-8").split('"""', 2)[2]
    prose = re.sub(r"^```.*?^```$", "", (GUIDES / guide).read_text("utf-8"), flags=re.M | re.S)

    lines = [line.strip() for line in code.splitlines()]
    assert len([line for line in lines if line and not line.startswith("#")]) <= MAX_CODE_LINES
    assert len(prose.split()) <= MAX_WORDS


@pytest.mark.parametrize("guide", [guide for _, _, guide in FIRST])
def test_a_guide_does_what_it_says(guide: str, tmp_path: Path) -> None:
    port = free_ports(2)
    blocks = [
        Block(block.language, block.what, _moved(block.code, port), block.before, block.line)
        for block in blocks_of(GUIDES / guide)
        if block.language in {"sh", "text"}
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MSGSVC_")}
    environment = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        "MSGSVC_BASE_URL": f"http://127.0.0.1:{port}",
        "MSGSVC_SERVER__PORT": str(port),
    }

    done = run_in_a_shell(blocks, tmp_path, environment, TIMEOUT_S)

    log = tmp_path / "serve.log"
    assert done.returncode == 0, done.stdout[-4000:] + (log.read_text() if log.exists() else "")
    for place, block in enumerate(blocks):
        if block.language == "text":
            compare(block.code, done.stdout.partition(f"== {place - 1}\n")[2].partition("\n== ")[0])


def _moved(code: str, port: int) -> str:
    return code.replace(SERVICE_PORT, str(port)).replace(MESSENGER_PORT, str(port + 1))
