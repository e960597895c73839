"""What a statement of a migration does to others: which tables it locks, how much it reads or
writes, and whether processes of the earlier release can live with it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_core.db.sql import Dialect

#: What takes time: nothing, reading a table, building an index, writing a table anew, changing rows.
Work = Literal["none", "scan", "index", "rewrite", "rows", "unknown"]

#: Locks of PostgreSQL's tables, the weakest first, and who waits meanwhile.
WAITING = {
    "none": "nobody waits",
    "ROW EXCLUSIVE": "writers of the same rows wait",
    "SHARE UPDATE EXCLUSIVE": "nobody waits",
    "SHARE": "writers wait",
    "SHARE ROW EXCLUSIVE": "writers wait",
    "ACCESS EXCLUSIVE": "readers and writers wait",
    # SQLite has one lock for all tables.
    "file": "writers of all tables wait",
    "unknown": "not known",
}
_STRENGTH = list(WAITING)


@dataclass(frozen=True, slots=True)
class Lock:
    table: str
    mode: str


@dataclass(frozen=True, slots=True)
class Statement:
    """`table` is the one whose size decides how long the `work` takes. `objections` are the reasons why it
    does not belong into a step that expands."""

    sql: str
    locks: tuple[Lock, ...] = ()
    work: Work = "none"
    table: str | None = None
    objections: tuple[str, ...] = ()

    @property
    def is_index(self) -> bool:
        return _CREATE_INDEX.match(_plain(self.sql)) is not None


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a matching statement does. The group `table` of the pattern is locked."""

    pattern: re.Pattern[str]
    lock: str
    work: Work
    objection: str | None = None


def _rule(pattern: str, lock: str, work: Work = "none", objection: str | None = None) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), lock, work, objection)


_TABLE = r"(?:ONLY )?(?:public\.)?(?P<table>\w+)"
_ALTER = rf"^ALTER TABLE (?:IF EXISTS )?{_TABLE} (?:.*, ?)?"
_REMOVED = "removes what the earlier release may use"
_RENAMED = "renames what the earlier release may use"
_REFUSED = "may refuse rows that the earlier release writes"
_BLOCKED = "blocks writers while it is built: postgresql_concurrently=True, if_not_exists=True"
_SLOW = (
    "locks many rows, and the earlier release goes on writing others: fill them when contracting"
)

#: The first that matches decides, but all that match an ALTER TABLE count, which may have several actions.
_RULES = (
    _rule(rf"^DROP TABLE (?:IF EXISTS )?{_TABLE}", "ACCESS EXCLUSIVE", "none", _REMOVED),
    _rule(rf"^TRUNCATE (?:TABLE )?{_TABLE}", "ACCESS EXCLUSIVE", "none", _REMOVED),
    _rule(rf"{_ALTER}DROP (?:COLUMN )?(?!CONSTRAINT\b)\w+", "ACCESS EXCLUSIVE", "none", _REMOVED),
    _rule(rf"{_ALTER}DROP CONSTRAINT", "ACCESS EXCLUSIVE", "none", _REMOVED),
    _rule(rf"{_ALTER}RENAME", "ACCESS EXCLUSIVE", "none", _RENAMED),
    _rule(rf"{_ALTER}SET SCHEMA", "ACCESS EXCLUSIVE", "none", _RENAMED),
    _rule(
        rf"{_ALTER}ALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE",
        "ACCESS EXCLUSIVE",
        "rewrite",
        "changes a type that the earlier release uses",
    ),
    _rule(rf"{_ALTER}ALTER (?:COLUMN )?\w+ SET NOT NULL", "ACCESS EXCLUSIVE", "scan", _REFUSED),
    _rule(rf"{_ALTER}ALTER (?:COLUMN )?\w+ DROP DEFAULT", "ACCESS EXCLUSIVE", "none", _REFUSED),
    _rule(rf"{_ALTER}ALTER (?:COLUMN )?\w+ (?:SET DEFAULT|DROP NOT NULL)", "ACCESS EXCLUSIVE"),
    _rule(rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?(?:UNIQUE|PRIMARY KEY) USING", "ACCESS EXCLUSIVE"),
    _rule(
        rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?(?:UNIQUE|PRIMARY KEY|EXCLUDE)(?! USING)",
        "ACCESS EXCLUSIVE",
        "index",
        _REFUSED,
    ),
    _rule(
        rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?FOREIGN KEY(?!.* NOT VALID)",
        "SHARE ROW EXCLUSIVE",
        "scan",
        _REFUSED,
    ),
    _rule(
        rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?FOREIGN KEY.* NOT VALID",
        "SHARE ROW EXCLUSIVE",
        "none",
        _REFUSED,
    ),
    _rule(
        rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?CHECK(?!.* NOT VALID)",
        "ACCESS EXCLUSIVE",
        "scan",
        _REFUSED,
    ),
    _rule(
        rf"{_ALTER}ADD (?:CONSTRAINT \w+ )?CHECK.* NOT VALID", "ACCESS EXCLUSIVE", "none", _REFUSED
    ),
    _rule(rf"{_ALTER}VALIDATE CONSTRAINT", "SHARE UPDATE EXCLUSIVE", "scan"),
    _rule(rf"{_ALTER}DETACH PARTITION", "ACCESS EXCLUSIVE", "none", _REMOVED),
    _rule(rf"{_ALTER}ATTACH PARTITION", "SHARE UPDATE EXCLUSIVE", "scan"),
    _rule(rf"{_ALTER}(?:RE)?SET \(", "SHARE UPDATE EXCLUSIVE"),
    _rule(rf"^DELETE FROM {_TABLE}", "ROW EXCLUSIVE", "rows", _REMOVED),
    _rule(rf"^UPDATE {_TABLE}", "ROW EXCLUSIVE", "rows", _SLOW),
    _rule(rf"^INSERT INTO {_TABLE}", "ROW EXCLUSIVE", "rows"),
    _rule(rf"^CREATE TRIGGER .*? ON {_TABLE}", "SHARE ROW EXCLUSIVE"),
)
_ADD_COLUMN = re.compile(
    rf"{_ALTER}ADD (?!CONSTRAINT\b|UNIQUE\b|PRIMARY\b|FOREIGN\b|CHECK\b|EXCLUDE\b)(?:COLUMN )?"
    r"(?:IF NOT EXISTS )?(?P<column>\w+)(?P<rest>.*)",
    re.IGNORECASE,
)
_CREATE_TABLE = re.compile(
    rf"^CREATE (?:UNLOGGED |TEMP(?:ORARY)? )?TABLE (?:IF NOT EXISTS )?{_TABLE}", re.IGNORECASE
)
_CREATE_INDEX = re.compile(
    r"^CREATE (?P<unique>UNIQUE )?INDEX (?P<concurrently>CONCURRENTLY )?(?:IF NOT EXISTS )?\w+"
    rf" ON {_TABLE}(?: USING \w+)? ?\((?P<columns>.*)",
    re.IGNORECASE,
)
_DROP_INDEX = re.compile(r"^DROP INDEX (?P<concurrently>CONCURRENTLY )?", re.IGNORECASE)
_REFERENCES = re.compile(r"\bREFERENCES (?:public\.)?(\w+)", re.IGNORECASE)
#: A default that PostgreSQL computes for each row, or a column that it stores: both write the table anew.
_COMPUTED = re.compile(r"\bDEFAULT [^,]*\(|\bGENERATED\b|\b(?:BIG|SMALL)?SERIAL\b", re.IGNORECASE)
_HARMLESS = re.compile(
    r"^(?:SELECT|SET|RESET|ANALYZE|COMMENT ON|CREATE (?:OR REPLACE )?(?:VIEW|FUNCTION|TYPE|SEQUENCE|SCHEMA)"
    r"|CREATE EXTENSION|PRAGMA)\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class StatementReader:
    """Reads the statements of one or more steps in order: nobody uses a table that an earlier one has
    created."""

    dialect: Dialect
    _new_tables: set[str] = field(default_factory=set)
    _new_columns: set[str] = field(default_factory=set)

    def read(self, sql: str) -> Statement:
        read = self._read(sql, _plain(sql))
        if self.dialect == "postgresql":
            return read
        locks = () if _HARMLESS.match(_plain(sql)) else (Lock("*", "file"),)
        dropped = re.match(rf"{_ALTER}DROP (?:COLUMN )?\w+", _plain(sql), re.IGNORECASE)
        # SQLite writes a table anew to drop a column, and has no CONCURRENTLY: writers wait in any case.
        objections = tuple(each for each in read.objections if each != _BLOCKED)
        work = "rewrite" if dropped and read.work == "none" else read.work
        return Statement(sql, locks, work, read.table, objections)

    def _read(self, sql: str, plain: str) -> Statement:
        if found := _CREATE_TABLE.match(plain):
            self._new_tables.add(found["table"])
            return Statement(sql, self._referred(plain))
        if found := _CREATE_INDEX.match(plain):
            return self._read_index(sql, found)
        if found := _DROP_INDEX.match(plain):
            mode = "SHARE UPDATE EXCLUSIVE" if found["concurrently"] else "ACCESS EXCLUSIVE"
            return Statement(sql, (Lock("its table", mode),), objections=(_REMOVED,))
        if _HARMLESS.match(plain):
            return Statement(sql)
        parts = list(self._parts(sql, plain))
        if not parts:
            return Statement(
                sql,
                (Lock("?", "unknown"),),
                "unknown",
                objections=("it is not known what it does",),
            )
        locks = {lock.table: lock for part in sorted(parts, key=_strength) for lock in part.locks}
        hardest = max(parts, key=lambda part: _WEIGHTS[part.work])
        return Statement(
            sql,
            tuple(locks.values()),
            hardest.work,
            hardest.table,
            tuple(dict.fromkeys(reason for part in parts for reason in part.objections)),
        )

    def _read_index(self, sql: str, found: re.Match[str]) -> Statement:
        table = found["table"]
        if table in self._new_tables:
            return Statement(sql)
        mode = "SHARE UPDATE EXCLUSIVE" if found["concurrently"] else "SHARE"
        objections = [] if found["concurrently"] else [_BLOCKED]
        columns = {f"{table}.{name}" for name in re.findall(r"\w+", found["columns"])}
        if found["unique"] and not columns & self._new_columns:
            objections.append(_REFUSED)
        return Statement(sql, (Lock(table, mode),), "index", table, tuple(objections))

    def _parts(self, sql: str, plain: str) -> Iterator[Statement]:
        """What each action of the statement does."""
        if found := _ADD_COLUMN.match(plain):
            yield self._read_column(sql, found)
        for rule in _RULES:
            if not (found := rule.pattern.match(plain)):
                continue
            table = found["table"]
            if table in self._new_tables:
                yield Statement(sql)
                continue
            objections = (rule.objection,) if rule.objection else ()
            locks = (Lock(table, rule.lock), *self._referred(plain))
            yield Statement(sql, locks, rule.work, table, objections)

    def _read_column(self, sql: str, found: re.Match[str]) -> Statement:
        table, rest = found["table"], found["rest"]
        if table in self._new_tables:
            return Statement(sql)
        self._new_columns.add(f"{table}.{found['column']}")
        objections = list[str]()
        has_default = re.search(r"\bDEFAULT\b|\bGENERATED\b", rest, re.IGNORECASE)
        if re.search(r"\bNOT NULL\b", rest, re.IGNORECASE) and not has_default:
            objections.append("NOT NULL without a default: the earlier release does not write it")
        is_computed = _COMPUTED.search(rest) is not None
        if is_computed:
            objections.append("writes the table anew while nobody can use it")
        locks = (Lock(table, "ACCESS EXCLUSIVE"), *self._referred(rest))
        return Statement(sql, locks, "rewrite" if is_computed else "none", table, tuple(objections))

    def _referred(self, plain: str) -> tuple[Lock, ...]:
        """Foreign keys lock the tables that they refer to."""
        tables = dict.fromkeys(_REFERENCES.findall(plain))
        return tuple(
            Lock(table, "SHARE ROW EXCLUSIVE") for table in tables if table not in self._new_tables
        )


_WEIGHTS: dict[Work, int] = {
    "none": 0,
    "scan": 1,
    "rows": 2,
    "index": 3,
    "rewrite": 4,
    "unknown": 5,
}


def _strength(statement: Statement) -> int:
    return max((_STRENGTH.index(lock.mode) for lock in statement.locks), default=0)


def _plain(sql: str) -> str:
    """In one line, without comments, literals and quotes."""
    sql = re.sub(r"--[^\n]*", "", re.sub(r"'(?:[^']|'')*'", "''", sql))
    return re.sub(r"\s+", " ", sql.replace('"', "")).strip().rstrip(";")
