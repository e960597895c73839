"""What the recipes install is what they promise: all areas, the dashboard among them, and a messenger."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

RECIPES = ("contrib/deploy/msgsvc.service", "docs/operating.md")

#: What `pip install` is given: a folder of wheels, its pins, and the distribution that brings all areas.
INSTALL = re.compile(
    r"/opt/msgsvc/bin/pip install --no-index --find-links dist -c dist/constraints\.txt '([^']+)'\n"
)


def test_a_recipe_installs_from_dist() -> None:
    for recipe in RECIPES:
        text = (ROOT / recipe).read_text("utf-8")

        assert text.count("bin/pip install") == len(INSTALL.findall(text)) > 0


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_installs_every_area_and_a_messenger(recipe: str) -> None:
    # `tests/unit/test_release.py` holds that `msgsvc` brings all areas.
    for requirement in map(Requirement, INSTALL.findall((ROOT / recipe).read_text("utf-8"))):
        assert requirement.name == "msgsvc"
        assert "telegram" in requirement.extras


def test_install_and_upgrade_install_the_same() -> None:
    lines = INSTALL.findall((ROOT / "docs" / "operating.md").read_text("utf-8"))

    assert len(lines) > 1
    assert len(set(lines)) == 1
