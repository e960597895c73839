"""The events that a webhook may receive, as its pages show them."""

import json
from collections.abc import Sequence

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events, EventSpec
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import MemoryCore
from msgsvc_webhooks.dashboard.catalogue import EventCatalogue


class Closed(ResponseModel):
    """Fields of `shop.closed`."""

    shop_id: str = Field(description="The shop.", examples=["shp_1"])


SPECS = (
    EventSpec("shop.closed", "It `closed`.", Closed, of_subscriber=False, group="project"),
    EventSpec("shop.opened", "It opened.", Closed, of_subscriber=False, group="project"),
    EventSpec("cart.filled", "Of a stranger's plugin.", Closed),
)


async def observe(_tx: Tx, _events: Sequence[Event]) -> None:
    """Nothing is emitted here."""


def catalogue() -> EventCatalogue:
    return EventCatalogue(events=Events(clock=FakeClock(), specs=SPECS, observe=observe))


def test_events_stand_in_groups_each_with_an_example_of_its_fields(core: MemoryCore) -> None:
    groups = catalogue().groups(core.texts.into("en"))

    assert [(each.name, [event.name for event in each.members]) for each in groups] == [
        ("project", ["shop.closed", "shop.opened"]),
        ("other", ["cart.filled"]),
    ]
    closed, filled = groups[0].members[0], groups[1].members[0]
    assert closed.meaning == "It `closed`."
    assert json.loads(closed.example)["data"]["shop_id"] == "shp_1"
    assert "subscriber_id" not in closed.example
    assert "subscriber_id" in filled.example


def test_a_group_stands_for_its_events_beside_those_that_are_named() -> None:
    found = catalogue()

    assert found.chosen(["cart.filled", "shop.closed"], ["project"]) == found.names()
    assert found.chosen(["cart.filled"], ["nothing"]) == ["cart.filled"]
    assert found.chosen([], []) == []
