"""Pytest plugin that compiles modules once, before the workers of pytest-xdist start.

In a new clone each worker would rewrite the asserts of all test modules and compile all other modules, at the
same time as the other workers.

The ini setting `compiled_folders` lists the folders. Folders that pytest does not collect are left out, and
modules that have not changed stay as they are.
"""

import compileall
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from importlib.util import source_hash
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc_fp, get_cache_dir

FOLDERS = "compiled_folders"

#: Bytes before the code of a compiled test module: the last eight are of the source's hash.
_HEADER_BYTES = 16


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(FOLDERS, "folders whose modules are compiled before workers start", type="paths")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    starts_workers = bool(config.getoption("numprocesses", None))
    if not starts_workers or hasattr(config, "workerinput") or sys.dont_write_bytecode:
        return

    def is_left_out(folder: Path) -> bool:
        return bool(config.hook.pytest_ignore_collect(collection_path=folder, config=config))

    folders = [folder for folder in config.getini(FOLDERS) if not is_left_out(folder)]
    compile_all(folders, config.getini("python_files"), is_left_out)


def compile_all(
    folders: Sequence[Path],
    patterns: Sequence[str],
    is_left_out: Callable[[Path], bool] = lambda _folder: False,
) -> None:
    """Compiles all modules in these folders, on all processors. In those that match a pattern, and in
    `conftest.py`, asserts are rewritten as pytest does."""
    modules = [str(module) for folder in folders for module in _modules_in(folder, is_left_out)]
    processes = min(os.cpu_count() or 1, len(modules))
    running = []
    for number in range(processes):
        given = json.dumps({"modules": modules[number::processes], "patterns": [*patterns]})
        # Isolated, so that modules in this folder are not found by their bare names.
        process = subprocess.Popen([sys.executable, "-I", __file__], stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(given.encode())
        process.stdin.close()
        running.append(process)
    for process in running:
        # Whatever was not compiled is compiled when it is imported.
        process.wait()


def _modules_in(folder: Path, is_left_out: Callable[[Path], bool]) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not is_left_out(Path(path, name))]
        yield from (Path(path, name) for name in files if name.endswith(".py"))


def compile_module(module: Path, patterns: Sequence[str]) -> None:
    """Compiles one module, unless its compiled form is up to date."""
    if module.name == "conftest.py" or any(fnmatch(module.name, each) for each in patterns):
        _rewrite(module)
    else:
        compileall.compile_file(module, quiet=2)


def rewritten_path(module: Path) -> Path:
    """Where pytest looks for the compiled form of a module with rewritten asserts."""
    return get_cache_dir(module) / (module.stem + PYC_TAIL)


def _rewrite(module: Path) -> None:
    made = rewritten_path(module)
    if made.exists():
        with made.open("rb") as file:
            if file.read(_HEADER_BYTES)[8:] == source_hash(module.read_bytes()):
                return
    try:
        digest, code = _rewrite_test(module, None)  # type: ignore[arg-type] # read only with an option that is off
    except SyntaxError:
        # It fails again when it is imported, with its traceback.
        return
    made.parent.mkdir(parents=True, exist_ok=True)
    unfinished = made.with_name(f"{made.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        _write_pyc_fp(file, digest, code)
    os.replace(unfinished, made)


def main() -> None:
    given = json.load(sys.stdin)
    for module in given["modules"]:
        compile_module(Path(module), given["patterns"])


if __name__ == "__main__":
    main()
