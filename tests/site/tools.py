"""What builds the site, as `make site` installs it, and what a page of HTML holds."""

import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from msgsvc_devkit import machine

ROOT = Path(__file__).parents[2]

#: Attributes by which a page loads something by itself. Links are for people to follow.
_LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
}
_LOADING_RELATIONS = {
    "stylesheet",
    "icon",
    "preload",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
}


def site_python() -> Path:
    """The Python that has Zensical; the test is skipped, or fails if required, where it is missing."""
    python = ROOT / ".venv" / "docs-site" / "bin" / "python"
    if not (python.parent / "zensical").exists():
        reason = "Zensical is missing: docs/site/install.sh"
        machine.missing("docs-site", reason)
    return python


@contextmanager
def first_of_all(factory: pytest.TempPathFactory, name: str) -> Iterator[Path | None]:
    """A folder to fill for the first of the processes that run the tests; `None`, once it is filled, for the
    others."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = shared / f"{name}.built"
        if built.exists():
            yield None
            return
        folder = shared / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        built.touch()


class Quiet(SimpleHTTPRequestHandler):
    """A web server that only serves files, as any would that an installation's copy is put on."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        """Says nothing: the tests do."""

    @classmethod
    @contextmanager
    def serving(cls, folder: Path) -> Iterator[str]:
        """Its address."""
        handler = partial(cls, directory=str(folder))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


@dataclass
class Html(HTMLParser):
    """What a page links to and loads, the ids in it, and its languages of code."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def read(cls, path: Path) -> "Html":
        page = cls()
        page.feed(path.read_text("utf-8"))
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        for name, value in found.items():
            if (tag, name) in _LOADING:
                self.loaded.append(value)
        if tag == "link" and _LOADING_RELATIONS & set(found.get("rel", "").split()):
            self.loaded.append(found["href"])
        elif tag == "link":
            self.links.append(found["href"])
