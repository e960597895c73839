"""docs/reference is generated from the code, and says what the code says."""

import re
from collections.abc import Mapping
from difflib import unified_diff
from functools import cache
from itertools import islice

from msgsvc_core.cli.openapi import document_text
from msgsvc_core.cli.reference import of_everything, reference_pages
from msgsvc_core.service import Service
from tests.architecture.tree import ROOT, assert_none, source_of

REFERENCE = ROOT / "docs" / "reference"


@cache
def service() -> Service:
    return Service(of_everything())


@cache
def pages() -> Mapping[str, str]:
    return reference_pages(service())


def test_the_pages_are_up_to_date() -> None:
    differing = []
    for name, page in pages().items():
        if (written := source_of(REFERENCE / name)) != page:
            lines = unified_diff(written.splitlines(), page.splitlines(), name, name, "", "", 0, "")
            differing.append("\n".join(islice(lines, 20)))

    assert_none(differing, "run `make docs`")


def test_the_openapi_document_is_up_to_date() -> None:
    written = source_of(ROOT / "contrib" / "openapi.json")

    # Compared as a whole, the difference of two megabytes would take a minute to print.
    assert (written == document_text(service())) is True, "run `make docs`"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(pages())


def test_nothing_is_without_a_meaning() -> None:
    rows = {
        name: [line for line in pages()[name].splitlines() if line.startswith("|") and "`" in line]
        for name in ("errors.md", "logs.md", "settings.md")
    }
    without = [
        f"{name}: {row}"
        for name, of_page in rows.items()
        for row in of_page
        if not row.split("|")[-2].strip()
    ]

    assert all(rows.values())
    assert_none(without)


def test_values_are_shown_as_their_reader_types_them() -> None:
    rows = [
        line
        for name in ("endpoints.md", "settings.md")
        for line in pages()[name].splitlines()
        if line.startswith("| `")
    ]
    defaults = {row.split(" | ")[1] for row in rows}

    assert {"required", "none", "`true`", "`false`", "`[]`", '`"en"`'} <= defaults
    assert_none(each for each in defaults if re.search(r"True|False|None|^``$|'", each))


def test_every_line_of_a_page_says_what_the_page_is() -> None:
    endpoints = pages()["endpoints.md"]
    lines = [line for line in endpoints.splitlines() if line.startswith("- `GET ")]

    assert lines
    assert_none(line for line in lines if "partial(" in line)
