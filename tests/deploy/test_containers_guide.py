"""The commands of the guide to containers, as printed, with a program in the place of podman and docker."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, GUIDE, documents

BLOCKS = re.findall(r"```sh\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)

#: Writes down what it was asked to do: one argument a line, and an empty line after each call.
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "$@" "" >> "$CALLED"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to run the commands in, with programs that only write down what they were asked to do."""
    for name in ("podman", "docker"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(PROGRAM, "utf-8")
        program.chmod(0o755)
    (tmp_path / "contrib" / "deploy").mkdir(parents=True)
    return tmp_path


def run(folder: Path, program: str, command: str) -> list[str]:
    """Runs the block that makes secrets for this command; returns the command's arguments."""
    [block] = [
        each for each in BLOCKS if "mkdir -m 700 secrets" in each and f"{program} {command}" in each
    ]
    called = folder / "called"
    env = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "CALLED": str(called),
        "HOME": str(folder),
    }
    # The mask of a careful operator.
    subprocess.run(["sh", "-euc", f"umask 077\n{block}"], cwd=folder, env=env, check=True)
    calls = [each.splitlines() for each in called.read_text("utf-8").split("\n\n")]
    return next(each for each in calls if " ".join(each).startswith(command))


def test_the_first_container_can_read_its_secrets_as_printed(folder: Path) -> None:
    """Its user is none of this machine, so what it is given has to be readable for all."""
    arguments = run(folder, "podman", "run")
    volumes = [arguments[n + 1] for n, each in enumerate(arguments) if each == "--volume"]
    mounted = {target: Path(source) for source, target, *_ in (each.split(":") for each in volumes)}
    variables = dict(
        arguments[n + 1].split("=", 1) for n, each in enumerate(arguments) if each == "--env"
    )
    secret = mounted[variables["MSGSVC_SECRET_KEYS__FILE"]]

    assert secret.is_file()
    assert secret.stat().st_mode & 0o777 == 0o444
    assert secret.parent.stat().st_mode & 0o777 == 0o700
    assert len(secret.read_text("utf-8").strip()) >= 32


def test_the_containers_of_compose_can_read_their_secrets_as_printed(folder: Path) -> None:
    run(folder, "docker", "compose up")
    [compose] = documents(DEPLOY / "compose.yaml")
    files = [
        folder / "contrib" / "deploy" / secret["file"] for secret in compose["secrets"].values()
    ]

    assert {file.stat().st_mode & 0o777 for file in files} == {0o444}
    assert all(file.read_text("utf-8").strip() for file in files)
    assert files[0].parent.stat().st_mode & 0o777 == 0o700
