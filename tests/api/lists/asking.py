"""Every list of the API with every filter, read from the endpoints: a new one can't be forgotten."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic.fields import FieldInfo

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.clock import to_rfc3339
from tests.api.lists.filling import START_MS, Sizes, id_of
from tests.paths import by_kind

#: Values of filters that are no enumeration, by route. The rare ones find the three oldest rows.
FILTERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "list_messages": {
        "subscriber_id": [id_of("sub", 1), id_of("sub", 3)],
        "channel": ["messenger_a", "messenger_b"],
        "batch_id": ["bat_rare"],
        "reason": ["user_blocked_bot", "rate_limited"],
    },
    "list_subscribers": {
        "channel": ["messenger_a", "messenger_b"],
        "tag": ["most", "rare"],
        "permission": ["most", "rare"],
        "external_id": ["customer-1"],
        "lang": ["en", "ru"],
        # All by name; a tenth by username; three; one by `external_id`; nobody.
        "query": ["ANN", "ann1", "жан", "customer-100", "zoe"],
    },
    "list_events": {
        "event": ["delivery.success", "button.clicked"],
        "after_event_id": [id_of("evt", 1), id_of("evt", 3000)],
    },
    "list_tickets": {
        "channel": ["messenger_a", "messenger_b", "virtual"],
        "tag": ["most", "rare"],
        "due": ["overdue", "today"],
        "assignee_id": ["mem_most", "mem_rare", "none"],
        "subscriber_id": [id_of("sub", 1), id_of("sub", 3)],
    },
    "list_drip_enrollments": {"subscriber_id": [id_of("sub", 1), id_of("sub", 5)]},
    "list_broadcast_recipients": {"reason": ["user_blocked_bot", "rate_limited"]},
    "list_webhook_deliveries": {"event": ["delivery.success", "button.clicked"]},
}

#: Filters that are set together.
TOGETHER: Mapping[str, Sequence[Mapping[str, str]]] = {
    "list_messages": [
        {"subscriber_id": id_of("sub", 1), "status": "failed"},
        {"subscriber_id": id_of("sub", 1), "channel": "messenger_b"},
        {"status": "failed", "channel": "messenger_b"},
        {"status": "failed", "reason": "user_blocked_bot"},
        {"status": "sent", "channel": "messenger_b"},
    ],
    "list_subscribers": [
        {"tag": "rare", "permission": "most"},
        {"tag": "rare", "status": "active"},
        {"permission": "rare", "channel": "messenger_b"},
        {"query": "ann", "status": "active"},
        {"query": "ann", "tag": "most"},
    ],
    "list_tickets": [
        {"status": "open", "assignee_id": "mem_rare"},
        {"status": "open", "priority": "urgent"},
        {"status": "open", "tag": "most"},
        {"status": "open", "due": "overdue"},
        {"status": "open", "sort": "waiting"},
        {"tag": "rare", "sort": "due"},
        {"assignee_id": "mem_rare", "sort": "due"},
    ],
    "list_webhook_deliveries": [{"status": "failed", "event": "delivery.success"}],
    "list_form_submissions": [{"spam": "true", "source": "web"}],
}


#: Lists that say of each entry how many people carry it, counted one by one: see decision 0044.
COUNTED = ("list_tags", "list_permissions")


@dataclass(frozen=True, slots=True)
class Asked:
    """One list, as one request asks for it."""

    path: str
    query: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.path} {dict(self.query)}"


def lists(
    endpoints: Sequence[Endpoint], ids: Mapping[str, str], sizes: Sizes, *, counted: bool = False
) -> dict[str, list[Asked]]:
    """The requests by route: without a filter first, with one at a time, with several.

    With `counted` also those that are `COUNTED`.
    """
    return {
        endpoint.name: [
            Asked(by_kind(endpoint.path).format(**ids), query)
            for query in _queries(endpoint, sizes)
        ]
        for endpoint in endpoints
        if endpoint.query is not None
        and issubclass(endpoint.query, PageQuery)
        and (counted or endpoint.name not in COUNTED)
    }


def _queries(endpoint: Endpoint, sizes: Sizes) -> Iterator[dict[str, str]]:
    yield {}
    assert endpoint.query is not None
    filters = endpoint.query.model_fields.keys() - PageQuery.model_fields.keys()
    for name in sorted(filters):
        for value in _values(endpoint, name, endpoint.query.model_fields[name], sizes):
            yield {name: value}
    count = getattr(sizes, endpoint.path.rpartition("/")[2], sizes.others)
    # The oldest three, the newest three, all but these.
    for after in (3, count - 3):
        moment = to_rfc3339(START_MS + 1000 * after)
        yield {"created_after": moment}
        yield {"created_before": moment}
    yield from (dict(query) for query in TOGETHER.get(endpoint.name, ()))


def _values(endpoint: Endpoint, name: str, field: FieldInfo, sizes: Sizes) -> Sequence[str]:
    if field.annotation is bool:
        return ["true", "false"]
    known = FILTERS.get(endpoint.name, {}).get(name) or [*_literals(field.annotation)]
    assert known, f"{endpoint.name} has a filter {name}: say in FILTERS what it is asked for"
    return known


def _literals(annotation: Any) -> Iterator[str]:
    """The texts of a Literal, wherever it stands in a type."""
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)
