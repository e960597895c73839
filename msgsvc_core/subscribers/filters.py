"""The SQL of a filtered list: newest first by an index, so that a small page reads few rows.

Measured with 100,000 subscribers; see docs/decisions/0044-lists-of-a-million.md.
"""

from dataclasses import dataclass
from typing import Any

from msgsvc_core.api.pagination import until_id
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect
from msgsvc_core.subscribers.models import SubscriberFilters

#: Fields of a query with the same name as a column.
_COLUMNS = ("channel", "status", "lang")

#: Fields of a query with a table of their own, and its column.
_CARRIED = (
    ("tag", "core_subscriber_tags", "tag_id"),
    ("permission", "core_subscriber_permissions", "permission"),
)


async def by_id(tx: Tx, project_id: str, query: SubscriberFilters) -> SubscriberFilters:
    """The query with a tag's id instead of its name. It is looked up first: PostgreSQL plans by how common
    the tag is, which it can't know of a subquery."""
    if query.tag is None:
        return query
    tag_id = await tx.fetch_val(
        "SELECT tag_id FROM core_tags WHERE project_id = :project_id AND name = :name",
        {"project_id": project_id, "name": query.tag},
    )
    # Empty is the id of no tag.
    return query.model_copy(update={"tag": tag_id or ""})


@dataclass(frozen=True, slots=True)
class Filter:
    """The part of a query after FROM, with the subscribers as `s`; `order` is the column of their ids,
    descending."""

    source: str
    condition: str
    order: str
    params: dict[str, Any]


def filter_of(
    project_id: str, query: SubscriberFilters, after: str | None, *, ascending: bool = False
) -> Filter:
    """The subscribers of a query from `by_id`; `after` is the last id of the previous page, in the order of
    the walk.

    The caller applies `created_after`: ids increase with time, so it ends a page.
    """
    params: dict[str, Any] = {"project_id": project_id}
    conditions = ["s.project_id = :project_id"]
    for column in _COLUMNS:
        if (value := getattr(query, column)) is not None:
            conditions.append(f"s.{column} = :{column}")
            params[column] = value
    source, order = "core_subscribers s", "s.subscriber_id"
    for field, table, column in _CARRIED:
        if (value := getattr(query, field)) is None:
            continue
        params[field] = value
        carried = f"c.project_id = :project_id AND c.{column} = :{field}"
        if order == "s.subscriber_id":
            # SQLite executes a CROSS JOIN from left to right, here along an index with a tag's subscribers in
            # the order of the list. Otherwise it would build a set of all of them.
            source, order = f"{table} c CROSS JOIN core_subscribers s", "c.subscriber_id"
            conditions.append(f"{carried} AND s.subscriber_id = c.subscriber_id")
        else:
            conditions.append(
                f"EXISTS (SELECT 1 FROM {table} c WHERE {carried}"
                " AND c.subscriber_id = s.subscriber_id)"
            )
    if query.external_id is not None:
        # Forces the index: SQLite would scan all subscribers, because they are already in order.
        conditions.append(_among("external_id = :external_id"))
        params["external_id"] = query.external_id
    if (until := until_id("sub", query.created_before)) is not None:
        # Begins there; the exact time is tested, and the plus keeps SQLite from looking for an index of it.
        conditions += ["s.subscriber_id < :until", f"{order} < :until"]
        conditions.append("+s.created_at_ms < :created_before")
        params |= {"until": until, "created_before": query.created_before}
    if after is not None:
        # On both tables: PostgreSQL's merge join would scan one of them from its start.
        beyond = ">" if ascending else "<"
        conditions += [f"s.subscriber_id {beyond} :after", f"{order} {beyond} :after"]
        params["after"] = after
    return Filter(source, " AND ".join(conditions), order, params)


@dataclass(frozen=True, slots=True)
class Led:
    """The condition that walks an index, and that of the other filters on the rows walked, as `walked`."""

    source: str
    led_by: str
    order: str
    also: str
    params: dict[str, Any]


def led_filter_of(project_id: str, query: SubscriberFilters) -> Led:
    """A query from `by_id` for a bounded count: its first filter leads, the others are tested."""
    params: dict[str, Any] = {"project_id": project_id}
    source, led_by, order = "core_subscribers s", "s.project_id = :project_id", "s.subscriber_id"
    also: list[str] = []
    for field, table, column in _CARRIED:
        if (value := getattr(query, field)) is None:
            continue
        params[field] = value
        carried = f"c.project_id = :project_id AND c.{column} = :{field}"
        if source == "core_subscribers s":
            source, order = f"{table} c CROSS JOIN core_subscribers s", "c.subscriber_id"
            led_by += f" AND {carried} AND s.subscriber_id = c.subscriber_id"
        else:
            also.append(
                f"EXISTS (SELECT 1 FROM {table} c WHERE {carried}"
                " AND c.subscriber_id = walked.subscriber_id)"
            )
    for column in ("external_id", *_COLUMNS):
        if (value := getattr(query, column)) is None:
            continue
        params[column] = value
        if led_by == "s.project_id = :project_id":
            led_by += f" AND s.{column} = :{column}"
        else:
            also.append(f"walked.{column} = :{column}")
    return Led(source, led_by, order, " AND ".join(also), params)


def passive_filter_of(
    project_id: str, query: SubscriberFilters, dialect: Dialect
) -> tuple[str, dict[str, Any]]:
    """The same as a condition on `s` alone, for a scan by another index."""
    # SQLite has no statistics to choose by, and does not use an index for a column with a plus.
    plus = "+" if dialect == "sqlite" else ""
    params: dict[str, Any] = {"project_id": project_id}
    conditions = ["s.project_id = :project_id"]
    for column in (*_COLUMNS, "external_id"):
        if (value := getattr(query, column)) is not None:
            conditions.append(f"{plus}s.{column} = :{column}")
            params[column] = value
    for field, table, column in _CARRIED:
        if (value := getattr(query, field)) is not None:
            conditions.append(
                f"EXISTS (SELECT 1 FROM {table} c WHERE c.project_id = :project_id"
                f" AND c.{column} = :{field} AND c.subscriber_id = s.subscriber_id)"
            )
            params[field] = value
    if query.created_after is not None:
        conditions.append(f"{plus}s.created_at_ms > :created_after")
        params["created_after"] = query.created_after
    if query.created_before is not None:
        conditions.append(f"{plus}s.created_at_ms < :created_before")
        params["created_before"] = query.created_before
    return " AND ".join(conditions), params


def _among(condition: str) -> str:
    return (
        "s.subscriber_id IN (SELECT subscriber_id FROM core_subscribers"
        f" WHERE project_id = :project_id AND {condition})"
    )
