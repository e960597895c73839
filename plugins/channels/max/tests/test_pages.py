"""The README and the guide say what the code does."""

import re
import tomllib
from pathlib import Path

import pytest

from msgsvc_max.settings import MaxSettings

PLUGIN = Path(__file__).parents[1]
README = PLUGIN / "README.md"
GUIDE = PLUGIN.parents[2] / "docs" / "guides" / "max.md"


def test_every_setting_is_described_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", README.read_text("utf-8"), re.MULTILINE))
    defaults = {
        name: "needed" if field.is_required() else _shown(field.default)
        for name, field in MaxSettings.model_fields.items()
    }

    assert {name: rows.get(name, "missing").strip() for name in defaults} == defaults


@pytest.mark.parametrize("page", [README, GUIDE], ids=["README", "guide"])
def test_examples_of_configurations_can_be_read(page: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    channels = [
        options for block in blocks for options in tomllib.loads(block).get("channels", {}).values()
    ]

    assert channels
    for options in channels:
        assert options.pop("plugin") == "max"
        assert MaxSettings.model_validate({"token": "x", **options})


@pytest.mark.parametrize("page", [README, GUIDE], ids=["README", "guide"])
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text("utf-8"))

    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_module_is_on_the_map() -> None:
    text = README.read_text("utf-8")
    modules = {path.name for path in (PLUGIN / "msgsvc_max").glob("*.py")}

    assert {name for name in modules if f"`{name}`" not in text} <= {"__init__.py", "plugin.py"}


def _shown(default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"{default:g}" if isinstance(default, float) else f"`{default}`"
