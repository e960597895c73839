"""What the recipes install is what they promise: all areas, the dashboard among them, and a messenger."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

RECIPES = ("contrib/deploy/msgsvc.service", "docs/operating.md")

#: What `pip install` is given: folders of this repository.
INSTALL = re.compile(r"/opt/msgsvc/bin/pip install -c (\S+) ([^\n]+)")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_installs_every_area_and_a_messenger(recipe: str) -> None:
    lines = INSTALL.findall((ROOT / recipe).read_text("utf-8"))

    assert lines
    for constraints, folders in lines:
        assert (ROOT / constraints).is_file()
        found = {
            path
            for pattern in folders.split()
            if pattern != "."
            for path in ROOT.glob(pattern.removeprefix("./"))
        }
        installed = {path.name for path in found if (path / "pyproject.toml").is_file()}
        areas = {path.name for path in (ROOT / "plugins" / "areas").glob("*/") if path.is_dir()}
        assert areas <= installed
        assert "telegram" in installed


def test_install_and_upgrade_install_the_same() -> None:
    lines = INSTALL.findall((ROOT / "docs" / "operating.md").read_text("utf-8"))

    assert len(lines) > 1
    assert len(set(lines)) == 1
