"""What `TransactionBatcher` promises: one transaction for many callers, and each its own outcome."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from msgsvc_core.db import Database, TransactionBatcher, Tx
from msgsvc_core.db.errors import Deadlock
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.work import PATIENCE_S, until

Backend = SQLiteDatabases | PostgresDatabases

#: A name whose request is refused, and one at which the work fails.
REFUSED, BROKEN = "refused", "broken"


@pytest.fixture
async def db(backend: Backend) -> AsyncIterator[Database]:
    url = await backend.empty()
    database = Database(url, pool_size=5)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE things (name TEXT PRIMARY KEY, taken INTEGER)")
        await tx.insert_many("things", [{"name": f"n{n}", "taken": 0} for n in range(200)])
    yield database
    await database.disconnect()
    await backend.give_back(url)


class Things:
    """Takes things, each by one, and keeps what each of its transactions was asked for."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.batches: list[list[str]] = []
        self.begun = asyncio.Event()
        self.together = TransactionBatcher(db, self._take)

    async def _take(self, tx: Tx, names: Sequence[str]) -> list[str | Exception]:
        self.batches.append(list(names))
        self.begun.set()
        outcomes: list[str | Exception] = []
        for name in names:
            if name == BROKEN:
                raise ZeroDivisionError
            if name == REFUSED:
                outcomes.append(ValueError(name))
                continue
            taken = await tx.execute(
                "UPDATE things SET taken = 1 WHERE name = :name AND taken = 0", {"name": name}
            )
            outcomes.append(name.upper() if taken else KeyError(name))
        return outcomes

    async def taken(self) -> set[str]:
        async with self._db.read() as tx:
            rows = await tx.fetch_all("SELECT name FROM things WHERE taken = 1")
        return {row["name"] for row in rows}


@pytest.fixture
def things(db: Database) -> Things:
    return Things(db)


async def test_who_comes_at_once_shares_a_transaction(things: Things) -> None:
    names = [f"n{number}" for number in range(100)]

    outcomes = await asyncio.gather(*(things.together.submit(name) for name in names))

    assert outcomes == [name.upper() for name in names]
    assert things.batches == [names]
    assert await things.taken() == set(names)


async def test_of_many_who_want_the_same_one_has_it(things: Things) -> None:
    outcomes = await asyncio.gather(
        *(things.together.submit("n1") for _ in range(50)), return_exceptions=True
    )

    assert outcomes.count("N1") == 1
    assert sum(isinstance(outcome, KeyError) for outcome in outcomes) == 49


async def test_who_is_refused_is_refused_alone_and_undoes_nothing(things: Things) -> None:
    outcomes = await asyncio.gather(
        things.together.submit("n1"),
        things.together.submit(REFUSED),
        things.together.submit("n2"),
        return_exceptions=True,
    )

    assert (outcomes[0], outcomes[2]) == ("N1", "N2")
    assert isinstance(outcomes[1], ValueError)
    assert len(things.batches) == 1
    assert await things.taken() == {"n1", "n2"}


async def test_a_request_at_fault_fails_alone(things: Things) -> None:
    outcomes = await asyncio.gather(
        things.together.submit("n1"),
        things.together.submit(BROKEN),
        things.together.submit("n2"),
        return_exceptions=True,
    )

    assert (outcomes[0], outcomes[2]) == ("N1", "N2")
    assert isinstance(outcomes[1], ZeroDivisionError)
    assert await things.taken() == {"n1", "n2"}


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_row_that_is_held_holds_up_who_wants_it_alone(db: Database, things: Things) -> None:
    """On SQLite, where one transaction writes at a time, there is no such row."""
    async with db.transaction() as tx:
        await tx.execute("UPDATE things SET taken = taken WHERE name = 'n1'")
        wants_it = asyncio.create_task(things.together.submit("n1"))
        other = asyncio.create_task(things.together.submit("n2"))
        async with asyncio.timeout(PATIENCE_S):
            assert await other == "N2"
            assert await things.together.submit("n3") == "N3"
        assert not wants_it.done()

    assert await wants_it == "N1"


async def test_who_gives_up_before_the_transaction_begins_takes_the_request_along(
    things: Things,
) -> None:
    first = asyncio.create_task(things.together.submit("n1"))
    await things.begun.wait()
    second = asyncio.create_task(things.together.submit("n2"))
    await asyncio.sleep(0)
    second.cancel()

    await asyncio.gather(first, second, return_exceptions=True)
    await things.together.submit("n3")

    assert await things.taken() == {"n1", "n3"}


async def test_who_gives_up_later_does_not_undo_it(things: Things) -> None:
    first = asyncio.create_task(things.together.submit("n1"))
    await things.begun.wait()
    first.cancel()

    await asyncio.gather(first, return_exceptions=True)
    await things.together.submit("n2")

    async def both() -> bool:
        return await things.taken() == {"n1", "n2"}

    # On PostgreSQL the second has a connection of its own, and may be done first.
    await until(both)


async def test_in_a_transaction_of_ones_own_it_is_undone_with_that(
    db: Database, things: Things
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            assert await things.together.submit("n1", tx) == "N1"
            raise ZeroDivisionError

    assert await things.taken() == set()


async def test_an_error_in_a_transaction_of_ones_own_is_raised_there(
    db: Database, things: Things
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(ValueError, match=REFUSED):
            await things.together.submit(REFUSED, tx)


async def test_work_that_answers_too_few_leaves_nobody_waiting(db: Database) -> None:
    async def forget(_tx: Tx, names: Sequence[str]) -> list[str]:
        return list(names)[1:]

    together = TransactionBatcher[str, str](db, forget)
    async with asyncio.timeout(PATIENCE_S):
        ended = await asyncio.gather(
            *(together.submit(f"n{n}") for n in range(3)), return_exceptions=True
        )

    assert [type(error) for error in ended] == [RuntimeError] * 3


async def test_a_deadlock_of_a_batch_has_each_done_by_itself(db: Database) -> None:
    tries: list[list[str]] = []

    async def give_up_twice(_tx: Tx, names: Sequence[str]) -> list[str | Exception]:
        tries.append(list(names))
        if len(tries) < 3:
            raise Deadlock("deadlock detected")
        return [name.upper() for name in names]

    together = TransactionBatcher(db, give_up_twice)
    outcomes = await asyncio.gather(*(together.submit(name) for name in ("a", "b", "c")))

    assert outcomes == ["A", "B", "C"]
    assert tries[0] == ["a", "b", "c"]
    # One of the three was given up once more, and begun anew.
    assert sorted({name for names in tries[1:] for name in names}) == ["a", "b", "c"]
    assert [len(names) for names in tries[1:]] == [1, 1, 1, 1]
