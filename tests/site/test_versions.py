"""The versions of the docs site, and the choice between them."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from docs.site.versions import LATEST, NEXT, Release, newest_of_each, put_together, releases
from msgsvc_devkit.deadlines import patient
from tests.e2e.windows import NewWindow, faults, windows
from tests.site.tools import ROOT, Quiet, first_of_all, site_python

#: Seconds for the builds of three versions; they take half a minute on two cores that nobody else uses.
BUILD_TIMEOUT_S = patient(800)

pytestmark = pytest.mark.timeout(BUILD_TIMEOUT_S + 100)


def test_each_minor_version_is_there_as_its_newest_patch() -> None:
    tags = ["v0.1.0", "v0.10.0", "v0.2.1", "v0.2.10", "v0.2.9", "v1.0.0-rc1", "nightly", "0.3.0"]

    found = [(one.name, one.tag, one.version) for one in newest_of_each(tags)]

    assert found == [
        ("0.10", "v0.10.0", "0.10.0"),
        ("0.2", "v0.2.10", "0.2.10"),
        ("0.1", "v0.1.0", "0.1.0"),
    ]


def test_a_folder_outside_of_a_repository_has_no_releases(tmp_path: Path) -> None:
    assert releases(tmp_path) == []


def listed(site: Path) -> dict[str, object]:
    found = re.fullmatch(r"window\.msgsvcVersions=(.+)\n", (site / "versions.js").read_text())
    assert found
    known: dict[str, object] = json.loads(found[1])
    return known


def pages(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def test_before_the_first_release_the_site_leads_to_the_checkouts_pages(tmp_path: Path) -> None:
    site = tmp_path / "site"

    put_together(site, pages(tmp_path / "a", "index.html", "404.html"), [])

    assert (site / NEXT / "index.html").read_text() == "index.html"
    assert "url=next/index.html" in (site / "index.html").read_text()
    assert listed(site) == {
        "preferred": NEXT,
        "versions": [{"name": NEXT, "title": NEXT, "isOutdated": False, "pages": ["index.html"]}],
    }


def test_the_newest_release_is_latest_and_the_others_are_outdated(tmp_path: Path) -> None:
    site = tmp_path / "site"
    new = (Release("0.2", "v0.2.1"), pages(tmp_path / "b", "index.html", "new.html"))
    old = (Release("0.1", "v0.1.0"), pages(tmp_path / "c", "index.html"))

    put_together(site, pages(tmp_path / "a", "index.html"), [new, old])
    put_together(site, pages(tmp_path / "a", "index.html"), [new, old])

    assert "url=latest/index.html" in (site / "index.html").read_text()
    assert (site / LATEST / "new.html").exists()
    assert listed(site) == {
        "preferred": LATEST,
        "versions": [
            {"name": NEXT, "title": NEXT, "isOutdated": False, "pages": ["index.html"]},
            {
                "name": LATEST,
                "title": "0.2.1 (latest)",
                "isOutdated": False,
                "pages": ["index.html", "new.html"],
            },
            {
                "name": "0.2",
                "title": "0.2.1",
                "isOutdated": False,
                "pages": ["index.html", "new.html"],
            },
            {"name": "0.1", "title": "0.1.0", "isOutdated": True, "pages": ["index.html"]},
        ],
    }
    assert (site / "llms.txt").read_text().count("/llms.txt)") == 4


@pytest.fixture(scope="session")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a repository with two releases, of which the older has a page that is gone since."""
    python, git = site_python(), shutil.which("git")
    if git is None:
        pytest.skip("git is missing")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with first_of_all(tmp_path_factory, "versioned") as root:
        if root:
            release_twice(root, git)
            done = subprocess.run(
                [python, "-m", "docs.site.build"],
                cwd=root,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return shared / "versioned" / "build" / "site"


def release_twice(root: Path, git: str) -> None:
    """A repository of the checkout's files, with a page that only the first of two tags has."""
    found = subprocess.run(
        [git, "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, found.stdout.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)

    def commit(tag: str) -> None:
        author = ["-c", "user.name=docs", "-c", "user.email=docs@msgsvc.example"]
        subprocess.run([git, "add", "-A"], cwd=root, check=True)
        subprocess.run([git, *author, "commit", "-qm", tag], cwd=root, check=True)
        subprocess.run([git, "tag", tag], cwd=root, check=True)

    subprocess.run([git, "init", "-q"], cwd=root, check=True)
    gone = root / "docs" / "guides" / "gone.md"
    gone.write_text("# A page of the first release\n\nIt is gone since.\n")
    commit("v0.1.0")
    gone.unlink()
    commit("v0.2.0")


@pytest.fixture(scope="module")
def address(versioned: Path) -> Iterator[str]:
    with Quiet.serving(versioned) as url:
        yield url


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


@pytest.mark.browser
async def test_readers_choose_a_version_and_stay_on_their_page(
    address: str, versioned: Path, new_window: NewWindow
) -> None:
    window = await new_window()
    for start in (address, versioned.as_uri()):
        await window.goto(f"{start}/index.html")
        await window.wait_for_url(f"{start}/latest/index.html")
        await window.goto(f"{start}/latest/guides/messages.html")
        menu = window.locator(".site-versions")

        # By keyboard alone.
        await menu.locator("summary").focus()
        await window.keyboard.press("Enter")
        assert await faults(window) == []
        await menu.get_by_role("link", name="0.1.0").focus()
        await window.keyboard.press("Enter")
        await window.wait_for_url(f"{start}/0.1/guides/messages.html")

        banner = window.locator(".site-outdated")
        await expect(banner).to_contain_text("an older version")
        assert await faults(window) == []
        await banner.get_by_role("link").click()
        await window.wait_for_url(f"{start}/latest/guides/messages.html")


@pytest.mark.browser
async def test_a_page_that_a_version_lacks_leads_to_its_first_page(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(f"{address}/0.1/guides/gone.html")
    await window.locator(".site-versions summary").click()
    await window.locator(".site-versions").get_by_role("link", name="next").click()

    await window.wait_for_url(f"{address}/next/index.html")


@pytest.mark.browser
async def test_a_russian_page_keeps_its_language_in_another_version(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(f"{address}/0.1/ru/tutorial.html")
    await expect(window.locator(".site-outdated")).to_contain_text("более старой версии")
    await window.locator(".site-versions summary").click()
    await window.locator(".site-versions").get_by_role("link", name="0.2.0 (latest)").click()

    await window.wait_for_url(f"{address}/latest/ru/tutorial.html")
    await expect(window.locator(".site-outdated")).to_have_count(0)


def test_each_version_has_its_markdown_and_its_list_of_pages(versioned: Path) -> None:
    has_page = {
        name: "guides/gone.md" in (versioned / name / "llms.txt").read_text()
        for name in (NEXT, LATEST, "0.2", "0.1")
    }

    assert has_page == {NEXT: False, LATEST: False, "0.2": False, "0.1": True}
    assert (
        (versioned / "0.1" / "guides" / "gone.md").read_text().startswith("# A page of the first")
    )
    assert (versioned / LATEST / "guides" / "messages.md").exists()
