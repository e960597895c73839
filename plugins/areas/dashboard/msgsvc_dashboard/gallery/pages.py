"""The page itself; it shows examples of its own and reads nothing."""

from datetime import date, timedelta

from msgsvc_core.content.spans import Span
from msgsvc_core.dashboard import PageContext, Pages, Render
from msgsvc_core.kernel.clock import HOUR_MS, MINUTE_MS, from_rfc3339
from msgsvc_core.messages.previews import Messenger, Preview
from msgsvc_core.pages.icons import shapes
from msgsvc_dashboard.overview.charts import Chart, Series
from msgsvc_dashboard.overview.tiles import Tile

pages = Pages("gallery", package="msgsvc_dashboard.gallery", styles=("gallery.css",))

#: The time of the examples, so that pictures of them stay the same.
NOW_MS = from_rfc3339("2026-11-20T09:30:00Z")

#: Days of the examples' figures, and before them as many to compare with.
DAYS = 30


@pages.get("/gallery", access="account:self")
async def gallery(page: PageContext) -> Render:
    return Render(
        "gallery.html",
        {
            "now_ms": NOW_MS,
            "minute_ms": MINUTE_MS,
            "hour_ms": HOUR_MS,
            "icons": sorted(shapes()),
            "tiles": _tiles(page),
            "chart": _chart(page),
            "previews": _previews(page),
            "outcomes": {"sent": 8412, "failed": 61, "unknown": 9, "skipped": 118, "total": 10_000},
        },
    )


def _wave(least: int, highest: int, days: int) -> list[int]:
    """Figures that rise and fall within bounds, always the same."""
    return [least + (day * day * 7 + day * 3) % (highest - least + 1) for day in range(days)]


def _tiles(page: PageContext) -> list[Tile]:
    _ = page._
    sent = _wave(240, 420, 2 * DAYS)
    return [
        Tile(_("New subscribers"), _wave(20, 60, DAYS) + _wave(30, 80, DAYS), url="#tiles"),
        Tile(_("Delivery rate"), sent, [value + 4 for value in sent]),
        Tile(_("Messages delivered"), [*_wave(300, 500, DAYS), *_wave(200, 300, DAYS)]),
        Tile(_("Sign-ins"), [0] * 2 * DAYS),
    ]


def _chart(page: PageContext) -> Chart:
    _ = page._
    days = [date(2026, 11, 20) - timedelta(days=back) for back in reversed(range(DAYS))]
    return Chart(
        "sends",
        _("Messages"),
        days,
        [
            Series(_("Delivered"), "first", _wave(140, 230, DAYS), "#charts"),
            Series(_("Failed"), "third", _wave(2, 24, DAYS)),
            Series(_("Unknown"), "fourth", _wave(0, 6, DAYS)),
        ],
    )


def _previews(page: PageContext) -> list[Preview]:
    _ = page._
    spans = (
        Span(_("Your order is ready."), ("bold",)),
        Span("\n"),
        Span(_("Collect it until eight in the evening.")),
    )
    named = (Messenger("Telegram", ""),)
    unnamed = (Messenger("", ""),)
    problem = _("text: longer than 40 characters")
    shown = Preview(("telegram",), spans, None, (), None, 60, 4096, named)
    refused = Preview(("messenger_b",), spans, None, (), problem, 60, 40, unnamed)
    return [shown, refused]
