"""Whoever reads here can look up what is cited."""

import re

from tests.architecture.tree import ROOT, assert_none, files_in, name_of, source_of

#: Documents from before the first release that are no part of the repository; decision 0075 stands for them.
#: That each begins with a letter, and looks behind afterwards, makes the search seven times quicker.
ABSENT = re.compile(
    r"[Ii]nterface spec|API(?<=\bAPI)(?<!Bot API), \"|spec(?<=\bspec), section"
    r"|interface-spec\.md|api(?<![-\w]api)\.md"
)

#: The page that says what they were, and the history.
TELL_OF_THEM = {"docs/decisions/0075-api-contract.md", "CHANGELOG.md"}

DECISION = re.compile(r"\b[Dd]ecision (\d{4})\b")

FOLDERS = ("msgsvc_core", "plugins", "contrib", "examples", "docs")
TEXTS = (".py", ".md", ".html", ".js", ".css", ".toml", ".po", ".service", ".conf", ".yml")


def texts() -> dict[str, str]:
    """The texts of the repository without its tests, by name."""
    found = (path for folder in FOLDERS for path in files_in(ROOT / folder, *TEXTS))
    return {name_of(path): source_of(path) for path in (*ROOT.glob("*.md"), *found)}


def test_nothing_cites_a_document_that_is_not_here() -> None:
    citing = [
        f"{name}: {match[0]}"
        for name, text in texts().items()
        if name not in TELL_OF_THEM and (match := ABSENT.search(text))
    ]

    assert_none(citing)


def test_every_decision_that_is_named_has_its_page() -> None:
    pages = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")}
    without = [
        f"{name}: decision {number}"
        for name, text in texts().items()
        for number in DECISION.findall(text)
        if number not in pages
    ]

    assert_none(without)
