"""What is stored about a subscriber, declared by the package that owns the table: for exports."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalTable:
    """Rows of a table that are about a subscriber, as they are exported under the name `section`.

    `columns` are those that are shown: not ids of rows that nobody can ask for, hashes or secrets. A column
    whose name ends in `_ms` is shown as a time, without that ending; one of `json` as what its text holds.
    `where` finds the rows of `{table} t` by `:project_id`, `:subscriber_id`, `:bot`, `:user_id` and
    `:chat_id`.
    """

    section: str
    table: str
    columns: Sequence[str]
    json: Sequence[str] = ()
    where: str = "t.project_id = :project_id AND t.subscriber_id = :subscriber_id"
    #: The columns by which rows are ordered.
    order: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NotExported:
    """A table that names subscribers, and why its rows are not exported."""

    table: str
    reason: str


#: What a package declares of its tables.
PersonalData = PersonalTable | NotExported
