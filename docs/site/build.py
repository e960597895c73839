"""Builds the docs site into build/site: `make site`, or with docs/site/requirements.txt installed

    python -m docs.site.build                 # all versions, see versions.py
    python -m docs.site.build --one FOLDER    # the pages of this checkout alone

The pages are written to build/site-work, where Zensical takes them from. Beside each page stands its
Markdown, and `llms.txt` lists them.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.site.api_pages import api_pages
from docs.site.pages import BrokenLinkError, Page, Repository, with_links
from docs.site.russian import russian, with_russian_search
from docs.site.versions import build_release, put_together, releases

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
CONFIG = ROOT / "docs" / "mkdocs.yml"
HERE = Path(__file__).parent
#: The values that the dashboard and the hosted pages have, too.
TOKENS = ROOT / "msgsvc_core" / "pages" / "static" / "tokens.css"

#: An entry of `nav` that is a folder.
_FOLDER = re.compile(r"(?m)^(?P<indent> +)- (?P<folder>[\w./-]+/)\n")

#: A page that `nav` names.
_NAMED = re.compile(r"(?m)^ +- (?:[^:\n]+: )?(?P<place>[\w./-]+\.md)$")

#: Pages in Russian; the page of the same name above is the same in English.
RUSSIAN = "ru/"

#: Front pages: they lead to the sections by themselves.
_FRONT = ("index.md", f"{RUSSIAN}index.md")

_SECTION = re.compile(r"^ {2}- (?P<title>[^:]+):$")


def collected(root: Path) -> Repository:
    """All pages of the site. Raises `BrokenLinkError`."""
    repository = Repository(root)
    repository.collect()
    for page in api_pages(json.loads((root / "contrib" / "openapi.json").read_text("utf-8"))):
        repository.add(page)
    repository.add(_decisions(repository.pages))
    repository.add(_reference(repository.pages))
    return repository


def with_folders(config: str, pages: Mapping[str, Page]) -> str:
    """The configuration with pages in place of folders. Raises `ValueError` if a page is missing in `nav`."""
    wanted = {place for place in pages if not place.startswith(RUSSIAN)}
    named = set(_NAMED.findall(config))

    def expanded(entry: re.Match[str]) -> str:
        folder = entry["folder"].removeprefix("./")
        places = sorted(
            place
            for place in wanted - named
            if (place.startswith(folder) if folder else "/" not in place)
        )
        named.update(places)
        return "".join(f"{entry['indent']}- {place}\n" for place in places)

    whole = _FOLDER.sub(expanded, config)
    if named != wanted:
        raise ValueError(f"nav of {CONFIG.name} and pages differ: {sorted(named ^ wanted)}")
    return whole


def llms_txt(config: str, pages: Mapping[str, Page]) -> Iterator[str]:
    """The list of all pages for language models (llmstxt.org), by section. `config` has no folders."""
    yield "# msgsvc\n\n> Notifications and sign-in through messengers, self-hosted: an HTTP API, Telegram, "
    yield "MAX, Matrix and other messengers as plugins, SQLite or PostgreSQL.\n\n"
    yield "Each page of this site is also there as Markdown: `.md` in place of `.html`.\n\n"
    for line in config[config.index("\nnav:\n") :].splitlines():
        if section := _SECTION.match(line):
            yield f"\n## {section['title']}\n\n"
        elif found := _NAMED.match(line):
            yield _listed(pages[found["place"]])
    yield "\n## In Russian\n\n"
    for place, page in sorted(pages.items()):
        if place.startswith(RUSSIAN):
            yield _listed(page)


def _listed(page: Page) -> str:
    return f"- [{page.title}]({page.place})" + (f": {page.summary}" if page.summary else "") + "\n"


def build_one(target: Path) -> None:
    """The pages of this checkout, into the folder. Raises `BrokenLinkError`, and `ValueError` for `nav`."""
    _say(1, "collecting pages")
    repository = collected(ROOT)
    pages = repository.pages
    config = with_folders(CONFIG.read_text("utf-8"), pages)
    _say(2, f"writing {len(pages)} pages and {len(repository.files)} files for Zensical")
    work = BUILD / "site-work"
    shutil.rmtree(work, ignore_errors=True)
    for page in pages.values():
        name = page.place.removeprefix(RUSSIAN)
        _write(work / _language(page) / "pages" / name, rendered(page, pages))
    for place, path in repository.files.items():
        (work / "en" / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, work / "en" / "pages" / place)
    _say(3, "running Zensical, for English and for Russian pages")
    for language, text in (("en", config), ("ru", russian(config))):
        folder = work / language
        shutil.copytree(HERE / "assets", folder / "pages" / "assets")
        shutil.copy(TOKENS, folder / "pages" / "assets")
        shutil.copytree(HERE / "overrides", folder / "overrides")
        _write(folder / "mkdocs.yml", text)
        command = [sys.executable, "-m", "zensical", "build", "-f", str(folder / "mkdocs.yml")]
        subprocess.run(command, check=True)
    site = work / "en" / "site"
    (work / "ru" / "site").rename(site / "ru")
    (script,) = (site / "ru" / "assets" / "javascripts").glob("bundle.*.js")
    _write(script, with_russian_search(script.read_text("utf-8")))
    _say(4, "writing the Markdown of each page, and llms.txt")
    for page in pages.values():
        _write(site / page.place, page.text)
    _write(site / "llms.txt", "".join(llms_txt(config, pages)))
    search_all_from_russian(site)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    site.rename(target)


def _language(page: Page) -> str:
    return "ru" if page.place.startswith(RUSSIAN) else "en"


def rendered(page: Page, pages: Mapping[str, Page]) -> str:
    """The page for Zensical, with what the theme has to know of it."""

    def change(target: str) -> str:
        name, hash_sign, anchor = target.partition("#")
        there = os.path.normpath(Path(page.place).parent / name)
        if there in pages and there.startswith(RUSSIAN) != is_russian:
            # Another build's page, which this build can't look up.
            return f"{name.removesuffix('.md')}.html{hash_sign}{anchor}"
        return target

    is_russian = _language(page) == "ru"
    text = Page(page.place, "".join(with_links(page.text, change))).rendered()
    meta = {"title": page.short} if page.short else {}
    address = Path(page.place.removeprefix(RUSSIAN)).with_suffix(".html").as_posix()
    if is_russian:
        meta["other"] = f"../{address}"
    elif RUSSIAN + page.place in pages:
        meta["other"] = f"{RUSSIAN}{address}"
    if page.place in _FRONT:
        meta["hide"] = "[navigation, toc]"
    front = "".join(f"{name}: {value}\n" for name, value in meta.items())
    return f"---\n{front}---\n{text}" if front else text


def search_all_from_russian(site: Path) -> None:
    """Adds the English pages to what the search of the Russian ones finds."""
    english = json.loads((site / "search.json").read_text("utf-8"))
    path = site / "ru" / "search.json"
    index = json.loads(path.read_text("utf-8"))
    index["items"] += [{**item, "location": f"../{item['location']}"} for item in english["items"]]
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    script = path.with_suffix(".js")
    start = script.read_text("utf-8").partition("{")[0]
    path.write_text(text, encoding="utf-8")
    script.write_text(f"{start}{text}", encoding="utf-8")


def build() -> None:
    """All versions, into build/site."""
    started = time.monotonic()
    kept = BUILD / "site-versions"
    found = [(one, build_release(ROOT, one, kept)) for one in releases(ROOT)]
    build_one(kept / "next")
    site = BUILD / "site"
    put_together(site, kept / "next", found)
    print(f"built {site.relative_to(ROOT)}/index.html in {time.monotonic() - started:.1f} s")


def _say(step: int, what: str) -> None:
    print(f"[{step}/4] {what}", flush=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _decisions(pages: Mapping[str, Page]) -> Page:
    rows = [
        f"| [{page.title}]({Path(place).name}) | {found[1] if found else ''} |\n"
        for place, page in sorted(pages.items(), reverse=True)
        if place.startswith("decisions/")
        for found in [re.search(r"Date: ([\d-]+)", page.text)]
    ]
    return Page(
        "decisions/index.md",
        "# Decisions\n\nWhy things are as they are: question, options, choice and consequences, "
        "newest first.\n\n"
        "| decision | date |\n| --- | --- |\n" + "".join(rows),
    )


def _reference(pages: Mapping[str, Page]) -> Page:
    rows = [
        f"- [{page.title}]({Path(place).name})\n"
        for place, page in sorted(pages.items())
        if place.startswith("reference/")
    ]
    return Page(
        "reference/index.md",
        "# Reference\n\nGenerated from the code. The [HTTP API](../api/index.md) has pages of its own.\n\n"
        + "".join(rows),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="docs.site.build")
    parser.add_argument("--one", metavar="FOLDER", type=Path, help="this checkout's pages alone")
    one = parser.parse_args().one
    try:
        if one:
            build_one(one.resolve())
        else:
            build()
    except (BrokenLinkError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        return error.returncode
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
