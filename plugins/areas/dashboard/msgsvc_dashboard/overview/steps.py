"""The first steps of a new project, and which are done."""

from dataclasses import dataclass
from operator import attrgetter

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.i18n import titled
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.overview.counting import Counts


@dataclass(frozen=True, slots=True)
class Step:
    """`url` is empty if the viewer may not do it."""

    title: str
    text: str
    done: bool
    url: str
    action: str


async def first_steps(
    page: PageContext,
    counts: Counts,
    channels: Channels,
    projects: Projects,
    site: Site,
) -> list[Step]:
    """None once all are done."""
    declared = sorted(
        (step for area in site.areas for step in area.first_steps), key=attrgetter("order")
    )
    names = ["subscription.created", "delivery.success", *(step.event for step in declared)]
    happened = await counts.happened(page.tx, page.project_id, names)
    _ = page._
    steps = [
        Step(
            _("Connect a channel"),
            _("The messenger bot through which people sign in and get messages."),
            bool(channels.list_for_project(page.project_id)),
            _address(page, site, "/channels"),
            _("Channels"),
        ),
        Step(
            _("Invite the first person"),
            _("Open your own subscription link in the messenger, and press Start."),
            "subscription.created" in happened,
            _address(page, site, "/invite"),
            _("Get the link"),
        ),
        Step(
            _("Send a message"),
            _("Send yourself a message and see it arrive."),
            "delivery.success" in happened,
            _address(page, site, "/messages/new"),
            _("Write"),
        ),
        Step(
            _("Create an API key"),
            _("Your site or app uses it to send messages and sign people in."),
            bool(await projects.list_keys(page.project_id)),
            _address(page, site, "/keys"),
            _("API keys"),
        ),
    ]
    steps += [
        Step(
            titled(_, step.title),
            titled(_, step.text),
            step.event in happened,
            _address(page, site, step.path),
            titled(_, step.action),
        )
        for step in declared
    ]
    return [] if all(step.done for step in steps) else steps


def _address(page: PageContext, site: Site, path: str) -> str:
    """Where that page is, if there is one that they may open."""
    found = [
        one
        for one in site.pages
        if one.method == "GET" and one.path == path and page.may(one.access)
    ]
    return page.url(path) if found else ""
