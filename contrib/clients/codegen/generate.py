"""Generates the code of the clients from contrib/openapi.json.

    python -m contrib.clients.codegen.generate           # writes what has changed
    python -m contrib.clients.codegen.generate --check   # writes nothing; exit code 1 if anything is stale

Each target is a module with `generate(contract)`, which returns the generated files by folder: the folder
holds nothing else, and the files are named by their path in it.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from contrib.clients.codegen import python_client
from contrib.clients.codegen.contract import Contract
from contrib.clients.codegen.rendering import ROOT

DOCUMENT = ROOT / "contrib/openapi.json"
TARGETS = (python_client,)

#: What tools leave beside the files.
_CACHES = {"__pycache__", ".mypy_cache"}


def stale(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The files of a folder that differ from `files`, are missing, or belong to nothing."""
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not _CACHES & set(path.parts)
    }
    return sorted(
        name
        for name in there | set(files)
        if name not in there or (folder / name).read_text("utf-8") != files.get(name)
    )


def write(folder: Path, name: str, text: str | None) -> None:
    """Writes a file, or removes it if there is no text."""
    path = folder / name
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def main(arguments: Sequence[str]) -> int:
    contract = Contract.read(DOCUMENT)
    checking = "--check" in arguments
    found = 0
    for target in TARGETS:
        folders: Mapping[Path, Mapping[str, str]] = target.generate(contract)
        for folder, files in folders.items():
            for name in stale(folder, files):
                found += 1
                print("stale" if checking else "wrote", (folder / name).relative_to(ROOT))
                if not checking:
                    write(folder, name, files.get(name))
    return 1 if found and checking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
