"""A database without tables: transactions that commit and roll back, and recorded inserts."""

from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from msgsvc_core.db import Database, Row, Tx, WriteBatch
from msgsvc_core.db.database import PoolUsage
from msgsvc_core.db.notifications import Callback, Notifications
from msgsvc_core.db.postgres_inserts import UnnestInserts
from msgsvc_core.db.sqlite import WRITE_WAIT_S
from msgsvc_core.db.write_batch import call_all

T = TypeVar("T")

#: Rows by table, as they were inserted.
Rows = defaultdict[str, list[dict[str, Any]]]

#: The result of a statement: the rows of a query, or the number of changed rows.
Answer = int | Sequence[Mapping[str, Any]]

#: A result that depends on the statement's parameters.
Reply = Answer | Callable[[Mapping[str, Any]], Answer]


class FakeRow(dict[str, Any]):
    """A row of a result: iterating it yields its values, as with a database's row."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())


class NoTables(AssertionError):
    """A statement that needs a database. Replace the object that runs it by a fake, supply the result with
    `FakeTx(answers=...)`, or run the test on a database (fixture `make_service`)."""


class FakeTx(Tx):
    """A transaction without a database. The fakes of ports accept and ignore it.

    Inserted rows are in `rows`. Any other statement is recorded in `statements`, with its parameters. Its
    result is that of the first of `replies` whose words it contains, each time; else the next of `answers`,
    and without one it raises `NoTables`.

        FakeTx(replies={"SELECT COUNT": [{"count": 3}], "UPDATE helpdesk_tickets": 1})
    """

    def __init__(
        self,
        *,
        answers: Iterable[Answer] = (),
        replies: Mapping[str, Reply] | None = None,
        rows: Rows | None = None,
        notices: Notifications | None = None,
    ) -> None:
        super().__init__(None, "sqlite", UnnestInserts(), notices or Notifications())
        self.rows: Rows = defaultdict(list) if rows is None else rows
        self.statements: list[tuple[str, dict[str, Any]]] = []
        self.replies: dict[str, Reply] = dict(replies or {})
        self._answers = list(answers)

    async def fetch_all(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        answer = self._answer(sql, params)
        assert not isinstance(answer, int), f"a query is answered by rows: {sql}"
        return [FakeRow(row) for row in answer]

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> int:
        answer = self._answer(sql, params)
        assert isinstance(answer, int), f"a statement is answered by a number of rows: {sql}"
        return answer

    async def insert_many(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows[table] += map(dict, rows)

    async def write(self, unit: WriteBatch) -> None:
        insert(unit, self.rows)
        self._after_commit += unit.after_commit

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        known = len(self._after_commit)
        inserted = {table: len(rows) for table, rows in self.rows.items()}
        try:
            yield
        except BaseException:
            del self._after_commit[known:]
            for table, rows in self.rows.items():
                del rows[inserted.get(table, 0) :]
            raise

    def commit(self) -> None:
        """Runs the commit callbacks, once."""
        waiting, self._after_commit = self._after_commit, []
        call_all(waiting)

    def params_of(self, words: str) -> list[dict[str, Any]]:
        """The parameters of the statements that hold these words, in order."""
        return [params for text, params in self.statements if words in text]

    def _answer(self, sql: str, params: Mapping[str, Any] | None) -> Answer:
        text, given = " ".join(sql.split()), dict(params or {})
        reply = next((reply for words, reply in self.replies.items() if words in text), None)
        if reply is None:
            if not self._answers:
                raise NoTables(f"a fake transaction has no tables: {text[:120]}")
            reply = self._answers.pop(0)
        self.statements.append((text, given))
        return reply(given) if callable(reply) else reply


class FakeDatabase(Database):
    """Its transactions are `FakeTx`; `rows` contains the inserted and committed rows, by table. Statements of
    all transactions use `replies`, or `answers` in order: see `FakeTx`."""

    def __init__(
        self, *, answers: Iterable[Answer] = (), replies: Mapping[str, Reply] | None = None
    ) -> None:
        self.url = "sqlite:///nowhere"
        self.dialect = "sqlite"
        self.usage = PoolUsage(size=1)
        self.write_wait_s = WRITE_WAIT_S
        self.failed_writes = 0
        self.write_failure = None
        self.rows: Rows = defaultdict(list)
        self.statements: list[tuple[str, dict[str, Any]]] = []
        #: Number of committed transactions and batches.
        self.commits = 0
        self.answers = list(answers)
        self.replies: dict[str, Reply] = dict(replies or {})
        self._notices = Notifications()

    async def connect(self) -> None:
        """Nothing to open."""

    async def disconnect(self) -> None:
        """Nothing to close."""

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        yield self._begin()

    async def read_inline(self, query: Callable[[Tx], Awaitable[T]]) -> T:
        return await query(self._begin())

    @asynccontextmanager
    async def transaction(
        self,
        *,
        inline: bool = False,
        durable: bool = True,
        background: bool = False,
        one_statement: bool = False,
        until_s: float | None = None,
    ) -> AsyncIterator[Tx]:
        tx = self._begin()
        yield tx
        for table, rows in tx.rows.items():
            self.rows[table] += rows
        self.commits += 1
        tx.commit()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        raise AssertionError("a fake is of SQLite, on which nothing has a connection of its own")
        yield

    async def write(self, unit: WriteBatch, *, until_s: float | None = None) -> None:
        insert(unit, self.rows)
        self.commits += 1
        call_all(unit.after_commit)

    def write_deadline(self) -> float:
        return self.write_wait_s

    async def cut_free_pages(self, count: int) -> float:
        """There is no file."""
        return 0.0

    async def check_writes(self, within_s: float) -> None:
        """Writes never fail."""

    def params_of(self, words: str) -> list[dict[str, Any]]:
        """The parameters of the statements that hold these words, in order."""
        return [params for text, params in self.statements if words in text]

    def listen(self, topic: str, callback: Callback) -> None:
        self._notices.listen(topic, callback)

    def _begin(self) -> FakeTx:
        tx = FakeTx(notices=self._notices)
        # Shared by all transactions, so that a part may use several.
        tx._answers, tx.replies, tx.statements = self.answers, self.replies, self.statements
        return tx


def insert(unit: WriteBatch, rows: Rows) -> None:
    """Adds the rows of a batch, including the required one."""
    required = [] if unit.required is None else [(unit.required.shape, unit.required.values)]
    for (table, columns), values in [*unit.rows, *required]:
        rows[table].append(dict(zip(columns, values, strict=True)))
