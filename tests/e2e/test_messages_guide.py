"""Guides by `curl`: all commands of one in one shell, beside a running service."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgsvc_devkit.deadlines import patient
from tests.e2e.guide_blocks import blocks_of, run_in_a_shell
from tests.process import Deployment, Server

pytestmark = pytest.mark.slow

GUIDES = Path(__file__).parents[2] / "docs" / "guides"

CONFIG = """\
plugins = ["sandbox", "auth", "otp", "oidc", "broadcasts", "scheduling", "drip", "forms", "helpdesk"]
[channels.messenger_a]
plugin = "sandbox"
[channels.messenger_b]
plugin = "sandbox"
"""

#: Seconds for all commands together, waiting included.
TIMEOUT_S = patient(120)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    made = Deployment(tmp_path)
    made.configure(CONFIG)
    return made


@pytest.fixture
def server(deployment: Deployment) -> Iterator[Server]:
    with deployment.serving() as running:
        yield running


@pytest.mark.parametrize(
    "name",
    [
        "agents.md",
        "api-basics.md",
        "broadcasts.md",
        "drip.md",
        "forms.md",
        "helpdesk.md",
        "messages.md",
        "one-time-codes.md",
        "openid-connect.md",
        "scheduling.md",
        "sign-in.md",
    ],
)
def test_a_guide_does_what_it_says(deployment: Deployment, server: Server, name: str) -> None:
    blocks = [block for block in blocks_of(GUIDES / name) if block.language in ("sh", "text")]
    environment = {**os.environ, "BASE": server.url, "KEY": deployment.create_key()}

    done = run_in_a_shell(blocks, deployment.folder, environment, TIMEOUT_S)

    assert done.returncode == 0, done.stdout[-4000:]
    for place, block in enumerate(blocks):
        if block.language == "text":
            printed = done.stdout.partition(f"== {place - 1}\n")[2].partition("\n== ")[0]
            compare(block.code, printed)


def compare(expected: str, printed: str) -> None:
    """Each line has been printed, in this order; `...` stands for anything."""
    left = printed
    for line in expected.splitlines():
        for piece in filter(None, line.split("...")):
            assert piece in left, f"not printed: {piece!r}\n{printed}"
            left = left.partition(piece)[2]
