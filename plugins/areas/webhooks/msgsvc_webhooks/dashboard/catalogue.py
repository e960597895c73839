"""The events that a webhook may receive, in groups, each with what it means and an example."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msgsvc_core.api.endpoint import AreaGroup
from msgsvc_core.dashboard.area_groups import Grouped, in_groups
from msgsvc_core.events import Events
from msgsvc_core.http.openapi.event_examples import event_examples
from msgsvc_core.kernel.i18n import Translate


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event. In `meaning`, in the reader's language, what stands between backticks is code; `example` is a
    request's body."""

    name: str
    meaning: str
    example: str
    group: AreaGroup


class EventCatalogue:
    """The events of the loaded plugins, by their declarations."""

    def __init__(self, *, events: Events) -> None:
        self._events = events

    def names(self) -> list[str]:
        return sorted(self._events.catalogue)

    def groups(self, translate: Translate) -> list[Grouped[ShownEvent]]:
        shown = [
            # The texts are those of the package that declares the event.
            ShownEvent(
                name,
                translate[spec.fields.__module__](spec.meaning),
                self._examples.get(name, ""),
                spec.group,
            )
            for name, spec in sorted(self._events.catalogue.items())
        ]
        return in_groups(translate, shown, lambda event: event.group)

    def chosen(self, names: Sequence[str], groups: Sequence[str]) -> list[str]:
        """Those names, and with them all events of those groups."""
        of_groups = [name for name, spec in self._events.catalogue.items() if spec.group in groups]
        return sorted({*names, *of_groups})

    @cached_property
    def _examples(self) -> dict[str, str]:
        return {
            name: json.dumps(body, ensure_ascii=False, indent=2)
            for name, body in event_examples(self._events.catalogue.values()).items()
        }
