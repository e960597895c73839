"""Whoever reads here can look up what is cited."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Documents from before the first release that are no part of the repository; decision 0075 stands for them.
ABSENT = re.compile(
    r"[Ii]nterface spec|(?<!Bot )\bAPI, \"|\bAPI conventions|\bspec, section|interface-spec\.md"
    r"|(?<![-\w])api\.md"
)

#: The page that says what they were, and the history.
TELL_OF_THEM = {"docs/decisions/0075-api-contract.md", "CHANGELOG.md"}

DECISION = re.compile(r"\b[Dd]ecision (\d{4})\b")

FOLDERS = ("msgsvc_core", "plugins", "contrib", "examples", "docs")
TEXTS = {".py", ".md", ".html", ".js", ".css", ".toml", ".po", ".service", ".conf", ".yml"}


def texts() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [
        path
        for path in [*ROOT.glob("*.md"), *found]
        if path.suffix in TEXTS and "node_modules" not in path.parts
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_cites_a_document_that_is_not_here(folder: str) -> None:
    citing = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts()
        if path.is_relative_to(ROOT / folder)
        and str(path.relative_to(ROOT)) not in TELL_OF_THEM
        and (match := ABSENT.search(path.read_text("utf-8")))
    ]

    assert citing == []


def test_every_decision_that_is_named_has_its_page() -> None:
    pages = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")}
    named = {number for path in texts() for number in DECISION.findall(path.read_text("utf-8"))}

    assert named - pages == set()
