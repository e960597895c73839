"""docs/reference is generated from the code, and says what the code says."""

from pathlib import Path

import pytest

from msgsvc_core.cli.openapi import document_text
from msgsvc_core.cli.reference import of_everything, reference_pages
from msgsvc_core.service import Service

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SERVICE = Service(of_everything())
PAGES = reference_pages(SERVICE)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")

    assert written == PAGES[name], "run `make docs`"


def test_the_openapi_document_is_up_to_date() -> None:
    written = (ROOT / "contrib" / "openapi.json").read_text(encoding="utf-8")

    # Compared as a whole, the difference of two megabytes would take a minute to print.
    assert (written == document_text(SERVICE)) is True, "run `make docs`"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", ["errors.md", "logs.md", "settings.md"])
def test_nothing_is_without_a_meaning(name: str) -> None:
    rows = [line for line in PAGES[name].splitlines() if line.startswith("|") and "`" in line]

    assert rows
    assert [row for row in rows if not row.split("|")[-2].strip()] == []


def test_every_line_of_a_page_says_what_the_page_is() -> None:
    pages = [line for line in PAGES["endpoints.md"].splitlines() if line.startswith("- `GET ")]

    assert pages
    assert [line for line in pages if "partial(" in line] == []
