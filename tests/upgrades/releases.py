"""Earlier releases, and their code: unpacked from the repository, and run beside today's."""

import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.process import Deployment, Process, begin

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("releases.toml")
RECORDED = Path(__file__).with_name("recorded")

#: What of a release is unpacked: its distributions, and the parts of its tests that run in its processes.
UNPACKED = ("pyproject.toml", "msgsvc_core", "plugins", "contrib", "tests")

_OURS = ("msgsvc", "_editable_impl_msgsvc")


class CodeMissing(Exception):
    """The repository at hand has no such commit: a shallow clone, or an archive without history."""


@dataclass(frozen=True, slots=True)
class Release:
    """`commit` is what was released as `name`."""

    name: str
    commit: str

    @property
    def recorded(self) -> Path:
        """The folder of its recorded databases."""
        return RECORDED / self.name

    def unpack(self, folder: Path) -> "Installed":
        """Its code in a new folder, with an interpreter that runs it. Raises `CodeMissing`."""
        git = shutil.which("git")
        if git is None:
            raise CodeMissing("needs git")
        folder.mkdir(parents=True)
        archive = folder / "code.tar"
        made = subprocess.run(
            [git, "-C", ROOT, "archive", "-o", archive, self.commit, *UNPACKED],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise CodeMissing(f"needs the commit {self.commit}, of a clone that is not shallow")
        code = folder / "code"
        shutil.unpack_archive(archive, code, filter="data")
        archive.unlink()
        return Installed(code, _new_interpreter(folder / "venv", code))


@cache
def releases() -> tuple[Release, ...]:
    """The oldest first."""
    listed = tomllib.loads(LIST.read_text("utf-8"))["release"]
    return tuple(Release(**each) for each in listed)


@dataclass(frozen=True, slots=True)
class Installed:
    """A release's code, and the interpreter in whose environment it is installed."""

    code: Path
    python: Path

    def deployment(self, folder: Path, packages: Sequence[Path] = ()) -> "ReleaseDeployment":
        """A folder with a configuration, in which `msgsvc` is that of the release."""
        return ReleaseDeployment(folder, packages, python=self.python)


@dataclass(frozen=True, slots=True)
class ReleaseDeployment(Deployment):
    """Its processes run a release's code, wherever they are started."""

    python: Path = Path()

    def _environment(self) -> dict[str, str]:
        # Neither the working directory, which has today's code, nor a script's own comes first on the path.
        return {**Deployment._environment(self), "PYTHONSAFEPATH": "1"}

    def run_script(self, script: Path, *arguments: str | Path) -> str:
        """What a script prints that the release's interpreter runs, given the configuration and these."""
        done = subprocess.run(
            [self.python, script, self.config, *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _begin(self, arguments: Sequence[str | Path], errors: Path) -> Process:
        command = [self.python, "-m", "msgsvc_core", *arguments]
        return begin(command, self._environment(), errors)


def _new_interpreter(folder: Path, code: Path) -> Path:
    """An environment with the release's distributions, and those of others that this process has.

    Nothing is fetched or built: a distribution's folder is on the path, and its metadata are written from
    its `pyproject.toml`. What the release needs from others is lent, package by package, so that nothing of
    today's code can be found.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    printed = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    site = Path(printed.stdout.strip())
    for entry in _lent():
        (site / entry.name).symlink_to(entry)
    paths = []
    for project in _distributions(code):
        declared = tomllib.loads(project.read_text("utf-8"))["project"]
        _write_metadata(site, declared)
        paths.append(str(project.parent))
    (site / "release.pth").write_text("\n".join(paths) + "\n")
    return python


def _lent() -> Iterator[Path]:
    for place in map(Path, sys.path):
        if place.name in {"site-packages", "dist-packages"} and place.is_relative_to(sys.prefix):
            yield from (each for each in place.iterdir() if not each.name.startswith(_OURS))


def _distributions(code: Path) -> Iterator[Path]:
    yield code / "pyproject.toml"
    yield from sorted(code.glob("plugins/*/*/pyproject.toml"))
    yield code / "contrib" / "devkit" / "pyproject.toml"


def _write_metadata(site: Path, declared: dict[str, object]) -> None:
    name, version = str(declared["name"]), str(declared["version"])
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = declared.get("entry-points", {})
    assert isinstance(groups, dict)
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{key} = {target}" for key, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
