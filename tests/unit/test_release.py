"""What a release promises: one version, the same bytes twice, whole sdists, a bill of materials."""

import json
import tomllib
from importlib.metadata import distribution, entry_points
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from contrib.release import distributions as released
from contrib.release.bill_of_materials import bill_of_materials
from contrib.release.build import NotReleasable, build_twice, check_version, write_pins
from contrib.release.changelog import NoSection, section_of
from contrib.release.distributions import ROOT, SPELLINGS, Distribution, distributions

EPOCH = 1_750_000_000

NAMES = [each.name for each in distributions()]


def project_of(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    return project


META = project_of(ROOT / "contrib/msgsvc")


def test_everything_has_one_version() -> None:
    assert released.differing() == []
    assert {"msgsvc", "msgsvc-core", "msgsvc-client", "msgsvc-devkit", "msgsvc-auth"} <= {*NAMES}


@pytest.mark.parametrize("patterns", [patterns for patterns, _ in SPELLINGS])
def test_a_place_of_the_version_is_one(patterns: tuple[str, ...]) -> None:
    # Else the test above would pass over a place whose file was moved or whose form has changed.
    places = {each.path for each in released.spellings()}

    assert all(path in places for pattern in patterns[:1] for path in ROOT.glob(pattern))
    assert any(ROOT.glob(patterns[0]))


def test_a_new_version_is_written_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in {each.path for each in released.spellings()}:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    before = len(list(released.spellings()))
    monkeypatch.setattr(released, "ROOT", tmp_path)

    released.write_version("12.34.56")

    assert released.differing() == []
    assert [each.version for each in released.spellings()] == ["12.34.56"] * before


def test_an_odd_version_stops_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("README.md", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "contrib/odd").mkdir(parents=True)
    (tmp_path / "contrib/odd/pyproject.toml").write_text('version = "9.9.9"\n')
    monkeypatch.setattr(released, "ROOT", tmp_path)

    with pytest.raises(NotReleasable, match=r"contrib/odd/pyproject\.toml: 9\.9\.9"):
        check_version()


def test_the_meta_package_brings_all_that_is_loaded_by_default() -> None:
    by_default = {
        f"msgsvc-{point.module.partition('.')[0].removeprefix('msgsvc_')}"
        for point in entry_points(group="msgsvc.default_plugins")
    }
    brought = {Requirement(text).name for text in META["dependencies"]}

    assert brought == by_default | {"msgsvc-core"}


def test_every_extra_of_the_core_and_every_messenger_is_one_of_the_meta_package() -> None:
    extras = META["optional-dependencies"]
    messengers = {path.parent.name for path in ROOT.glob("plugins/channels/*/pyproject.toml")}
    core = project_of(ROOT)["optional-dependencies"]

    assert extras.keys() - {"all"} == core.keys() | messengers - {"sandbox"}
    (everything,) = extras["all"]
    assert Requirement(everything).extras == extras.keys() - {"all", "testing"}


@pytest.mark.parametrize("each", distributions(), ids=lambda each: each.name)
def test_a_distribution_brings_the_licence_and_says_what_it_adds(each: Distribution) -> None:
    readme = (each.folder / "README.md").read_text("utf-8")
    project = project_of(each.folder)

    assert (each.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["readme"] == "README.md"
    assert str(project["description"]).endswith(".")
    assert f"`{each.name}`" in readme or readme.startswith(f"# {each.name}") or each.folder == ROOT


def test_the_changelog_has_a_section_of_this_version() -> None:
    assert check_version() == project_of(ROOT)["version"]


CHANGELOG = """# Changelog

## [0.3.0] - not released yet

## [0.2.0] - 2027-01-31

### Added

- Pigeons.

## [0.1.0] - 2026-12-01

- The beginning.
"""


def test_a_section_ends_where_the_next_begins() -> None:
    assert section_of("0.2.0", CHANGELOG) == "### Added\n\n- Pigeons."
    assert section_of("0.1.0", CHANGELOG) == "- The beginning."


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0", "0.2"])
def test_a_version_of_which_the_changelog_says_nothing_is_refused(version: str) -> None:
    with pytest.raises(NoSection, match=version):
        section_of(version, CHANGELOG)


def test_a_distribution_has_the_same_bytes_from_its_sdist_elsewhere(tmp_path: Path) -> None:
    (auth,) = (each for each in distributions() if each.name == "msgsvc-auth")
    out = tmp_path / "dist"
    version = released.released_version()

    build_twice(auth, out, tmp_path / "again", version, EPOCH)

    assert sorted(path.name for path in out.iterdir()) == [
        f"msgsvc_auth-{version}-py3-none-any.whl",
        f"msgsvc_auth-{version}.tar.gz",
    ]


def test_the_pins_of_a_release_hold_our_own_names_too(tmp_path: Path) -> None:
    write_pins(tmp_path, "0.9.0")
    pins = (tmp_path / "constraints.txt").read_text("utf-8").splitlines()

    assert {f"{name}==0.9.0" for name in NAMES} < set(pins)
    assert set((ROOT / "constraints.txt").read_text("utf-8").splitlines()) < set(pins)


def test_an_sdist_without_all_of_the_sources_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    (folder / "odd").mkdir(parents=True)
    for name in ("__init__.py", "forgotten.py"):
        (folder / "odd" / name).touch()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "odd"\nversion = "1.0.0"\n'
        'requires-python = ">=3.11"\n'
        '[tool.hatch.build.targets.sdist]\nexclude = ["forgotten.py"]\n'
    )

    with pytest.raises(NotReleasable, match=r"odd-1\.0\.0-py3-none-any\.whl has other bytes"):
        build_twice(Distribution("odd", folder), tmp_path / "dist", tmp_path, "1.0.0", EPOCH)


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    wheels = tmp_path_factory.mktemp("wheels")
    version = released.released_version()
    for each in distributions():
        (wheels / f"{each.file_prefix(version)}-py3-none-any.whl").write_text(each.name)
    text = bill_of_materials(version, EPOCH, wheels)

    assert text == bill_of_materials(version, EPOCH, wheels)
    read: dict[str, Any] = json.loads(text)
    return read


def test_the_bill_names_the_pinned_version_of_all_that_is_installed(
    bill: dict[str, Any],
) -> None:
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    )
    others = {
        each["name"]: each["version"]
        for each in bill["components"]
        if not each["name"].startswith("msgsvc")
    }

    assert {"starlette", "asyncpg", "redis", "dramatiq", "pika", "joserfc"} <= others.keys()
    assert "pytest" not in others
    assert others == {name: pins[name] for name in others}


def test_what_the_first_supported_python_needs_beside_is_pinned_too(bill: dict[str, Any]) -> None:
    oldest = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}
    texts = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [Requirement(text) for text in texts if "==" in text]
    installed = [each["name"] for each in bill["components"]]
    needed = {
        one.name.lower().replace("_", "-")
        for name in installed
        for one in map(Requirement, distribution(name).requires or ())
        if one.marker is None or one.marker.evaluate(oldest)
    }
    pinned = {
        pin.name.lower().replace("_", "-")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(oldest)
    }

    assert "async-timeout" in needed
    assert {name for name in needed - pinned if not name.startswith("msgsvc")} == set()


def test_the_bill_has_licences_hashes_of_ours_and_what_needs_what(
    bill: dict[str, Any],
) -> None:
    components = {each["name"]: each for each in bill["components"]}
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    version = released.released_version()

    assert components["msgsvc-auth"]["hashes"]
    assert [name for name, each in components.items() if not each.get("licenses")] == []
    assert f"pkg:pypi/msgsvc-core@{version}" in needs[f"pkg:pypi/msgsvc-telegram@{version}"]
