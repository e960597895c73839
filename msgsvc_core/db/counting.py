"""Counts how many rows of a list match its filters, and looks at a bounded number of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db.tx import Tx
from msgsvc_core.kernel.values import value_object

#: Rows of a list that are counted; of more, a page says "10,000+".
MOST_COUNTED = 10_000


@value_object
class Count:
    """How many rows match; at least so many, unless it `is_exact`."""

    number: int
    is_exact: bool = True


async def count_walked(
    tx: Tx,
    source: str,
    *,
    led_by: str,
    order: str,
    columns: Sequence[str],
    also: str,
    params: Mapping[str, Any],
    limit: int,
    since_ms: int | None = None,
) -> Count:
    """Counts up to `limit` rows along the index that `led_by` and `order` use.

    `also` is the condition of the other filters on `columns`, empty for none: rows that it leaves out count
    as looked at, so that a rare combination scans no more than a common one. `since_ms` stands for
    `created_at_ms > since_ms` on rows whose order is that of their creation.
    """
    given = {**params, "most_walked": limit + 1, "since_ms": -1 if since_ms is None else since_ms}
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS walked, MIN(walked.created_at_ms) AS oldest_ms,"
        f" COALESCE(SUM(CASE WHEN walked.created_at_ms > :since_ms AND {also or '1 = 1'}"
        " THEN 1 ELSE 0 END), 0) AS matching"
        f" FROM (SELECT {', '.join(columns)} FROM {source} WHERE {led_by}"
        f" ORDER BY {order} DESC LIMIT :most_walked) AS walked",
        given,
    )
    assert row is not None, "an aggregate has a row"
    is_over = since_ms is not None and (row["oldest_ms"] or 0) <= since_ms
    is_exact = row["walked"] <= limit or is_over
    return Count(min(row["matching"], limit), is_exact)
