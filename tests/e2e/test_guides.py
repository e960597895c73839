"""The guides do what they say, command by command, in an empty folder."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from msgsvc_devkit.databases import POSTGRES_URL_VARIABLE
from tests.e2e.guide_blocks import KEPT_TYPES, Block, blocks_of, merged

pytestmark = pytest.mark.slow

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


class Reader:
    """Follows a guide: runs its commands where the last one ended, and edits its files."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._home = self._here = folder
        self._environment = environment
        self._printed = ""

    def follow(self, block: Block) -> None:
        if block.language == "sh":
            self._run(block.code, fails=block.what == "fails")
        elif block.language == "text":
            self._compare(block.code)
        else:
            assert f"`{block.what}`" in block.before, f"line {block.line}: name {block.what} before"
            path = self._here / block.what
            if block.language == "python" and path.exists():
                path.write_text(merged(path.read_text("utf-8"), block.code), encoding="utf-8")
            else:
                path.write_text(block.code, encoding="utf-8")

    def check_types(self) -> None:
        """What was written is typed, for who asks mypy."""
        strict = [sys.executable, "-m", "mypy", "--strict", "--exclude", "migrations", *KEPT_TYPES]
        [package] = self._here.glob("msgsvc_*/plugin.py")
        done = subprocess.run(
            [*strict, package.parent.name, "tests"],
            cwd=self._here,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def _run(self, commands: str, *, fails: bool) -> None:
        done = subprocess.run(
            ["bash", "-ec", f"{commands}\npwd > {self._home}/here"],
            cwd=self._here,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self._printed = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{commands}\n{self._printed[-4000:]}"
        if not fails:
            self._here = Path((self._home / "here").read_text().strip())

    def _compare(self, expected: str) -> None:
        """Each line has been printed, in this order; `...` stands for anything."""
        left = self._printed
        for line in expected.splitlines():
            for piece in filter(None, (part.strip() for part in line.split("..."))):
                assert piece in left, f"not printed: {piece!r}\n{self._printed[-4000:]}"
                left = left.partition(piece)[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A Python of the reader's own, which has what ours has, and no way to a package index."""
    home = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    [packages] = home.glob("lib/python*/site-packages")
    ours = sysconfig.get_paths()["purelib"]
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    command = home / "bin" / "msgsvc"
    command.write_text(f'#!/bin/sh\nexec {home}/bin/python -m msgsvc_core "$@"\n')
    command.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MSGSVC_", "PYTEST_"))}
    return {
        **kept,
        "PATH": f"{home / 'bin'}:{kept['PATH']}",
        # What they write runs on PostgreSQL in test_scaffold.
        POSTGRES_URL_VARIABLE: "postgresql://127.0.0.1:1/nowhere",
        "PIP_NO_INDEX": "1",
        # Pip reads it the other way round: 0 is without isolation.
        "PIP_NO_BUILD_ISOLATION": "0",
    }


@pytest.mark.timeout(900)  # the tests of a plugin are run several times
@pytest.mark.parametrize("name", ["write-a-channel.md", "write-an-area.md"])
def test_a_guide_does_what_it_says(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    reader = Reader(tmp_path, environment)
    blocks = list(blocks_of(GUIDES / name))

    for block in blocks:
        reader.follow(block)

    assert any(block.language == "sh" for block in blocks)
    reader.check_types()
