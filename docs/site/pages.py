"""The pages of the site: those of docs/, and what they link to elsewhere in the repository.

A page keeps its text. Links lead to where their targets are on the site, and code blocks say their file's
name in the way that Zensical reads.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

#: A fence of a code block; after the language is what tests run it by, or `tab=NAME` where the
#: site shows one of several languages at a time.
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)?(?: (?P<what>[^\n`]+))?$")

#: A link or a picture: its text, and where it leads.
_LINK = re.compile(r"(?P<bang>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")

#: What code in a line looks like: no link is read in it.
_CODE = re.compile(r"(`+)(?:(?!\1)[^\n]|\n(?!\n))+\1")

#: A heading of the API's pages.
_OPERATION = re.compile(r"^## `(?P<method>[A-Z]+) (?P<path>/[^`]*)`(?P<rest>.*)$")

_ITEM = re.compile(r"^(?P<indent> *)(?:[-*+]|\d+\.) ")

#: Files that are copied as they are; any other file that is linked becomes a page with its text.
_COPIED = {".png", ".svg", ".json", ".csv"}

_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".js": "js",
    ".mjs": "js",
    ".ts": "ts",
    ".tsx": "tsx",
    ".php": "php",
    ".go": "go",
    ".yml": "yaml",
    ".conf": "nginx",
    ".service": "ini",
    ".sh": "sh",
}


class BrokenLinkError(Exception):
    """A page links to what is not in the repository."""


@dataclass(frozen=True)
class Page:
    """A page of the site. `place` is its path there, `text` its Markdown, with the site's links."""

    place: str
    text: str
    #: What the navigation calls it; empty for its title.
    short: str = ""

    @property
    def title(self) -> str:
        return title_of(self.text, default=self.place)

    @property
    def summary(self) -> str:
        """The first sentence below the title, without markup; empty if a list or a table comes first."""
        below = re.sub(r"(?s)^.*?^# [^\n]*\n", "", self.text, count=1, flags=re.MULTILINE)
        paragraph = " ".join(below.strip().partition("\n\n")[0].split())
        if not paragraph or paragraph[0] in "#|-`<!" or paragraph.startswith("Date:"):
            return ""
        plain = _LINK.sub(lambda link: link["text"], paragraph)
        return re.split(r"(?<=\.) ", plain)[0].rstrip(":")

    def rendered(self) -> str:
        """The text as Zensical's Markdown wants it."""
        return "".join(_for_zensical(self.text))


def title_of(text: str, default: str = "") -> str:
    """The first heading, without markup."""
    found = re.search(r"(?m)^# (.+)$", text)
    return re.sub(r"[`*]", "", found[1]) if found else default


class Repository:
    """Collects pages: each of docs/, and from there whatever is linked."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.pages: dict[str, Page] = {}
        #: Files that are copied, by their places.
        self.files: dict[str, Path] = {}
        self._waiting: list[Path] = []

    def collect(self) -> None:
        """Raises `BrokenLinkError`."""
        self._waiting = sorted((self._root / "docs").rglob("*.md"))
        self._waiting += [self._root / name for name in ("CHANGELOG.md", "SECURITY.md")]
        while self._waiting:
            path = self._waiting.pop()
            place = self._place(path)
            if place not in self.pages:
                self.pages[place] = self._page(path, place)

    def add(self, page: Page) -> None:
        """A page that is written while the site is built."""
        assert page.place not in self.pages, page.place
        self.pages[page.place] = page

    def _page(self, path: Path, place: str) -> Page:
        text = path.read_text("utf-8")
        if path.suffix != ".md":
            name = path.relative_to(self._root)
            language = _LANGUAGES.get(path.suffix, "text")
            return Page(place, f"# `{name}`\n\n````{language}\n{text.rstrip()}\n````\n")

        def change(target: str) -> str | None:
            return self._target(target, path, place)

        return Page(place, "".join(with_links(text, change)))

    def _target(self, target: str, path: Path, place: str) -> str | None:
        """Where a link of the page leads on the site; `None` if the site doesn't have it."""
        name, hash_sign, anchor = target.partition("#")
        if _SCHEME.match(target) or not name:
            return target
        linked = (path.parent / name).resolve()
        if not linked.is_relative_to(self._root) or not linked.exists():
            raise BrokenLinkError(f"{path.relative_to(self._root)}: {target}")
        if linked == self._root / "README.md":
            # The site has a first page of its own.
            return _relative("index.md", place)
        if linked.is_dir():
            if linked.parent == self._root / "docs" and linked.name in ("decisions", "reference"):
                return _relative(f"{linked.name}/index.md", place)
            linked /= "README.md"
            if not linked.exists():
                return None
        there = self._place(linked)
        if there == "reference/endpoints.md" and not anchor and not place.startswith("reference/"):
            # The site has pages of the API that say more.
            return _relative("api/index.md", place)
        if linked.suffix in _COPIED:
            self.files[there] = linked
        else:
            self._waiting.append(linked)
        return _relative(there, place) + hash_sign + anchor

    def _place(self, path: Path) -> str:
        name = PurePosixPath(path.relative_to(self._root))
        if name.parts[0] == "docs":
            return str(PurePosixPath(*name.parts[1:]))
        if name.name == "README.md":
            return f"{name.parent}.md"
        if name.suffix == ".md" or name.suffix in _COPIED:
            return str(name)
        return f"source/{name}.md"


def with_links(text: str, change: Callable[[str], str | None]) -> Iterator[str]:
    """The parts of a page, with each link outside of code changed; where there is none, its text stays."""

    def changed(link: re.Match[str]) -> str:
        target = change(link["target"])
        if target is None:
            return link["text"]
        # A picture may be the text of a link.
        inner = _LINK.sub(changed, link["text"])
        return f"{link['bang']}[{inner}]({target})"

    def hide(code: re.Match[str]) -> str:
        hidden.append(code[0])
        return f"\0{len(hidden) - 1}\0"

    for is_code, lines in groupby(_lines(text), key=lambda line: line[1]):
        part = "".join(line for line, _ in lines)
        if is_code:
            yield part
            continue
        # Code keeps its brackets; a link whose text is code is found around it.
        hidden: list[str] = []
        part = _LINK.sub(changed, _CODE.sub(hide, part))
        yield "".join(
            hidden[int(piece)] if place % 2 else piece
            for place, piece in enumerate(part.split("\0"))
        )


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a code block."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = re.match(r" *(`{3,})", line)
        if found and (not fence or (found[1] == fence and line.strip() == fence)):
            fence = "" if fence else found[1]
            yield line, True
        else:
            yield line, bool(fence)


def _for_zensical(text: str) -> Iterator[str]:
    """Lists indented by fours, as Python's Markdown reads them, and what the site shows in its own way."""
    levels: list[int] = []
    for is_code, lines in groupby(_lines(text), key=lambda line: line[1]):
        part = [line for line, _ in lines]
        if is_code:
            yield from _code(part)
            continue
        for line in part:
            if heading := _OPERATION.match(line):
                yield _operation(heading)
            else:
                yield _indented(line, levels)


def _code(lines: Sequence[str]) -> Iterator[str]:
    """Blocks of code: their fences without what is for tests; tabs if there is one for each language."""
    is_tab = False
    for line in lines:
        found = _FENCE.match(line.rstrip("\n"))
        what = found["what"] if found else None
        if found and what and what.startswith("tab="):
            is_tab = True
            yield f'=== "{what.removeprefix("tab=")}"\n\n    ```{found["language"]}\n'
        elif is_tab:
            is_tab = not found
            yield f"    {line}" if line.strip() else line
        elif found and what:
            named = f' title="{what}"' if "." in what else ""
            yield f"{found['indent']}```{found['language']}{named}\n"
        else:
            yield line


def _operation(heading: re.Match[str]) -> str:
    method = heading["method"]
    mark = f'<span class="method {method.lower()}">{method}</span>'
    return f"## {mark} `{heading['path']}`{heading['rest']}\n"


def _indented(line: str, levels: list[int]) -> str:
    """`levels` are the indentations of the lists that the line is in."""
    item = _ITEM.match(line)
    indent = len(line) - len(line.lstrip(" "))
    if item:
        while levels and indent < levels[-1]:
            levels.pop()
        if not levels or indent > levels[-1]:
            levels.append(indent)
        return "    " * (len(levels) - 1) + line.lstrip(" ")
    if levels and line.strip() and indent > levels[0]:
        depth = sum(1 for level in levels if level < indent)
        return "    " * depth + line.lstrip(" ")
    if line.strip():
        levels.clear()
    return line


def _relative(there: str, place: str) -> str:
    return os.path.relpath(there, os.path.dirname(place) or ".")
