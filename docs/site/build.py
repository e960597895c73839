"""Builds the docs site into build/site: `make site`, or with docs/site/requirements.txt installed

    python -m docs.site.build

The pages are written to build/site-pages, where Zensical takes them from. Beside each page stands its
Markdown, and `llms.txt` lists them.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.site.api_pages import ApiPages
from docs.site.pages import BrokenLinkError, Page, Repository

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
CONFIG = ROOT / "docs" / "mkdocs.yml"
HERE = Path(__file__).parent

#: An entry of `nav` that is a folder.
_FOLDER = re.compile(r"(?m)^(?P<indent> +)- (?P<folder>[\w./-]+/)\n")

#: A page that `nav` names.
_NAMED = re.compile(r"(?m)^ +- (?:[^:\n]+: )?(?P<place>[\w./-]+\.md)$")

_SECTION = re.compile(r"^ {2}- (?P<title>[^:]+):$")


def collected(root: Path) -> Repository:
    """All pages of the site. Raises `BrokenLinkError`."""
    repository = Repository(root)
    repository.collect()
    for page in ApiPages(json.loads((root / "contrib" / "openapi.json").read_text("utf-8"))):
        repository.add(page)
    repository.add(_decisions(repository.pages))
    repository.add(_reference(repository.pages))
    return repository


def with_folders(config: str, pages: Mapping[str, Page]) -> str:
    """The configuration with pages in place of folders. Raises `ValueError` if a page is missing in `nav`."""
    named = set(_NAMED.findall(config))

    def expanded(entry: re.Match[str]) -> str:
        folder = entry["folder"].removeprefix("./")
        places = sorted(
            place
            for place in set(pages) - named
            if (place.startswith(folder) if folder else "/" not in place)
        )
        named.update(places)
        return "".join(f"{entry['indent']}- {place}\n" for place in places)

    whole = _FOLDER.sub(expanded, config)
    if named != set(pages):
        raise ValueError(f"nav of {CONFIG.name} and pages differ: {sorted(named ^ set(pages))}")
    return whole


def llms_txt(config: str, pages: Mapping[str, Page]) -> Iterator[str]:
    """The list of all pages for language models (llmstxt.org), by section. `config` has no folders."""
    yield "# msgsvc\n\n> Notifications and sign-in through messengers, self-hosted: an HTTP API, Telegram, "
    yield "MAX and other messengers as plugins, SQLite or PostgreSQL.\n\n"
    yield "Each page of this site is also there as Markdown: `.md` in place of `.html`.\n"
    for line in config[config.index("\nnav:\n") :].splitlines():
        if section := _SECTION.match(line):
            yield f"\n## {section['title']}\n\n"
        elif found := _NAMED.match(line):
            page = pages[found["place"]]
            yield f"- [{page.title}]({page.place})" + (f": {page.summary}" if page.summary else "")
            yield "\n"


def build() -> None:
    started = time.monotonic()
    _say(1, "collecting pages")
    repository = collected(ROOT)
    config = with_folders(CONFIG.read_text("utf-8"), repository.pages)
    _say(2, f"writing {len(repository.pages)} pages and {len(repository.files)} files for Zensical")
    source, site = BUILD / "site-pages", BUILD / "site"
    for folder in (source, site, BUILD / "overrides"):
        shutil.rmtree(folder, ignore_errors=True)
    for page in repository.pages.values():
        _write(source / page.place, page.rendered())
    for place, path in repository.files.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, source / place)
    shutil.copytree(HERE / "assets", source / "assets")
    shutil.copytree(HERE / "overrides", BUILD / "overrides")
    _write(BUILD / "mkdocs.yml", config)
    _say(3, "running Zensical")
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--clean",
        "-f",
        str(BUILD / "mkdocs.yml"),
    ]
    subprocess.run(command, check=True)
    _say(4, "writing the Markdown of each page, and llms.txt")
    for page in repository.pages.values():
        _write(site / page.place, page.text)
    _write(site / "llms.txt", "".join(llms_txt(config, repository.pages)))
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
    try:
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
