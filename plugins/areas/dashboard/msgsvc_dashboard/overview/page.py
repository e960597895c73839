"""The page itself."""

from collections.abc import Mapping, Sequence
from datetime import date

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import EventSeries, Nav, PageContext, Render
from msgsvc_core.kernel.i18n import titled
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.overview.area import pages
from msgsvc_dashboard.overview.charts import Chart, Series
from msgsvc_dashboard.overview.counting import ACTIVE, Counts, last_days
from msgsvc_dashboard.overview.steps import first_steps
from msgsvc_dashboard.overview.tiles import Level, Tile
from msgsvc_dashboard.sign_in.lockout import has_no_way_back

#: Days that the figures are of; the first is what a reader gets who has not chosen. One day is the last 24
#: hours, by hour.
PERIODS = (30, 1, 7, 90)

#: Active subscribers that are counted for a view of the page.
MOST_COUNTED = 1000

#: The list of messages that a chart's series is of.
LISTS = {
    "delivery.success": {"status": "sent"},
    "delivery.failed": {"status": "failed"},
    "delivery.unknown": {"status": "unknown"},
}


@pages.get(
    "",
    access="customers:read",
    nav=Nav("Overview", icon="chart", group="overview", order=0, also=("/search",)),
)
async def overview(
    page: PageContext,
    site: Site,
    counts: Counts,
    channels: Channels,
    projects: Projects,
    messenger_sign_in: MessengerSignIn,
    subscribers: Subscribers,
) -> Render:
    days, known = _period(page), sorted(counts.names)
    times: Sequence[date] | Sequence[int]
    if days == 1:
        found = await counts.by_hour(page.tx, page.project_id, known, 2 * 24)
        times = counts.last_hours(24)
    else:
        found = await counts.by_day(page.tx, page.project_id, known, 2 * days)
        times = last_days(counts.today, days)
    charts = _charts(page, site, found, times)
    return Render(
        "overview.html",
        {
            "cards": await site.cards(page),
            "charts": charts,
            "tiles": [
                await _active(page, counts, subscribers, max(days, 2)),
                *_tiles(page, site, found),
            ],
            "figures": await site.figures(page),
            "problems": await site.problems(page),
            "steps": await first_steps(page, counts, channels, projects, site)
            if page.may("project:write")
            else [],
            "quiet": not any(one.total for chart in charts for one in chart.series),
            "days": days,
            "periods": sorted(PERIODS),
            "no_way_back": await has_no_way_back(page, messenger_sign_in),
        },
    )


def _period(page: PageContext) -> int:
    chosen = page.query.get("days", "")
    return next((days for days in PERIODS if str(days) == chosen), PERIODS[0])


async def _active(page: PageContext, counts: Counts, subscribers: Subscribers, days: int) -> Level:
    """Of many subscribers the number of the last hour: they are not counted for each view."""
    found = await counts.by_day(page.tx, page.project_id, [ACTIVE], 2 * days)
    values = found[ACTIVE]
    now = await subscribers.count_active(page.tx, page.project_id, MOST_COUNTED)
    if now < MOST_COUNTED or not any(values):
        values[-1] = now
    return Level(page._("Active subscribers"), values, page.url("/subscribers", status="active"))


def _tiles(page: PageContext, site: Site, found: Mapping[str, Sequence[int]]) -> list[Tile]:
    """The key figures of the core, then those of areas."""
    _ = page._
    sent = found["delivery.success"]
    ended = [
        sum(one)
        for one in zip(sent, found["delivery.failed"], found["delivery.unknown"], strict=True)
    ]
    may_list = page.may("project:read")
    messages = page.url("/messages") if may_list else ""
    return [
        Tile(_("New subscribers"), found["subscription.created"], url=page.url("/subscribers")),
        Tile(_("Messages delivered"), sent, url=messages),
        Tile(
            _("Delivery rate"),
            sent,
            ended,
            url=page.url("/messages", status="failed") if may_list else "",
        ),
        *(
            Tile(titled(_, tile.title), found[tile.event], found[tile.of] if tile.of else None)
            for area in site.areas
            for tile in area.tiles
        ),
    ]


def _charts(
    page: PageContext,
    site: Site,
    found: Mapping[str, Sequence[int]],
    times: Sequence[date] | Sequence[int],
) -> list[Chart]:
    """Those of all areas, in their order."""
    may_list = page.may("project:read")

    def series(declared: EventSeries) -> Series:
        event = declared.event
        url = page.url("/messages", **LISTS[event]) if may_list and event in LISTS else ""
        values = found[event][-len(times) :]
        return Series(titled(page._, declared.title), declared.style, values, url)

    declared = [chart for area in site.areas for chart in area.charts]
    return [
        Chart(chart.name, titled(page._, chart.title), times, [*map(series, chart.series)])
        for chart in sorted(declared, key=lambda chart: chart.order)
    ]
