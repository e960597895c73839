"""The page itself."""

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Nav, PageContext, Pages, Render
from msgsvc_core.events import Events
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.overview.charts import Chart, Series
from msgsvc_dashboard.overview.counting import Counts, last_days
from msgsvc_dashboard.overview.steps import first_steps
from msgsvc_dashboard.sign_in.coming_back import has_no_way_back

pages = Pages("dashboard", package="msgsvc_dashboard.overview")

#: Days that charts show.
DAYS = 30


@pages.get(
    "", access="customers:read", nav=Nav("Overview", icon="chart", group="overview", order=0)
)
async def overview(
    page: PageContext,
    site: Site,
    counts: Counts,
    events: Events,
    channels: Channels,
    projects: Projects,
    messenger_sign_in: MessengerSignIn,
) -> Render:
    charts = await _charts(page, counts, events)
    return Render(
        "overview.html",
        {
            "cards": await site.cards(page),
            "charts": charts,
            "steps": await first_steps(page, counts, channels, projects, events, site)
            if page.may("project:write")
            else [],
            "quiet": not any(one.total for chart in charts for one in chart.series),
            "days": DAYS,
            "no_way_back": await has_no_way_back(page, messenger_sign_in),
        },
    )


async def _charts(page: PageContext, counts: Counts, events: Events) -> list[Chart]:
    """One for each kind of event that this service has at all."""
    _ = page._
    wanted = [
        ("sends", _("Messages"), "delivery.success", _("Delivered"), "first"),
        ("sends", "", "delivery.failed", _("Failed"), "third"),
        ("sends", "", "delivery.unknown", _("Unknown"), "fourth"),
        ("logins", _("Sign-ins"), "auth.completed", _("Signed in"), "first"),
        ("broadcasts", _("Broadcasts"), "broadcast.completed", _("Completed"), "second"),
        ("people", _("Subscriptions"), "subscription.created", _("New"), "first"),
        ("people", "", "subscription.deleted", _("Unsubscribes"), "fourth"),
    ]
    catalogue = {*events.catalogue, "delivery.unknown"}
    known = [one for one in wanted if one[2] in catalogue]
    found = await counts.by_day(page.tx, page.project_id, [one[2] for one in known], DAYS)
    days = last_days(counts.today, DAYS)
    charts: list[Chart] = []
    for name, title, event, label, style in known:
        series = Series(label, style, found[event])
        if title:
            charts.append(Chart(name, title, days, [series]))
        else:
            charts[-1] = Chart(name, charts[-1].title, days, [*charts[-1].series, series])
    return charts
