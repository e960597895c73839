"""What guides and READMEs say of scopes, defaults and installation is so."""

import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.config.sections import Section
from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.loading import available_plugins, load_plugins
from msgsvc_core.service import Service
from tests.architecture.tree import ROOT, assert_none, files_in, source_of

#: Key scopes in commands and in sentences.
_SCOPES = re.compile(r"--scope '?([^\s'`]+)|\bscopes? `([^`]+)`")

#: `section.setting` (N), with a unit that is the setting's own; and N (`section.setting`).
_FIGURE_AFTER = re.compile(
    r"`([a-z_]+\.[a-z_]+)` \(([\d,.]*\d)(?: (?:s|days|hours))?(?: by default|, the default)?[),;]"
)
_FIGURE_BEFORE = re.compile(
    r"([\d,.]*\d)(?: (KiB|MiB))?(?: [a-z]+){0,3} \(`([a-z_]+\.[a-z_]+)`[);]"
)
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024**2}

#: A table of settings: its head, and its rows.
_TABLE = re.compile(r"^\| (?:setting|name) \| default \|.*\n\|[ -|]+\n((?:\|.*\n)+)", re.MULTILINE)
_LITERALS = {
    "on": True,
    "off": False,
    "true": True,
    "false": False,
    "none": None,
    "[]": [],
    "{}": {},
}

#: Rows whose setting is a table, or whose default is said in words.
_IN_WORDS = {"plans.<name>", "prices", "mini_app_frames"}

_INSTALLS = re.compile(r"(?:pip|pipx|uv|uvx|npm) (?:pip )?(?:install|add|i) [^`\n]*")
_FROM_A_RELEASE = "--no-index --find-links dist -c dist/constraints.txt"


def pages() -> list[Path]:
    """What people read of us, without decisions, which tell of their time, and what is generated."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "plugins", "contrib", "examples"):
        found += files_in(ROOT / folder, ".md")
    return [path for path in found if not {"reference", "decisions"} & set(path.parts)]


@cache
def defaults() -> dict[str, Any]:
    """The default of each setting, by `section.name`."""
    found = dict(_defaults_of(Settings, ""))
    for section in load_plugins(sorted(available_plugins())).hook.register_settings():
        found |= _defaults_of(section.model, f"{section.name}.")
    return found


def _defaults_of(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if inspect.isclass(kind) and issubclass(kind, Section):
            yield from _defaults_of(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.get_default(call_default_factory=True)


def test_named_scopes_are_those_of_endpoints() -> None:
    areas = {endpoint.area for endpoint in Service(of_everything()).endpoints}
    named = [
        (path, scope)
        for path in pages()
        if "openid" not in path.name and path.parent.name != "oidc"
        for found in _SCOPES.finditer(source_of(path))
        for scope in (found[1] or found[2]).split(",")
    ]

    assert named
    assert_none(
        f"{path.relative_to(ROOT)}: {scope}"
        for path, scope in named
        if scope.removesuffix(":read") not in {*areas, "*", "*read"}
    )


def test_figures_beside_a_setting_are_its_default() -> None:
    named = []
    for path in pages():
        text = source_of(path)
        named += [(path, each[1], each[2], "") for each in _FIGURE_AFTER.finditer(text)]
        named += [(path, each[3], each[1], each[2] or "") for each in _FIGURE_BEFORE.finditer(text)]
    known = [each for each in named if each[1] in defaults()]

    assert len(known) > 20
    assert_none(
        f"{path.relative_to(ROOT)}: {setting} is {defaults()[setting]}, not {figure} {unit}"
        for path, setting, figure, unit in known
        if float(figure.replace(",", "")) * _UNITS[unit] != defaults()[setting]
    )


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("plugins/areas/*/README.md")), ids=lambda path: path.parent.name
)
def test_a_table_of_settings_has_the_defaults(path: Path) -> None:
    package = next(path.parent.glob("msgsvc_*")).name
    section = next(
        (
            each
            for each in load_plugins(sorted(available_plugins())).hook.register_settings()
            if each.model.__module__.partition(".")[0] == package
        ),
        None,
    )
    tables = _TABLE.findall(source_of(path))
    if section is None:
        assert not tables
        return
    wrong = []
    for row in "".join(tables).splitlines():
        _, names, values, *_ = row.split("|")
        settings = re.findall(r"`([^`]+)`", names)
        if set(settings) <= _IN_WORDS:
            continue
        # One value may be that of all settings of the row.
        shown = values.split(",") if "," in values else [values] * len(settings)
        for setting, value in zip(settings, shown, strict=True):
            name = f"{section.name}.{setting}"
            if name not in defaults():
                wrong.append(f"{name}: there is no such setting")
            elif not _is_default(value.strip(), defaults()[name]):
                wrong.append(f"{name} is {defaults()[name]}, not {value}")

    assert_none(wrong)


def _is_default(written: str, default: Any) -> bool:
    text = written.strip("`")
    if text in _LITERALS:
        return json.dumps(_LITERALS[text]) == json.dumps(default)
    return text == str(default) or (text.isdecimal() and float(text) == default)


def test_a_package_of_ours_is_installed_from_a_release() -> None:
    # Its name is not registered at any index: somebody else could take it.
    wrong = []
    for path in pages():
        for install in _INSTALLS.findall(source_of(path)):
            ours = re.search(
                r"(?<![\w/])(?:msgsvc|@msgsvc)\b", install.replace(_FROM_A_RELEASE, "")
            )
            if ours and _FROM_A_RELEASE not in install:
                wrong.append(f"{path.relative_to(ROOT)}: {install}")

    assert_none(wrong)
