"""Builds a release: wheels and sdists of all distributions, their bill of materials and checksums.

    make dist                 # into dist/
    make dist-offline         # and what they need from others, to install without a network

Everything is built twice and compared byte by byte, the second wheel from the sdist, in another folder: a
release that is not reproducible, or an sdist that lacks a file, is not written.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from contrib.release.changelog import NoSection, section_of
from contrib.release.distributions import (
    ROOT,
    Distribution,
    differing,
    distributions,
    released_version,
)

EPOCH = "SOURCE_DATE_EPOCH"


class NotReleasable(Exception):
    """Why nothing was built."""


def commit_time() -> int:
    """The second of the commit that is built, which all files in it are dated by."""
    if given := os.environ.get(EPOCH):
        return int(given)
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    said = subprocess.run(git, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise NotReleasable(f"this is no clone; set {EPOCH} to the time of the release")
    return int(said.stdout)


def has_changes() -> bool:
    """Whether the tree differs from its commit."""
    git = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=normal"]
    return bool(subprocess.run(git, capture_output=True, text=True, check=False).stdout)


def build_one(folder: Path, out: Path, epoch: int, kinds: Sequence[str]) -> None:
    """Builds `kinds` (`sdist`, `wheel`) of the distribution in `folder`. Raises `NotReleasable`."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *targets]
    environment = {**os.environ, EPOCH: str(epoch), "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if said.returncode != 0:
        raise NotReleasable(f"{folder} can't be built:\n{said.stderr or said.stdout}")


def build_wheels(out: Path) -> None:
    """Wheels of the tree as it is, for tests."""
    folders = [each.folder for each in distributions()]
    epoch = commit_time()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda folder: build_one(folder, out, epoch, ["wheel"]), folders))


def unpacked(sdist: Path, into: Path) -> Path:
    """The folder of an sdist's contents."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    return into / sdist.name.removesuffix(".tar.gz")


def build_twice(each: Distribution, out: Path, again: Path, version: str, epoch: int) -> None:
    """Builds into `out`, and into `again`, there the wheel from the sdist. Raises `NotReleasable` when the
    bytes differ."""
    build_one(each.folder, out, epoch, ["sdist", "wheel"])
    build_one(each.folder, again, epoch, ["sdist"])
    prefix = each.file_prefix(version)
    sdist, wheel = f"{prefix}.tar.gz", f"{prefix}-py3-none-any.whl"
    build_one(unpacked(again / sdist, again), again, epoch, ["wheel"])
    if (out / sdist).read_bytes() != (again / sdist).read_bytes():
        raise NotReleasable(f"{sdist} has other bytes when it is built again")
    if (out / wheel).read_bytes() != (again / wheel).read_bytes():
        raise NotReleasable(f"{wheel} has other bytes when it is built from the sdist")


def check_version() -> str:
    """The version to build. Raises `NotReleasable`."""
    version = released_version()
    if others := differing():
        raise NotReleasable(f"not everything is {version}:\n  " + "\n  ".join(others))
    try:
        section_of(version, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    except NoSection as error:
        raise NotReleasable(str(error)) from None
    return version


def write_pins(out: Path, version: str) -> None:
    """`constraints.txt`: the versions that the tests ran with, and our own, which a stranger may have put
    on an index under a later number."""
    ours = "".join(f"{each.name}=={version}\n" for each in distributions())
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    (out / "constraints.txt").write_text(f"{pins}{ours}", "utf-8")


def download_others(out: Path, more: Sequence[str] = ()) -> None:
    """Wheels of other people's packages, with those of `more`, for this Python and this kind of machine."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    pins = ["--constraint", str(out / "constraints.txt"), "--find-links", str(out)]
    before = digests(out)
    # The client and the devkit are for programs that use the service; the first install tries the client.
    wanted = ["msgsvc[all,testing]", "msgsvc-client", *more]
    done = subprocess.run([*pip, "--dest", str(out), *pins, *wanted], check=False)
    if done.returncode != 0:
        raise NotReleasable("pip could not download what the release needs")
    if before.items() - digests(out).items():
        raise NotReleasable("an index has a file of one of our names, and pip took it")


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of each file, by its name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())
    }


def write_sums(out: Path) -> None:
    """`SHA256SUMS`, for `sha256sum --check`."""
    lines = [f"{digest}  {name}" for name, digest in digests(out).items()]
    (out / "SHA256SUMS").write_text("\n".join(lines) + "\n", "utf-8")


def build(out: Path, *, offline: bool, console: Console) -> str:
    """Replaces `out` by the release; returns its version. Raises `NotReleasable`."""
    from contrib.release.bill_of_materials import bill_of_materials  # noqa: PLC0415 - half a second

    version, epoch, each_one = check_version(), commit_time(), distributions()
    if has_changes():
        console.print(
            "the tree has changes that are in no commit, and they are built", style="yellow"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn())
    # On the same file system as `out`, which takes its place at the end.
    with (
        TemporaryDirectory(dir=out.parent, prefix=".dist-") as temporary,
        Progress(*columns, console=console) as progress,
        ThreadPoolExecutor(os.cpu_count()) as threads,
    ):
        folder = Path(temporary)
        built = folder / "dist"
        twice = partial(build_twice, out=built, version=version, epoch=epoch)
        task = progress.add_task("building twice", total=len(each_one))
        for done in [threads.submit(twice, each, again=folder / each.name) for each in each_one]:
            done.result()
            progress.advance(task)
        write_pins(built, version)
        bill = bill_of_materials(version, epoch, built)
        (built / f"msgsvc-{version}.cdx.json").write_text(bill, "utf-8")
        if offline:
            task = progress.add_task("others' packages", total=1)
            download_others(built)
            progress.advance(task)
        write_sums(built)
        shutil.rmtree(out, ignore_errors=True)
        built.rename(out)
    return version


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m contrib.release.build")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder (dist)")
    parser.add_argument(
        "--offline", action="store_true", help="add the packages of others that it needs"
    )
    arguments = parser.parse_args()
    console = Console()
    try:
        version = build(arguments.out, offline=arguments.offline, console=console)
    except NotReleasable as error:
        sys.exit(f"nothing is built: {error}")
    files = len(list(arguments.out.iterdir()))
    index = "--no-index " if arguments.offline else ""
    console.print(f"{version}: {files} files in {arguments.out}, the same bytes twice")
    console.print(
        f"pip install {index}--find-links {arguments.out} -c {arguments.out}/constraints.txt msgsvc",
        markup=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
