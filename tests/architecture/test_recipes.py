"""What the recipes install is what they promise: all areas, the dashboard among them, and a messenger."""

import re

from packaging.requirements import Requirement

from tests.architecture.tree import ROOT, assert_none, source_of

RECIPES = ("contrib/deploy/msgsvc.service", "docs/install.md")

#: What `pip install` is given: a folder of wheels, its pins, and the distribution that brings all areas.
INSTALL = re.compile(
    r"/opt/msgsvc/bin/pip install --no-index --find-links dist -c dist/constraints\.txt '([^']+)'\n"
)


def test_a_recipe_installs_from_dist() -> None:
    wrong = []
    for recipe in RECIPES:
        text = source_of(ROOT / recipe)
        installs, of_dist = text.count("bin/pip install"), len(INSTALL.findall(text))
        if not installs or installs != of_dist:
            wrong.append(f"{recipe}: {of_dist} of {installs} install from dist")

    assert_none(wrong)


def test_a_recipe_installs_every_area_and_a_messenger() -> None:
    # `tests/unit/test_release.py` holds that `msgsvc` brings all areas.
    wrong = [
        f"{recipe}: {text}"
        for recipe in RECIPES
        for text in INSTALL.findall(source_of(ROOT / recipe))
        if Requirement(text).name != "msgsvc" or "telegram" not in Requirement(text).extras
    ]

    assert_none(wrong)


def test_install_and_upgrade_install_the_same() -> None:
    lines = INSTALL.findall(source_of(ROOT / "docs" / "install.md"))

    assert len(lines) > 1
    assert len(set(lines)) == 1
