"""Pictures of every page of the dashboard, wide and narrow, light and dark: `python -m tests.e2e.shots`.

They are left in build/shots, for people to look at. Names begin with what to picture: `--only helpdesk`.
"""

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import get_args

from playwright.async_api import Browser, Page

from msgsvc_devkit.browsers import browsing
from tests.e2e.furnished import Furnished, furnished
from tests.e2e.windows import ROOT, Scheme

SHOTS = ROOT / "build" / "shots"
WIDTHS = {"wide": 1280, "narrow": 360}


async def main(only: str, langs: list[str]) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with furnished(Path(folder)) as place, browsing() as browser:
            for lang in langs:
                for scheme in get_args(Scheme):
                    for size, width in WIDTHS.items():
                        await _shoot_all(browser, place, only, lang, scheme, size, width)


async def _shoot_all(
    browser: Browser, place: Furnished, only: str, lang: str, scheme: Scheme, size: str, width: int
) -> None:
    for who in (place.owner, place.operator):
        context = await browser.new_context(
            viewport={"width": width, "height": 800}, locale=lang, color_scheme=scheme
        )
        await place.enter(context, who)
        page = await context.new_page()
        for walk in place.walks:
            if place.who(walk) is who and walk.page.name.startswith(only):
                name = f"{_name(walk.page.name)}-{lang}-{scheme}-{size}.png"
                await _shoot(page, place.url + walk.url, SHOTS / name)
        await context.close()


async def _shoot(page: Page, url: str, file: Path) -> None:
    # Fragments and downloads have no look of their own.
    if '<main id="main"' not in await (await page.request.get(url)).text():
        return
    await page.goto(url)
    await page.screenshot(path=file, full_page=True)
    sys.stdout.write(f"{file}\n")


def _name(name: str) -> str:
    return re.sub(r"\W+", "-", name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="beginning of <area>.<page>")
    parser.add_argument("--langs", nargs="+", default=["en", "ru"])
    asked = parser.parse_args()
    asyncio.run(main(asked.only, asked.langs))
