"""The page of the search, and the list that the search box shows while somebody types."""

from itertools import groupby

from msgsvc_core.dashboard import PageContext, Pages, Redirect, Render
from msgsvc_dashboard.frame import Site

#: Characters of a text to search for; more are cut off.
MOST = 100

pages = Pages("search", package="msgsvc_dashboard.searching")


@pages.get("/search", access="customers:read")
async def search(page: PageContext, site: Site) -> Render | Redirect:
    text = page.query.get("q", "").strip()[:MOST]
    found = await site.search(page, text) if text else []
    groups = [(kind, list(hits)) for kind, hits in groupby(found, lambda hit: hit.kind)]
    values = {"text": text, "groups": groups}
    if page.fragment == "search-hits":
        return Render("found.html", values)
    exact = [hit for hit in found if hit.is_exact]
    if len(exact) == 1:
        return Redirect(exact[0].url)
    return Render("search.html", values)
