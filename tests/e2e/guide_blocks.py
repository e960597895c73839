"""Reads a guide's code blocks, and puts its pieces of Python where they belong.

After the language a block says what becomes of it: `sh` is run, `sh fails` is run and fails, `python
<path>` goes into a file, `toml <path>` is a file, `text` is what the last command has printed.
"""

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Options of mypy: what it found out of the installed packages serves whatever is checked next.
KEPT_TYPES = ("--cache-dir", str(Path(__file__).parents[2] / ".mypy_cache" / "written"))

_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Block:
    """One code block. `before` is the guide's text from the block before to this one."""

    language: str
    what: str
    code: str
    before: str
    line: int


def blocks_of(guide: Path) -> Iterator[Block]:
    """The blocks in their order."""
    text, end = guide.read_text("utf-8"), 0
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(match[1], match[2] or "", match[3], text[end : match.start()], line)
        end = match.end()


def run_in_a_shell(
    blocks: Sequence[Block], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """All commands of a guide in one shell, which ends at the first that fails, with what it has begun."""
    script = ["exec 2>&1", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for place, block in enumerate(blocks):
        if block.language == "sh":
            script += [f"echo '== {place}'", block.code]
    return subprocess.run(
        ["bash", "-ec", "\n".join(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def merged(source: str, piece: str) -> str:
    """`source` with what `piece` defines in the place of what has the same name there.

    Of a class only the members that the piece has are replaced; what is new comes at the end, and
    imports after the others.
    """
    for node in ast.parse(piece).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = _with_import(source, ast.unparse(node))
        elif isinstance(node, ast.ClassDef) and (target := _find(ast.parse(source), _name(node))):
            assert isinstance(target, ast.ClassDef)
            for member in node.body:
                if isinstance(member, _Named):
                    source = _with_member(source, target.name, _lines(piece, member), member)
        elif isinstance(node, _Named):
            source = _replaced(source, _find(ast.parse(source), _name(node)), _lines(piece, node))
    return source


def _with_member(source: str, of: str, lines: str, member: _Named) -> str:
    holder = _find(ast.parse(source), of)
    assert isinstance(holder, ast.ClassDef)
    target = _find(holder, _name(member))
    if target is not None:
        return _replaced(source, target, lines)
    all_lines = source.splitlines(keepends=True)
    end = holder.body[-1].end_lineno or 0
    return "".join([*all_lines[:end], "\n", lines, *all_lines[end:]])


def _with_import(source: str, statement: str) -> str:
    body = ast.parse(source).body
    last = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)][-1]
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: last.end_lineno], statement + "\n", *lines[last.end_lineno or 0 :]])


def _replaced(source: str, target: _Named | None, new: str) -> str:
    if target is None:
        return f"{source.rstrip()}\n\n\n{new}"
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: _first(target) - 1], new, *lines[target.end_lineno or 0 :]])


def _find(holder: ast.Module | ast.ClassDef, name: str) -> _Named | None:
    for node in holder.body:
        if isinstance(node, _Named) and _name(node) == name:
            return node
    return None


def _name(node: _Named) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else node.name


def _lines(piece: str, node: _Named) -> str:
    lines = piece.splitlines(keepends=True)
    return "".join(lines[_first(node) - 1 : node.end_lineno])


def _first(node: _Named) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])
