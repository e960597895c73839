"""Modules are compiled before workers start, in the form that pytest and Python look for."""

import os
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import _read_pyc

from msgsvc_devkit.compiled import compile_all, compile_module, rewritten_path

PATTERNS = ("test_*.py",)


def write(path: Path, code: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(code, "utf-8")
    return path


def test_modules_are_compiled_as_pytest_and_python_look_for_them(tmp_path: Path) -> None:
    rewritten = [
        write(tmp_path / name, "def test_one():\n    assert 1 == 2\n")
        for name in ("test_one.py", "conftest.py")
    ]
    other = write(tmp_path / "folder" / "module.py", "assert True\n")
    left_out = write(tmp_path / "out" / "module.py", "")

    compile_all([tmp_path], PATTERNS, lambda folder: folder.name == "out")

    for module in rewritten:
        code = _read_pyc(module, rewritten_path(module))
        assert code is not None
        assert "@pytest_ar" in code.co_names
    assert Path(cache_from_source(str(other))).exists()
    assert not rewritten_path(other).exists()
    assert not Path(cache_from_source(str(left_out))).exists()


def test_a_module_that_has_not_changed_stays(tmp_path: Path) -> None:
    module = write(tmp_path / "test_one.py", "")
    compile_module(module, PATTERNS)
    before = rewritten_path(module).stat().st_mtime_ns

    # A new clone has the same sources with other times.
    os.utime(module, (1, 1))
    compile_module(module, PATTERNS)
    assert rewritten_path(module).stat().st_mtime_ns == before

    write(module, "VALUE = 1\n")
    compile_module(module, PATTERNS)
    code = _read_pyc(module, rewritten_path(module))
    assert code is not None
    assert "VALUE" in code.co_names


def test_a_module_with_an_error_is_left_to_its_import(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = [write(tmp_path / name, "def") for name in ("test_wrong.py", "wrong.py")]
    right = write(tmp_path / "test_zebra.py", "")

    compile_all([tmp_path], PATTERNS)

    assert rewritten_path(right).exists()
    assert not any(rewritten_path(module).exists() for module in wrong)
    assert capfd.readouterr().err == ""
