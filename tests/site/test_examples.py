"""The API's pages: each example is a call that the clients have, in Python and in TypeScript."""

import ast
import inspect
import json
import subprocess
import sys
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest

from docs.site.api_pages import api_pages
from docs.site.pages import Page
from msgsvc_client import Client
from tests.clients.typescript.building import PACKAGE, built_client, compiler, program, run
from tests.clients.typescript.test_typescript_client import STRICT
from tests.e2e.guide_blocks import KEPT_TYPES, Block, blocks_of
from tests.site.tools import ROOT


@cache
def pages() -> tuple[Page, ...]:
    return tuple(api_pages(json.loads((ROOT / "contrib" / "openapi.json").read_text("utf-8"))))


@cache
def operations() -> int:
    paths = json.loads((ROOT / "contrib" / "openapi.json").read_text("utf-8"))["paths"]
    return sum(len(operations) for operations in paths.values())


def blocks(tmp_path: Path, language: str) -> list[Block]:
    found = []
    for page in pages():
        path = tmp_path / Path(page.place).name
        path.write_text(page.text, "utf-8")
        found += [block for block in blocks_of(path) if block.language == language]
    return found


def called(client: Client, call: ast.Call) -> Any:
    """The method that `client.auth.sessions.create(...)` calls."""
    names: list[str] = []
    node = call.func
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    assert isinstance(node, ast.Name)
    assert node.id == "client"
    return reduce(getattr, names, client)


def test_every_operation_has_an_example_in_each_language(tmp_path: Path) -> None:
    tabs = {
        language: sum(block.what == f"tab={tab}" for block in blocks(tmp_path, language))
        for language, tab in {"sh": "curl", "python": "Python", "ts": "TypeScript"}.items()
    }

    assert operations() > 100
    assert tabs == dict.fromkeys(tabs, operations())


def test_python_examples_call_methods_with_arguments_that_they_take(tmp_path: Path) -> None:
    with Client("msk_example", "https://msgsvc.example") as client:
        for block in blocks(tmp_path, "python"):
            calls = [
                node
                for node in ast.walk(ast.parse(block.code))
                if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("client.")
            ]
            assert len(calls) == 1, block.code
            (call,) = calls
            signature = inspect.signature(called(client, call))
            signature.bind(
                *call.args, **{keyword.arg: None for keyword in call.keywords if keyword.arg}
            )


def test_python_examples_are_typed(tmp_path: Path) -> None:
    for number, block in enumerate(blocks(tmp_path, "python")):
        (tmp_path / f"example_{number}.py").write_text(block.code, "utf-8")
    written = sorted(tmp_path.glob("example_*.py"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            *KEPT_TYPES,
            "--no-error-summary",
            *written,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_typescript_examples_pass_the_strict_compiler(tmp_path: Path) -> None:
    built = built_client()
    for number, block in enumerate(blocks(tmp_path, "ts")):
        (tmp_path / f"example{number}.ts").write_text(block.code, "utf-8")
    options = {
        **STRICT,
        "types": ["node"],
        "lib": ["ES2023"],
        "typeRoots": [str(PACKAGE / "node_modules" / "@types")],
        "paths": {"@msgsvc/client": [str(built / "index.d.ts")]},
    }
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}', "utf-8")
    project = {"compilerOptions": options, "include": ["*.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(project), "utf-8")

    output = run(program("node"), compiler(), "--project", tmp_path, cwd=tmp_path)

    assert output == ""


def test_areas_of_the_api_have_names_that_people_know() -> None:
    shorts = {page.place: page.short for page in pages()}

    assert shorts["api/otp.md"] == "One-time codes"
    assert shorts["api/auth.md"] == "Sign-in"
    assert all(shorts.values())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "## `POST /v1/send` {#send}\n",
            '<span class="method post">POST</span> `/v1/send` {#send}',
        ),
        ("```sh tab=curl\ncurl x\n```\n", '=== "curl"\n\n    ```sh\n    curl x\n    ```\n'),
        ("```python shop.py\nx\n```\n", '```python title="shop.py"\nx\n```\n'),
        ("- a\n  - b\n", "- a\n    - b\n"),
    ],
)
def test_the_site_shows_in_its_own_way(text: str, shown: str) -> None:
    assert shown in Page("a.md", text).rendered()
