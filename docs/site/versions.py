"""The versions of the docs beside each other: `next`, of the checkout, and one of each tagged release.

build/site/ has a folder for each, and `latest`, which is the newest release:

    index.html      leads to the preferred version: `latest`, or `next` before the first release
    versions.js     their list, for the choice in the header of each page
    llms.txt        where the list of pages of each version is
    next/  latest/  0.2/  0.1/
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A release of which the documentation is kept: the newest `v1.2.*` as `1.2`.
_TAG = re.compile(r"v(?P<minor>\d+\.\d+)\.(?P<patch>\d+)")

#: What a tag's tree must have for its documentation to be built.
_BUILDER = "docs/site/versions.py"

NEXT = "next"
LATEST = "latest"


@dataclass(frozen=True)
class Release:
    """`name` is the folder's, `0.1`; `tag` is `v0.1.3`."""

    name: str
    tag: str

    @property
    def version(self) -> str:
        return self.tag.removeprefix("v")


def newest_of_each(tags: Sequence[str]) -> list[Release]:
    """The newest patch of each minor version, the newest first. Tags of other forms don't count."""
    found: dict[tuple[int, ...], tuple[int, Release]] = {}
    for tag in tags:
        if match := _TAG.fullmatch(tag):
            minor = tuple(map(int, match["minor"].split(".")))
            patch = int(match["patch"])
            if minor not in found or found[minor][0] < patch:
                found[minor] = (patch, Release(match["minor"], tag))
    return [release for _, (_, release) in sorted(found.items(), reverse=True)]


def releases(root: Path) -> list[Release]:
    """Those whose documentation can be built, by the checkout's tags; none outside of a repository."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return []
    found = newest_of_each(_git(root, "tag", "--list").decode().split())
    return [one for one in found if _git(root, "ls-tree", "--name-only", one.tag, _BUILDER)]


def build_release(root: Path, release: Release, kept: Path) -> Path:
    """The folder with the pages of a release, below `kept`, where they stay for the next time."""
    commit = _git(root, "rev-parse", f"{release.tag}^{{commit}}").decode().strip()
    built = kept / commit
    if not built.exists():
        source = kept / "source"
        shutil.rmtree(source, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", commit))) as archive:
            archive.extractall(source, filter="data")
        # Its own code builds it, since pages and code belong together.
        command = [sys.executable, "-m", "docs.site.build", "--one", str(source / "pages")]
        subprocess.run(command, check=True, cwd=source)
        (source / "pages").rename(built)
        shutil.rmtree(source)
    return built


def put_together(site: Path, checkout: Path, built: Sequence[tuple[Release, Path]]) -> None:
    """Fills `site` with the pages of the checkout and of the releases, the newest first."""
    shutil.rmtree(site, ignore_errors=True)
    _linked(checkout, site / NEXT)
    for release, pages in built:
        _linked(pages, site / release.name)
    if built:
        _linked(built[0][1], site / LATEST)
    preferred = LATEST if built else NEXT
    versions = [{"name": NEXT, "title": NEXT, "isOutdated": False}]
    if built:
        title = f"{built[0][0].version} ({LATEST})"
        versions.append({"name": LATEST, "title": title, "isOutdated": False})
    versions += [
        {"name": release.name, "title": release.version, "isOutdated": place > 0}
        for place, (release, _) in enumerate(built)
    ]
    known = [{**one, "pages": list(_pages(site / str(one["name"])))} for one in versions]
    listed = json.dumps({"preferred": preferred, "versions": known}, separators=(",", ":"))
    (site / "versions.js").write_text(f"window.msgsvcVersions={listed}\n", encoding="utf-8")
    (site / "index.html").write_text(_FIRST.format(preferred=preferred), encoding="utf-8")
    (site / "llms.txt").write_text(_llms(versions), encoding="utf-8")


def _llms(versions: Sequence[dict[str, object]]) -> str:
    rows = "".join(f"- [{one['title']}]({one['name']}/llms.txt)\n" for one in versions)
    return f"# msgsvc\n\n> Each version's list of its pages.\n\n{rows}"


def _pages(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.html")):
        if path.name != "404.html":
            yield path.relative_to(folder).as_posix()


def _linked(source: Path, target: Path) -> None:
    """A copy that shares its files on the disk."""
    shutil.copytree(source, target, copy_function=os.link)


def _git(root: Path, *command: str) -> bytes:
    program = shutil.which("git")
    assert program is not None, "releases() looks first"
    done = subprocess.run([program, *command], cwd=root, capture_output=True, check=True)
    return done.stdout


#: No script is needed to be led on, and the link is for those whose browser doesn't.
_FIRST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={preferred}/index.html">
<title>msgsvc</title>
<p><a href="{preferred}/index.html">Documentation of msgsvc</a></p>
</html>
"""
