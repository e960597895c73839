"""`msgsvc plugin new`: which names and folders it takes, and what it writes."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from msgsvc_devkit.scaffold.packages import TEMPLATES

KINDS = ["channel", "area"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_says_what_was_written_and_what_comes_next(
    run: Any, folder: Path, kind: str
) -> None:
    result = run("plugin", "new", kind, "carrier_dove")

    assert result.exit_code == 0
    written = [path for path in (folder / "msgsvc-carrier-dove").rglob("*") if path.is_file()]
    assert f"wrote msgsvc-carrier-dove, {len(written)} files" in result.stdout
    assert "next: cd msgsvc-carrier-dove" in result.stdout
    named = [word for word in result.stdout.split() if word.startswith("msgsvc_carrier_dove/")]
    assert named
    assert all((folder / "msgsvc-carrier-dove" / name).is_file() for name in named)


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_is_written_and_none_shows_through(
    run: Any, folder: Path, kind: str
) -> None:
    run("plugin", "new", kind, "dove", "-d", "here")
    written = [path for path in (folder / "here").rglob("*") if path.is_file()]

    assert len(written) == len(list((TEMPLATES / kind).rglob("*.jinja")))
    for path in written:
        assert ".jinja" not in path.name
        assert "<<" not in path.read_text("utf-8")
        assert "TODO" not in path.read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_author_and_description_are_in_the_package(run: Any, folder: Path, kind: str) -> None:
    run("plugin", "new", kind, "dove", "--author", "Ann B.", "--description", "It's for doves.")
    project = tomllib.loads((folder / "msgsvc-dove" / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]

    assert (project["authors"], project["description"]) == ([{"name": "Ann B."}], "It's for doves.")
    assert project["entry-points"]["msgsvc.plugins"] == {"dove": "msgsvc_dove.plugin"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Dove",
        "9lives",
        "_dove",
        "dove_",
        "two__doves",
        "my-dove",
        "dove.py",
        "../dove",
        "голубь",
        "x" * 25,
        "class",
        "core",
        "server",
        "channels",
        "webhooks",
    ],
)
def test_a_name_that_no_plugin_can_have_is_refused(run: Any, folder: Path, name: str) -> None:
    result = run("plugin", "new", "channel", name)

    assert result.exit_code == 1
    assert result.stderr.startswith("msgsvc: ")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("author", ['Ann "B"', "Ann\nB", "C:\\Ann"])
def test_an_author_that_can_not_be_quoted_is_refused(run: Any, folder: Path, author: str) -> None:
    result = run("plugin", "new", "area", "dove", "--author", author)

    assert result.exit_code == 1
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(run: Any, folder: Path) -> None:
    (folder / "msgsvc-dove").mkdir()
    result = run("plugin", "new", "channel", "dove")

    assert result.exit_code == 1
    assert "--directory" in result.stderr
    assert list((folder / "msgsvc-dove").iterdir()) == []
    assert run("plugin", "new", "channel", "dove", "-d", "other/place").exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_minimal_writes_one_file_where_it_is_told_to(run: Any, folder: Path, kind: str) -> None:
    here = run("plugin", "new", kind, "lark", "--minimal")
    there = run("plugin", "new", kind, "song_lark", "--minimal", "--into", "own/plugins")

    assert (here.exit_code, there.exit_code) == (0, 0)
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(written) == [folder / "lark.py", folder / "own" / "plugins" / "song_lark.py"]
    assert "wrote own/plugins/song_lark.py" in there.stdout
    assert 'plugins_dir = "own/plugins"' in there.stdout
    assert f"docs/guides/first-{kind}.md" in there.stdout
    assert "<<" not in (folder / "own" / "plugins" / "song_lark.py").read_text("utf-8")


def test_minimal_leaves_a_file_that_is_there(run: Any, folder: Path) -> None:
    (folder / "lark.py").write_text("MINE = True")
    result = run("plugin", "new", "area", "lark", "--minimal")

    assert result.exit_code == 1
    assert "lark.py exists already" in result.stderr
    assert (folder / "lark.py").read_text() == "MINE = True"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--minimal", "--no-buttons"), "--minimal takes no other option than --into"),
        (("--minimal", "--author", "Ann"), "--minimal takes no other option than --into"),
        (("--minimal", "--directory", "here"), "--minimal takes no other option than --into"),
        (("--into", "here"), "--into needs --minimal"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    run: Any, folder: Path, options: tuple[str, ...], reason: str
) -> None:
    result = run("plugin", "new", "channel", "lark", *options)

    assert result.exit_code != 0
    assert reason in result.stderr
    assert list(folder.iterdir()) == []
