"""What a search finds of API keys and channels."""

from collections.abc import Sequence

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Hit, PageContext
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.developers.area import pages

#: Hits of a kind.
MOST = 5


@pages.search(access="project:read", order=80)
async def found_keys(page: PageContext, projects: Projects) -> Sequence[Hit]:
    """Keys in use, by id, a part of the name, or a whole key, of which the prefix tells which it is."""
    text = page.searched.casefold()
    keys = [each.key for each in await projects.keys_of(page.tx, page.project_id)]
    found = [
        each
        for each in keys
        if text in {each.key_id.casefold()}
        or text in each.name.casefold()
        or page.searched.startswith(each.prefix)
    ]
    return [
        Hit(
            page._("API keys"),
            each.name or each.prefix,
            page.url("/keys"),
            detail=f"{each.prefix}…",
            icon="key",
        )
        for each in found[:MOST]
    ]


@pages.search(access="project:read", order=85)
async def found_channels(page: PageContext, channels: Channels) -> Sequence[Hit]:
    """Channels, by a part of the name."""
    text = page.searched.casefold()
    names = [each.name for each in channels.list_for_project(page.project_id)]
    return [
        Hit(page._("Channels"), name, page.url("/channels"), icon="bot")
        for name in names
        if text in name.casefold()
    ][:MOST]
