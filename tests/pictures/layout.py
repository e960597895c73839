"""Faults of a page's layout and language that a browser can measure, so that no picture has to show them."""

import re
from pathlib import Path

from playwright.async_api import Page

SCRIPT = Path(__file__).with_name("layout.js").read_text("utf-8")

#: What Russian pages have in Latin letters: products, standards, HTTP headers, fields of other products
#: as these call them, and what the pictured project calls its things.
NAMES = set(
    re.split(
        r"\s*\|\s*",
        """
        | API | EdDSA | HTML | ID | Markdown | Python | TypeScript | URL | UTC | XXXX-XXXX | curl | openssl
        | openid profile | English | Logto | Novu | Supabase | Telegram | ZITADEL | msgsvc | API Key
        | Base URL | API Key Request Header | Date Path | Id Path | Content-Type | User-Agent | webhook-id
        | webhook-signature | webhook-timestamp | X-Service-Delivery-Id | X-Service-Event
        | X-Service-Event-Id | X-Service-Signature | X-Service-Timestamp
        | ANN BOT | Ann | Messenger A | Messenger B | Mini | Operator | Owner | Pinewood Library
        | Sandbox A | Form | Hi | Name | News | Shop | Welcome | ann | ann-customer | ann-hello | ann-news
        | ann-sale | ann-shop | ann-tag | en | free | login | mini | news | pro | recording | sandbox | site
        | telegram | test | trips | vip | website | could not connect: Connection refused |
        """,
    )
)


async def layout_faults(page: Page) -> list[str]:
    """What is wrong at the window's size: the page scrolls sideways, a text leaves its box or is cut off, or
    controls overlap."""
    return await _measured(page, "layout")


async def navigation_faults(page: Page) -> list[str]:
    """Entries of the dashboard's navigation that can't be tapped on a phone; none for pages without it."""
    return await _measured(page, "navigation")


async def untranslated(page: Page) -> list[str]:
    """English texts of a Russian page."""
    texts = await _measured(page, "latin")
    return [f"untranslated: {text}" for text in texts if any(map(_is_english, _parts(text)))]


async def _measured(page: Page, function: str) -> list[str]:
    found: list[str] = await page.evaluate(f"() => {{ {SCRIPT} return {function}(); }}")
    return found


def _parts(text: str) -> list[str]:
    """What stands between separators and numbers, e.g. a ticket's subject and the project's name."""
    return [part.strip(" .:@") for part in re.split(r"[·,()]|#\d+", text)]


def _is_english(part: str) -> bool:
    """Whether it has a word that is neither a name nor an identifier, e.g. an address, a key or an event."""
    return part not in NAMES and any(
        re.fullmatch(r"[A-Za-z'-]{2,}", word) for word in part.split() if word not in NAMES
    )
