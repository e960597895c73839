"""What a release consists of: every distribution of this repository, all of one version.

    python -m contrib.release.distributions 0.2.0     # writes the version wherever it stands

`pyproject.toml` at the root says which version this is; `tests/unit/release` compares all other places
with it.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Folders of distributions. The examples are not released.
FOLDERS = (".", "plugins/*/*", "contrib/*", "contrib/clients/*")

#: Where a version stands: the files, and an expression whose only group is the version.
SPELLINGS = (
    (tuple(f"{folder}/pyproject.toml" for folder in FOLDERS), r'(?m)^version = "([^"]+)"'),
    (
        tuple(f"{folder}/pyproject.toml" for folder in FOLDERS),
        r'"msgsvc[a-z-]*(?:\[[a-z,]+\])?==([^"]+)"',
    ),
    (("contrib/clients/python/msgsvc_client/version.py",), r'__version__ = "([^"]+)"'),
    (("contrib/clients/typescript/src/version.ts",), r'VERSION = "([^"]+)"'),
    (("contrib/clients/*/package.json",), r'(?m)^  "version": "([^"]+)"'),
    # The package itself stands twice at the top; its dependencies have other places.
    (("contrib/clients/*/package-lock.json",), r'\A\{\s+"name": "[^"]+",\s+"version": "([^"]+)"'),
    (
        ("contrib/clients/*/package-lock.json",),
        r'"packages": \{\s+"": \{\s+"name": "[^"]+",\s+"version": "([^"]+)"',
    ),
    (("README.md",), r"(?m)^Version ([0-9][^,]*),"),
    (("contrib/deploy/compose.yaml",), r"(?m)^  image: localhost/msgsvc:(\S+)$"),
    (("contrib/deploy/kubernetes/kustomization.yaml",), r'(?m)^    newTag: "([^"]+)"'),
)

#: A release, or a pre-release such as 0.2.0rc1, as PEP 440 spells them.
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A folder with a `pyproject.toml`."""

    name: str
    folder: Path

    def file_prefix(self, version: str) -> str:
        """How the names of its wheel and its sdist begin."""
        return f"{self.name.replace('-', '_')}-{version}"


@dataclass(frozen=True, slots=True)
class Spelling:
    """A place where the version stands. `start` and `end` are its characters in the file."""

    path: Path
    version: str
    start: int
    end: int


def distributions() -> list[Distribution]:
    """All of them, by name."""
    found = []
    for pattern in FOLDERS:
        for path in ROOT.glob(f"{pattern}/pyproject.toml"):
            project = tomllib.loads(path.read_text("utf-8"))["project"]
            found.append(Distribution(project["name"], path.parent))
    return sorted(found, key=lambda each: each.name)


def released_version() -> str:
    """The version that this tree is, or will be when it is released."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def spellings() -> Iterator[Spelling]:
    for patterns, expression in SPELLINGS:
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                for match in re.finditer(expression, path.read_text("utf-8")):
                    yield Spelling(path, match[1], *match.span(1))


def differing() -> list[str]:
    """The places whose version is not `released_version()`."""
    version = released_version()
    return [
        f"{each.path.relative_to(ROOT)}: {each.version}"
        for each in spellings()
        if each.version != version
    ]


def write_version(version: str) -> None:
    # From the end of each file, so that earlier places stay where they are.
    for each in sorted(spellings(), key=lambda each: (each.path, -each.start)):
        text = each.path.read_text("utf-8")
        each.path.write_text(text[: each.start] + version + text[each.end :], "utf-8")


def main() -> None:
    match sys.argv[1:]:
        case [version] if VERSION.fullmatch(version):
            write_version(version)
            print(f"all are {version} now; next: make install docs clients, and CHANGELOG.md")
        case _:
            sys.exit("usage: python -m contrib.release.distributions 0.2.0")


if __name__ == "__main__":
    main()
