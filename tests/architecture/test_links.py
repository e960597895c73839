"""Links between the pages of the repository lead somewhere, and the glossary names what there is."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "plugins", "contrib", "examples")
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(p for f in FOLDERS for p in (ROOT / f).rglob("*.md"))]
    if "node_modules" not in path.parts
)

LINK = re.compile(r"\]\(([^)\s]+)\)")
SCHEME = re.compile(r"[a-z]+:")
CODE = re.compile(r"(?ms)^```.*?^```$")

#: `POST /v1/send`, or `/v1/members` for all methods of a resource.
ENDPOINT = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) )?(/(?:v1|login)/[^`]+)`")


@cache
def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them, and those it names itself."""
    text = CODE.sub("", page.read_text("utf-8"))
    titles = (re.sub(r"[`*]", "", title) for title in re.findall(r"(?m)^#+ (.+)$", text))
    made = {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def broken_links(page: Path) -> list[str]:
    broken = []
    for target in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if SCHEME.match(target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (
            anchor and path.suffix == ".md" and anchor not in anchors_of(path)
        ):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[here](#a-title) [gone](other.md) [no heading](#none)", "utf-8")

    assert broken_links(page) == ["other.md", "#none"]


def test_the_glossary_names_endpoints_that_there_are() -> None:
    reference = (ROOT / "docs/reference/endpoints.md").read_text("utf-8")
    # Endpoints are headings, pages lines of a list, with all their methods.
    declared = re.findall(r"(?m)^(?:### |- )`([A-Z, ]+) (/\S+)`", reference)
    endpoints = {f"{method} {path}" for methods, path in declared for method in methods.split(", ")}
    paths = {path for _, path in declared}
    named = ENDPOINT.findall((ROOT / "docs/glossary.md").read_text("utf-8"))

    assert len(named) > 20
    assert {path for _, path in named} - paths == set()
    assert {method + path for method, path in named if method} - endpoints == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_glossary_is_found_from_the_first_pages(page: str) -> None:
    assert "glossary.md)" in (ROOT / page).read_text("utf-8")
