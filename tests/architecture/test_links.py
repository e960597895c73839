"""Links between the pages of the repository lead somewhere, and the glossary names what there is."""

import re
from functools import cache
from pathlib import Path

from tests.architecture.tree import ROOT, assert_none, files_in, name_of, source_of

FOLDERS = ("docs", "plugins", "contrib", "examples")

LINK = re.compile(r"\]\(([^)\s]+)\)")
SCHEME = re.compile(r"[a-z]+:")
CODE = re.compile(r"(?ms)^```.*?^```$")

#: `POST /v1/send`, or `/v1/members` for all methods of a resource.
ENDPOINT = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) )?(/(?:v1|login)/[^`]+)`")


@cache
def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them, and those it names itself."""
    text = CODE.sub("", source_of(page))
    titles = (re.sub(r"[`*]", "", title) for title in re.findall(r"(?m)^#+ (.+)$", text))
    made = {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def broken_links(page: Path) -> list[str]:
    broken = []
    for target in LINK.findall(CODE.sub("", source_of(page))):
        if SCHEME.match(target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (
            anchor and path.suffix == ".md" and anchor not in anchors_of(path)
        ):
            broken.append(target)
    return broken


def test_links_lead_to_files_and_headings() -> None:
    pages = [*ROOT.glob("*.md"), *(path for f in FOLDERS for path in files_in(ROOT / f, ".md"))]
    broken = [f"{name_of(page)}: {target}" for page in pages for target in broken_links(page)]

    assert len(pages) > 100
    assert_none(broken)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[here](#a-title) [gone](other.md) [no heading](#none)", "utf-8")

    assert broken_links(page) == ["other.md", "#none"]


def test_the_glossary_names_endpoints_that_there_are() -> None:
    reference = source_of(ROOT / "docs/reference/endpoints.md")
    # Endpoints are headings, pages lines of a list, with all their methods.
    declared = re.findall(r"(?m)^(?:### |- )`([A-Z, ]+) (/\S+)`", reference)
    endpoints = {f"{method} {path}" for methods, path in declared for method in methods.split(", ")}
    paths = {path for _, path in declared}
    named = ENDPOINT.findall(source_of(ROOT / "docs/glossary.md"))

    assert len(named) > 20
    assert_none({path for _, path in named} - paths)
    assert_none({method + path for method, path in named if method} - endpoints)


def test_the_glossary_is_found_from_the_first_pages() -> None:
    first = ("README.md", "CONTRIBUTING.md", "docs/architecture.md")

    assert_none(page for page in first if "glossary.md)" not in source_of(ROOT / page))
