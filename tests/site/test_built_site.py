"""The built site: no dead link, nothing from elsewhere, and the Markdown of each page."""

import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from tests.site.tools import ROOT, Html

#: A link in Markdown, or one of llms.txt.
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)\)")

#: Blocks of code, and code in a line, hold no links.
CODE = re.compile(r"(?ms)^ *(`{3,}).*?^ *\1$|(`+)[^`\n]+\2")

SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//")

#: A style sheet's own loading.
CSS_URL = re.compile(r"url\(([^)]+)\)|@import\s+\"([^\"]+)\"")


@cache
def page_of(path: Path) -> Html:
    return Html.read(path)


def pages_of(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 150
    return found


def dead(page: Path, links: list[str]) -> list[str]:
    """Links of a page to files and anchors that there are not."""
    found = []
    for link in links:
        if SCHEME.match(link):
            continue
        name, _, anchor = unquote(link).partition("#")
        path = Path(os.path.normpath(page.parent / name)) if name else page
        is_missing = bool(anchor) and path.suffix == ".html" and anchor not in page_of(path).ids
        if not path.is_file() or is_missing:
            found.append(link)
    return found


def test_no_link_is_dead(site: Path) -> None:
    # The page for addresses that are not there doesn't know how deep the address is.
    pages = [page for page in pages_of(site) if page.name != "404.html"]
    links = {
        str(page.relative_to(site)): dead(page, [*page_of(page).links, *page_of(page).loaded])
        for page in pages
    }

    assert {page: found for page, found in links.items() if found} == {}


def test_a_dead_link_or_picture_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        '<a href="a.html#x"></a><a href="#y"></a><a href="b.html"></a><p id="x"><img src="c.png">'
    )

    assert dead(page, Html.read(page).links) == ["#y", "b.html"]
    assert dead(page, Html.read(page).loaded) == ["c.png"]


def test_what_the_readme_links_to_is_on_the_site(site: Path) -> None:
    links = MARKDOWN_LINK.findall(CODE.sub("", (ROOT / "README.md").read_text("utf-8")))
    places = {link.partition("#")[0] for link in links if link.startswith("docs/")}
    pages = {place.removeprefix("docs/") for place in places if place.endswith(".md")}

    assert len(pages) > 20
    assert {page for page in pages if not (site / page).with_suffix(".html").exists()} == set()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {link for page in pages_of(site) for link in page_of(page).loaded}
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    from_styles = {one or other for style in styles for one, other in CSS_URL.findall(style)}

    assert len(loaded) > 5
    assert styles
    assert [link for link in loaded if SCHEME.match(link) and not link.startswith("data:")] == []
    assert [link for link in from_styles if re.match("[\"']?(https?:|//)", link)] == []


def test_each_page_is_there_as_markdown_with_links_that_lead_somewhere(site: Path) -> None:
    pages = [page for page in pages_of(site) if page.name != "404.html"]
    twins = [page.with_suffix(".md") for page in pages]
    links = {
        str(twin.relative_to(site)): dead(
            twin, MARKDOWN_LINK.findall(CODE.sub("", twin.read_text("utf-8")))
        )
        for twin in twins
    }

    assert {page: found for page, found in links.items() if found} == {}


def test_each_page_names_its_markdown(site: Path) -> None:
    pages = [page for page in pages_of(site) if page.name != "404.html"]

    def named(page: Path) -> set[str]:
        return {link.removeprefix("./") for link in page_of(page).links}

    assert [page for page in pages if page.with_suffix(".md").name not in named(page)] == []


def test_llms_txt_names_each_page_once(site: Path) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    named = MARKDOWN_LINK.findall(text)
    pages = [page for page in pages_of(site) if page.name != "404.html"]
    there = {str(page.relative_to(site).with_suffix(".md")) for page in pages}

    assert text.startswith("# msgsvc\n\n> ")
    assert sorted(named) == sorted(there)


def test_each_page_is_in_the_navigation(site: Path) -> None:
    """A page that nothing leads to isn't read; here each is reached from the first."""
    reached, waiting = set(), [site / "index.html"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            for link in page_of(page).links:
                path = Path(os.path.normpath(page.parent / unquote(link).partition("#")[0]))
                if not SCHEME.match(link) and path.suffix == ".html":
                    waiting.append(path)

    assert set(pages_of(site)) - reached == {site / "404.html", site / "ru" / "404.html"}
