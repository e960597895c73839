"""The npm packages as they would be published."""

import json
from pathlib import Path

from tests.clients.typescript.building import program, run

CLIENTS = Path(__file__).parents[2] / "contrib" / "clients"


def test_each_package_has_the_license() -> None:
    scripts = [
        json.loads((CLIENTS / name / "package.json").read_text("utf-8"))["scripts"]["prepack"]
        for name in ("signin", "typescript")
    ]
    [packed] = json.loads(
        run(program("npm"), "pack", "--json", "--dry-run", "--silent", cwd=CLIENTS / "signin")
    )

    assert "LICENSE" in {file["path"] for file in packed["files"]}
    # The other one compiles first, which takes a compiler.
    assert scripts[1] == f"npm run build && {scripts[0]}"
