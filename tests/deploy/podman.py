"""Podman with a store of its own: builds the image without a registry, and runs containers of it."""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contrib.release.build import build_wheels, download_others, write_pins
from contrib.release.distributions import released_version
from msgsvc_devkit.deadlines import patient
from tests.deploy.tools import DEPLOY, ROOT, missing

#: Seconds that a step of the build may take on a busy machine.
BUILD_S = patient(900)

#: What a container gets: no capabilities, no way to more, and no file system to write to.
CONFINED = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges")

#: What builds wheels, and what redis needs on Python before 3.11.3, as Debian's is: a release has none of it.
TO_BUILD = ("pip", "hatchling", "async-timeout")

BASE, IMAGE = "localhost/base", "localhost/msgsvc"


@dataclass(frozen=True, slots=True)
class Podman:
    """Images and containers in `folder`."""

    folder: Path

    def run(self, *arguments: str | Path, timeout_s: float = 120) -> str:
        """What podman prints. Raises `AssertionError` with its complaint when it fails."""
        done = self.call(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def call(
        self, *arguments: str | Path, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """The same, whether it fails or not."""
        # Debian's crun refuses a machine with both versions of cgroups.
        runtime = ["--runtime", "runc"] if shutil.which("runc") else []
        store = ["--root", self.folder / "images", "--runroot", self.folder / "running"]
        return subprocess.run(
            ["podman", *runtime, "--cgroup-manager=cgroupfs", *store, *arguments],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self, name: str, options: Sequence[str | Path], *command: str) -> None:
        """Starts a container of our image, confined, in the machine's network."""
        self.run("run", "--detach", f"--name={name}", *_how(options), IMAGE, *command)

    def run_once(
        self, options: Sequence[str | Path], *command: str
    ) -> subprocess.CompletedProcess[str]:
        """The same, until it has ended."""
        return self.call("run", "--rm", *_how(options), IMAGE, *command)

    def exec(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        return self.call("exec", name, *command)

    def stop(self, name: str) -> int:
        """SIGTERM, and SIGKILL after 45 s as in compose.yaml; the exit code."""
        self.run("stop", "--time=45", name)
        return int(self.run("inspect", "--format={{.State.ExitCode}}", name))

    def logs(self, name: str) -> str:
        done = self.call("logs", name)
        return done.stdout + done.stderr

    def image(self, name: str) -> dict[str, Any]:
        (found,) = json.loads(self.run("image", "inspect", name))
        return dict(found)

    def remove_all(self) -> None:
        self.call("rm", "--all", "--force", "--volumes")
        self.call("rmi", "--all", "--force")
        # Podman leaves its own mount.
        self.call("unmount", "--all")
        subprocess.run(["umount", "--quiet", self.folder / "images" / "overlay"], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def _how(options: Sequence[str | Path]) -> list[str | Path]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        # Timers of health checks are systemd's, which not every machine has: tests run the check.
        "--no-healthcheck",
        "--network=host",
        # Podman's own are higher than a machine that is a container may allow.
        f"--ulimit=nofile={soft}:{hard}",
        "--ulimit=nproc=4096:4096",
        *CONFINED,
        *options,
    ]


def find_podman(folder: Path) -> Podman:
    """The test is skipped where it can't build an image; where programs are missing it fails if required."""
    for program in ("podman", "mmdebstrap"):
        if shutil.which(program) is None:
            missing(program, "apt-get install podman runc mmdebstrap")
    if os.getuid() != 0:
        pytest.skip("images are built and run as root here")
    namespaces = (
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--fork",
        "mount",
        "-t",
        "tmpfs",
        "t",
        "/mnt",
    )
    if subprocess.run(namespaces, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine, perhaps a container itself, gives containers no namespaces")
    return Podman(folder)


def build_base(podman: Podman) -> None:
    """A base of Debian's packages, from where this machine gets its own."""
    sources = [
        path
        for folder in ("/etc/apt", "/etc/apt/sources.list.d")
        for path in sorted(Path(folder).iterdir())
        if path.suffix in {".list", ".sources"}
    ]
    release = Path("/etc/os-release").read_text("utf-8").splitlines()
    (codename,) = (line[17:] for line in release if line.startswith("VERSION_CODENAME="))
    base = podman.folder / "base.tar"
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=apt", packages, codename, base, *sources],
        check=True,
        timeout=BUILD_S,
    )
    podman.run("import", base, BASE, timeout_s=BUILD_S)
    base.unlink()


def build_image(podman: Podman) -> None:
    """Builds the Containerfile on that base, with wheels of others that were fetched before."""
    wheels = podman.folder / "dist"
    wheels.mkdir()
    build_wheels(wheels)
    write_pins(wheels, released_version())
    download_others(wheels, TO_BUILD)
    podman.run(
        "build",
        # Works in a container too. It has the machine's network, and pip is kept from it.
        "--isolation=chroot",
        "--network=host",
        "--pull-never",
        # No image of each step, which is most of the time on disk.
        "--layers=false",
        # HEALTHCHECK is not in the format of OCI.
        "--format=docker",
        f"--volume={wheels}:/dist:ro",
        f"--build-arg=BASE={BASE}",
        "--build-arg=PIP_NO_INDEX=1",
        "--build-arg=PIP_FIND_LINKS=/dist",
        f"--file={DEPLOY / 'Containerfile'}",
        f"--tag={IMAGE}",
        ROOT,
        timeout_s=BUILD_S,
    )
