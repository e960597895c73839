"""Evaluates a step's `when` for a subscriber."""

from typing import Any

from msgsvc_core.subscribers.models import Subscriber
from msgsvc_drip.definition import When


def is_met(when: When | None, subscriber: Subscriber) -> bool:
    """Whether all conditions hold, for the subscriber's current data."""
    if when is None:
        return True
    tags = set(subscriber.tags)
    attribute = when.attribute
    return (
        (when.tags_any is None or bool(tags.intersection(when.tags_any)))
        and (when.tags_none is None or not tags.intersection(when.tags_none))
        and (when.permission is None or when.permission in subscriber.permissions)
        and when.lang in {None, subscriber.lang}
        and when.channel in {None, subscriber.channel}
        and (
            attribute is None
            or _equal((subscriber.attributes or {}).get(attribute.name), attribute.equals)
        )
    )


def _equal(value: Any, wanted: str | float | bool) -> bool:
    # Python takes true for 1, which JSON does not.
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
