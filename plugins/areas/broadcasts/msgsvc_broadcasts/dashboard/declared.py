"""All pages of the area."""

from msgsvc_broadcasts.dashboard import composing, following, searching
from msgsvc_core.dashboard import EventChart, EventSeries, Pages

pages = Pages(
    "broadcasts",
    package="msgsvc_broadcasts.dashboard",
    charts=[
        EventChart(
            "broadcasts",
            lambda _: _("Broadcasts"),
            [EventSeries(lambda _: _("Completed"), "broadcast.completed", "second")],
            order=30,
        )
    ],
)
composing.declare(pages)
following.declare(pages)
searching.declare(pages)
