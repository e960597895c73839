"""The pages of the overview, and its charts of what the core does."""

from msgsvc_core.dashboard import EventChart, EventSeries, Pages

pages = Pages(
    "dashboard",
    package="msgsvc_dashboard.overview",
    charts=[
        EventChart(
            "sends",
            lambda _: _("Messages"),
            [
                EventSeries(lambda _: _("Delivered"), "delivery.success"),
                EventSeries(lambda _: _("Failed"), "delivery.failed", "third"),
                EventSeries(lambda _: _("Unknown"), "delivery.unknown", "fourth"),
            ],
            order=10,
        ),
        EventChart(
            "people",
            lambda _: _("Subscriptions"),
            [
                EventSeries(lambda _: _("New"), "subscription.created"),
                EventSeries(lambda _: _("Unsubscribes"), "subscription.deleted", "fourth"),
            ],
            order=90,
        ),
    ],
)
