"""Pictures of the pages that everybody sees: `python -m tests.e2e.public_shots --only login`.

They are left in build/shots. The project has a logo and an accent colour; `--plain` leaves them out.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

from playwright.async_api import Browser, Page

from msgsvc_devkit.browsers import browsing
from tests.e2e.furnished import Furnished, furnished
from tests.e2e.shots import SHOTS
from tests.e2e.windows import Scheme

WIDTHS = {"wide": 1440, "narrow": 390}

LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><circle cx="20" cy="20" r="19"'
    ' fill="#7b2fbe"/><path d="M20 8l10 20H10z" fill="#fff"/></svg>'
)

FIELDS = [
    {"key": "name", "type": "text", "label": "Your name", "required": True},
    {"key": "mail", "type": "email", "label": "Email", "required": True},
    {"key": "size", "type": "choice", "label": "Size", "options": ["Small", "Medium", "Large"]},
    {"key": "mark", "type": "rating", "label": "How did we do?"},
    {"key": "about", "type": "text", "label": "Anything else?", "multiline": True},
    {"key": "photo", "type": "file", "label": "A picture"},
    {"key": "terms", "type": "consent", "label": "You may write to me", "required": True},
]

Prepare = Callable[[Page], Awaitable[object]]


async def _nothing(page: Page) -> None:
    """The page as it opens."""


async def _send_empty(page: Page) -> None:
    """A refused form."""
    await page.eval_on_selector("form", "form => { form.noValidate = true; }")
    await page.fill("[name=mail]", "ann@")
    await page.click("button.main")
    await page.wait_for_load_state()


async def furnish(place: Furnished, *, plain: bool) -> dict[str, tuple[str, Prepare]]:
    """The pages by name, with what is done on each before its picture."""
    client = place.tenant.client
    if not plain:
        look = {"sender_name": "Pinewood Library", "accent": "#7b2fbe"}
        await client.patch("/v1/project/branding", json=look)
        await client.post("/v1/project/branding/logo", files={"file": ("logo.svg", LOGO)})
    form = {"slug": "club", "title": "Join the club", "fields": FIELDS, "min_fill_seconds": 0}
    await client.delete(f"/v1/forms/{place.ids['form_id']}")
    form_id = (await client.post("/v1/forms", json=form)).json()["form_id"]
    slug = place.ids["slug"]
    project_id = place.tenant.project.project_id
    return {
        "login": (f"/login/{slug}", _nothing),
        "form": (f"/f/{form_id}", _nothing),
        "form-refused": (f"/f/{form_id}", _send_empty),
        "form-thanks": (f"/f/{form_id}/thanks", _nothing),
        "device": (f"/oidc/{project_id}/device", _nothing),
        "not-found": ("/nowhere", _nothing),
    }


async def main(only: str, langs: list[str], *, plain: bool) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with furnished(Path(folder)) as place, browsing() as browser:
            pages = await furnish(place, plain=plain)
            for lang in langs:
                for scheme in get_args(Scheme):
                    for size, width in WIDTHS.items():
                        for name, (path, prepare) in pages.items():
                            if name.startswith(only):
                                file = SHOTS / f"public-{name}-{lang}-{scheme}-{size}.png"
                                await _shoot(
                                    browser, place.url + path, prepare, file, lang, scheme, width
                                )


async def _shoot(
    browser: Browser,
    url: str,
    prepare: Prepare,
    file: Path,
    lang: str,
    scheme: Scheme,
    width: int,
) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": 800},
        locale=lang,
        color_scheme=scheme,
        has_touch=width < 600,
    )
    page = await context.new_page()
    await page.goto(url)
    await prepare(page)
    await page.screenshot(path=file, full_page=True)
    sys.stdout.write(f"{file}\n")
    await context.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="beginning of a page's name")
    parser.add_argument("--langs", nargs="+", default=["en", "ru"])
    parser.add_argument("--plain", action="store_true", help="without a logo and a colour")
    asked = parser.parse_args()
    asyncio.run(main(asked.only, asked.langs, plain=asked.plain))
