"""What statements of migrations lock, and which of them do not belong into a step that expands."""

import pytest

from msgsvc_core.db.ddl import Lock, StatementReader


@pytest.mark.parametrize(
    ("sql", "mode", "work", "objection"),
    [
        ("ALTER TABLE things ADD COLUMN name TEXT", "ACCESS EXCLUSIVE", "none", None),
        (
            "ALTER TABLE things ADD COLUMN name TEXT DEFAULT '' NOT NULL",
            "ACCESS EXCLUSIVE",
            "none",
            None,
        ),
        (
            "ALTER TABLE things ADD COLUMN name TEXT NOT NULL",
            "ACCESS EXCLUSIVE",
            "none",
            "NOT NULL without a default",
        ),
        (
            "ALTER TABLE things ADD COLUMN at TIMESTAMPTZ DEFAULT clock_timestamp()",
            "ACCESS EXCLUSIVE",
            "rewrite",
            "writes the table anew",
        ),
        (
            "ALTER TABLE things ADD COLUMN id BIGSERIAL",
            "ACCESS EXCLUSIVE",
            "rewrite",
            "writes the table anew",
        ),
        ("ALTER TABLE things DROP COLUMN name", "ACCESS EXCLUSIVE", "none", "removes"),
        ("ALTER TABLE things DROP CONSTRAINT name_key", "ACCESS EXCLUSIVE", "none", "removes"),
        ("ALTER TABLE things RENAME name TO title", "ACCESS EXCLUSIVE", "none", "renames"),
        ("ALTER TABLE things RENAME TO items", "ACCESS EXCLUSIVE", "none", "renames"),
        (
            "ALTER TABLE things ALTER COLUMN name TYPE BIGINT USING name::bigint",
            "ACCESS EXCLUSIVE",
            "rewrite",
            "changes a type",
        ),
        (
            "ALTER TABLE things ALTER COLUMN name SET NOT NULL",
            "ACCESS EXCLUSIVE",
            "scan",
            "may refuse rows",
        ),
        ("ALTER TABLE things ALTER COLUMN name DROP NOT NULL", "ACCESS EXCLUSIVE", "none", None),
        ("ALTER TABLE things ALTER COLUMN name SET DEFAULT 1", "ACCESS EXCLUSIVE", "none", None),
        (
            "ALTER TABLE things ADD CONSTRAINT u UNIQUE (name)",
            "ACCESS EXCLUSIVE",
            "index",
            "may refuse rows",
        ),
        (
            "ALTER TABLE things ADD CONSTRAINT c CHECK (name <> '')",
            "ACCESS EXCLUSIVE",
            "scan",
            "may refuse rows",
        ),
        ("ALTER TABLE things VALIDATE CONSTRAINT c", "SHARE UPDATE EXCLUSIVE", "scan", None),
        ("ALTER TABLE things DETACH PARTITION old", "ACCESS EXCLUSIVE", "none", "removes"),
        ("ALTER TABLE things SET (fillfactor = 50)", "SHARE UPDATE EXCLUSIVE", "none", None),
        ("CREATE INDEX i ON things (name)", "SHARE", "index", "blocks writers"),
        (
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON things USING gin (name)",
            "SHARE UPDATE EXCLUSIVE",
            "index",
            None,
        ),
        (
            "CREATE UNIQUE INDEX CONCURRENTLY i ON things (name)",
            "SHARE UPDATE EXCLUSIVE",
            "index",
            "may refuse rows",
        ),
        ("DROP TABLE things", "ACCESS EXCLUSIVE", "none", "removes"),
        ("TRUNCATE things", "ACCESS EXCLUSIVE", "none", "removes"),
        ("UPDATE things SET name = 'DROP TABLE x'", "ROW EXCLUSIVE", "rows", "locks many rows"),
        ("DELETE FROM things WHERE name = ''", "ROW EXCLUSIVE", "rows", "removes"),
        ("INSERT INTO things (name) VALUES ('a')", "ROW EXCLUSIVE", "rows", None),
        ("CREATE TRIGGER t BEFORE INSERT ON things", "SHARE ROW EXCLUSIVE", "none", None),
    ],
)
def test_what_a_statement_does_on_postgresql(
    sql: str, mode: str, work: str, objection: str | None
) -> None:
    statement = StatementReader("postgresql").read(sql)

    assert statement.locks == (Lock("things", mode),)
    assert statement.work == work
    assert [reason.startswith(objection or "-") for reason in statement.objections] == (
        [True] if objection else []
    )


def test_a_foreign_key_locks_the_table_that_it_refers_to() -> None:
    statement = StatementReader("postgresql").read(
        "CREATE TABLE parts (id BIGINT PRIMARY KEY, thing BIGINT REFERENCES things (id))"
    )

    assert statement.locks == (Lock("things", "SHARE ROW EXCLUSIVE"),)
    assert statement.objections == ()


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_a_table_that_the_step_has_created_is_nobodys_yet(dialect: str) -> None:
    reader = StatementReader("postgresql" if dialect == "postgresql" else "sqlite")
    reader.read('CREATE TABLE "parts" (id BIGINT)')

    for sql in (
        "CREATE UNIQUE INDEX i ON parts (id)",
        "ALTER TABLE parts ADD COLUMN name TEXT NOT NULL",
        "ALTER TABLE parts ALTER COLUMN id SET NOT NULL",
        "UPDATE parts SET id = 1",
    ):
        statement = reader.read(sql)
        assert (statement.work, statement.objections) == ("none", ()), sql


def test_a_unique_index_of_a_new_column_refuses_no_rows_of_the_earlier_release() -> None:
    reader = StatementReader("postgresql")
    reader.read("ALTER TABLE things ADD COLUMN key TEXT")

    unique = reader.read("CREATE UNIQUE INDEX CONCURRENTLY i ON things (project_id, key)")

    assert unique.objections == ()


def test_every_action_of_a_statement_counts() -> None:
    statement = StatementReader("postgresql").read(
        "ALTER TABLE things ADD COLUMN a TEXT, DROP COLUMN b, ALTER COLUMN c TYPE BIGINT"
    )

    assert statement.work == "rewrite"
    assert len(statement.objections) == 2


@pytest.mark.parametrize("sql", ["DO $$ BEGIN PERFORM 1; END $$", "LOCK TABLE things", "CALL f()"])
def test_what_is_not_understood_is_objected_to(sql: str) -> None:
    statement = StatementReader("postgresql").read(sql)

    assert statement.work == "unknown"
    assert statement.objections == ("it is not known what it does",)


@pytest.mark.parametrize(
    ("sql", "work", "objections"),
    [
        ("ALTER TABLE things ADD COLUMN name TEXT", "none", 0),
        ("ALTER TABLE things DROP COLUMN name", "rewrite", 1),
        ("CREATE INDEX i ON things (name)", "index", 0),
        ("CREATE UNIQUE INDEX i ON things (name)", "index", 1),
    ],
)
def test_a_statement_on_sqlite_locks_the_file(sql: str, work: str, objections: int) -> None:
    statement = StatementReader("sqlite").read(sql)

    assert statement.locks == (Lock("*", "file"),)
    assert statement.work == work
    assert len(statement.objections) == objections
