"""Columns of encrypted values, declared by the owners of their tables, and what a rotation of the keys needs
of them: which keys the values name, and the rows themselves by their primary key."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_core.security.secret_box import (
    ENCRYPTED,
    MARK_CHARACTERS,
    UNNAMED,
    DecryptionError,
    SecretBox,
    key_id_in,
)
from msgsvc_core.security.secret_box import Row as BoundTo

#: Values of earlier releases that are decrypted from either end of a table, to see whether the keys are lost.
#: One takes some 50 µs.
SAMPLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedColumn:
    """A column of values encrypted with `SecretBox.encrypt`. NULL and readable text, which does not begin as
    an encrypted value does, are allowed.

    `key` is the table's primary key. `bound_to` are the columns after `place` in the `row` of `encrypt`;
    without them, values are not bound. `holds` says what the values are, with their `{count}`, and `if_lost`
    what to do once no key reads them. `is_lasting` is False for values that expire by themselves within days:
    they are re-encrypted by `msgsvc secrets rotate` alone.
    """

    table: str
    column: str
    key: Sequence[str]
    holds: str
    if_lost: str
    bound_to: Sequence[str] = ()
    #: The first part of the `row`, if it is not `table.column`.
    place: str | None = None
    #: A column beside it with the id of the key, if there is one: by its index older values are found.
    key_id_column: str | None = None
    #: A column beside it with the `hash_of` the value, if rows are found by their values. Rows that were
    #: written before it was there have NULL, and count as older ones.
    hash_column: str | None = None
    is_lasting: bool = True

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"

    def row_of(self, row: Row) -> BoundTo:
        """What the value of a row is bound to."""
        if not self.bound_to:
            return ()
        return self.place or self.name, *(str(row[name]) for name in self.bound_to)

    def hash_of(self, secrets: SecretBox, value: str) -> str:
        """What `hash_column` has for a value under the current key."""
        return secrets.keyed_hash(self.name, value)

    def hashes_of(self, secrets: SecretBox, value: str) -> list[str]:
        """What `hash_column` may have for a value: one for each key."""
        return secrets.keyed_hashes(self.name, value)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """How many values of a column are under each key, by its id, and how many do not name theirs."""

    column: SealedColumn
    by_key: Counter[str] = field(default_factory=Counter)
    unnamed: int = 0


@dataclass(frozen=True, slots=True)
class LostValues:
    """Values that no key reads. `count` is exact for those that name their key, `key_ids`; of others it has
    those of a sample, and `is_least` says that there may be more."""

    column: SealedColumn
    count: int
    key_ids: Sequence[str]
    is_least: bool

    @property
    def text(self) -> str:
        """For operators, e.g. `no key reads the 3 signing secret(s) of webhooks (webhooks_secrets)`."""
        count = f"at least {self.count}" if self.is_least else self.count
        needs = f", which need key {' and '.join(self.key_ids)}" if self.key_ids else ""
        return (
            f"no key reads the {self.column.holds.format(count=count)} ({self.column.table}){needs}"
        )


async def count_by_key(tx: Tx, column: SealedColumn) -> KeyUse:
    """Reads the beginning of each value, and decrypts none: of 200,000 in 0.2 s of SQLite's time."""
    rows = await tx.fetch_all(
        f"SELECT substr({column.column}, 1, {MARK_CHARACTERS}) AS mark, COUNT(*) AS count"
        f" FROM {column.table} WHERE {_is_encrypted(column)} GROUP BY 1"
    )
    use = KeyUse(column)
    unnamed = 0
    for row in rows:
        key_id = key_id_in(row["mark"])
        if key_id is None:
            unnamed += row["count"]
        else:
            use.by_key[key_id] += row["count"]
    return KeyUse(column, use.by_key, unnamed)


async def find_lost(tx: Tx, use: KeyUse, secrets: SecretBox) -> LostValues | None:
    """The values that none of the keys reads; None if there are none."""
    missing = {key_id: n for key_id, n in use.by_key.items() if key_id not in secrets.key_ids}
    unreadable = tried = 0
    if use.unnamed:
        sample = await _unnamed(tx, use.column)
        tried = len(sample)
        unreadable = sum(not _is_readable(row, use.column, secrets) for row in sample)
    if not missing and not unreadable:
        return None
    return LostValues(
        use.column,
        sum(missing.values()) + unreadable,
        sorted(missing),
        is_least=unreadable > 0 and tried < use.unnamed,
    )


async def list_older(
    tx: Tx, column: SealedColumn, secrets: SecretBox, after: Row | None, limit: int
) -> list[Row]:
    """Up to `limit` rows, by their primary key from behind `after`, whose value does not name the current
    key, or has no hash yet: the columns `key`, `bound_to`, and the value as `sealed`."""
    where = [_is_encrypted(column)]
    params: dict[str, object] = {"most": limit}
    # Two ranges, so that an index is used: for `<>` it is not.
    if column.key_id_column is None:
        found = f"substr({column.column}, 1, {MARK_CHARACTERS})"
        params["current"] = secrets.current_mark
    else:
        found = column.key_id_column
        params["current"] = secrets.key_ids[0]
    older = f"{found} < :current OR {found} > :current"
    if column.hash_column is not None:
        older += f" OR {column.hash_column} IS NULL"
    where.append(f"({older})")
    key = ", ".join(column.key)
    if after is not None:
        where.append(f"({key}) > ({', '.join(f':after_{name}' for name in column.key)})")
        params |= {f"after_{name}": after[name] for name in column.key}
    read = ", ".join(dict.fromkeys([*column.key, *column.bound_to]))
    return await tx.fetch_all(
        f"SELECT {read}, {column.column} AS sealed FROM {column.table}"
        f" WHERE {' AND '.join(where)} ORDER BY {key} LIMIT :most",
        params,
    )


@dataclass(frozen=True, slots=True)
class Renewed:
    """A row of `list_older`, its value under the current key, and its hash if the column has hashes."""

    row: Row
    sealed: str
    hashed: str = ""


async def replace_values(
    tx: Tx, column: SealedColumn, changes: Sequence[Renewed], key_id: str
) -> int:
    """Writes the values of rows of `list_older` under the key of `key_id`, but for those that were changed
    meanwhile; returns how many it wrote."""
    is_text = all(isinstance(each.row[name], str) for each in changes for name in column.key)
    if tx.dialect == "postgresql" and is_text and changes:
        return await _replace_together(tx, column, changes, key_id)
    return sum([await _replace(tx, column, each, key_id) for each in changes])


async def _replace(tx: Tx, column: SealedColumn, change: Renewed, key_id: str) -> int:
    this = " AND ".join(f"{name} = :{name}" for name in column.key)
    params = {name: change.row[name] for name in column.key}
    params |= {"sealed": change.sealed, "before": change.row["sealed"]}
    also = ""
    if column.key_id_column:
        also += f", {column.key_id_column} = :key_id"
        params["key_id"] = key_id
    if column.hash_column:
        also += f", {column.hash_column} = :hashed"
        params["hashed"] = change.hashed
    return await tx.execute(
        f"UPDATE {column.table} SET {column.column} = :sealed{also}"
        f" WHERE {this} AND {column.column} = :before",
        params,
    )


async def _replace_together(
    tx: Tx, column: SealedColumn, changes: Sequence[Renewed], key_id: str
) -> int:
    """In one statement, so one round trip."""
    table = column.table
    found = key_table([*column.key, "value_before", "value_now", "value_hash"], tx.dialect)
    this = " AND ".join(f"{table}.{name} = keys.{name}" for name in column.key)
    params = key_params(
        [
            (*(each.row[name] for name in column.key), each.row["sealed"], each.sealed, each.hashed)
            for each in changes
        ],
        tx.dialect,
    )
    also = ""
    if column.key_id_column:
        also += f", {column.key_id_column} = :key_id"
        params["key_id"] = key_id
    if column.hash_column:
        also += f", {column.hash_column} = keys.value_hash"
    return await tx.execute(
        f"UPDATE {table} SET {column.column} = keys.value_now{also} FROM {found}"
        f" WHERE {this} AND {table}.{column.column} = keys.value_before",
        params,
    )


async def _unnamed(tx: Tx, column: SealedColumn) -> list[Row]:
    """Some values of earlier releases, of the first and the last rows."""
    read = ", ".join(dict.fromkeys([*column.key, *column.bound_to]))
    found: dict[tuple[object, ...], Row] = {}
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{name} {direction}" for name in column.key)
        rows = await tx.fetch_all(
            f"SELECT {read}, {column.column} AS sealed FROM {column.table}"
            f" WHERE substr({column.column}, 1, {len(UNNAMED)}) = :unnamed"
            f" ORDER BY {order} LIMIT :most",
            {"unnamed": UNNAMED, "most": SAMPLE},
        )
        found |= {tuple(row[name] for name in column.key): row for row in rows}
    return list(found.values())


def _is_readable(row: Row, column: SealedColumn, secrets: SecretBox) -> bool:
    try:
        secrets.decrypt(row["sealed"], column.row_of(row))
    except DecryptionError:
        return False
    return True


def _is_encrypted(column: SealedColumn) -> str:
    return f"substr({column.column}, 1, 1) = '{ENCRYPTED}'"
