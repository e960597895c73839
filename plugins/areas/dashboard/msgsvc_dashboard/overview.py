"""The first page of a project: how it does, in the parts that the areas contribute."""

from msgsvc_core.dashboard import Nav, PageContext, Pages, Shown

pages = Pages("dashboard", package="msgsvc_dashboard")


@pages.get("", access="see", nav=Nav("Overview", icon="chart", group="overview", order=0))
async def overview(page: PageContext) -> Shown:
    return Shown("overview.html")
