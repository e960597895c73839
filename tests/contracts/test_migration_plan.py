"""`msgsvc migrate --plan`: what pending migrations will lock, and for how long about."""

from pathlib import Path

import pytest

from msgsvc_core.db import CORE_MIGRATIONS, Database, MigrationSource, applied_revisions, migrate
from msgsvc_core.db.planning import BYTES_PER_S, Plan, objections, plan
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.migration_scripts import COLUMN, TABLE, Owner, Shop, as_of

INDEX = (
    'op.create_index("shop_things_id", "shop_things_1", ["id"], if_not_exists=True,'
    " postgresql_concurrently=True)\n\n\ntransactional = False"
)
TYPE = 'op.execute("ALTER TABLE shop_things_1 DROP COLUMN name")'

#: Rows of the table.
ROWS = 20_000


@pytest.fixture
def shop(tmp_path: Path) -> Owner:
    """An owner whose newer release adds a column, indexes it, and drops it again."""
    owner = Owner("shop", tmp_path / "shop")
    owner.write()
    owner.write(COLUMN)
    owner.write(INDEX)
    owner.write(TYPE, "contract")
    return owner


@pytest.fixture
async def filled(url: str, shop: Owner, tmp_path: Path) -> str:
    """A database of the earlier release, with rows."""
    await migrate(url, [as_of(shop, 1, tmp_path / "old")])
    database = Database(url)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO shop_things_1 (id) WITH RECURSIVE n (i) AS"
            f" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i FROM n"
        )
        await tx.execute("ANALYZE shop_things_1")
    await database.disconnect()
    return url


def locks(found: Plan) -> list[list[tuple[str, str]]]:
    return [
        [(lock.table, lock.mode) for planned in step.statements for lock in planned.statement.locks]
        for step in found.steps
    ]


async def test_steps_are_told_with_their_locks_and_nothing_is_changed(
    filled: str, shop: Owner
) -> None:
    found = await plan(filled, [shop.source])

    assert [each.step.name for each in found.steps] == [
        "shop:shop_0002",
        "shop:shop_0003",
        "shop:shop_0004",
    ]
    assert locks(found) == (
        [[("*", "file")]] * 3
        if filled.startswith("sqlite")
        else [
            [("shop_things_1", "ACCESS EXCLUSIVE")],
            [("shop_things_1", "SHARE UPDATE EXCLUSIVE")],
            [("shop_things_1", "ACCESS EXCLUSIVE")],
        ]
    )
    assert await applied_revisions(filled, [shop.source]) == {"shop": "shop_0001"}


async def test_times_are_estimated_by_the_size_of_the_table(filled: str, shop: Owner) -> None:
    found = await plan(filled, [shop.source], "expand")
    [column], [index] = [each.statements for each in found.steps]

    assert column.seconds == 0
    assert index.size is not None
    assert index.size.rows == ROWS
    assert index.seconds == index.size.bytes / BYTES_PER_S["index"]
    assert index.size.bytes > ROWS * 20


async def test_a_new_owner_creates_what_nobody_uses(url: str) -> None:
    steps = (await plan(url, [CORE_MIGRATIONS])).steps

    assert len(steps[0].statements) > 50
    assert all(step.creates and step.unread is None for step in steps)
    assert all(planned.seconds == 0 for step in steps for planned in step.statements)


async def test_an_up_to_date_database_has_no_plan(url: str, shop: Owner) -> None:
    await migrate(url, [shop.source])

    assert (await plan(url, [shop.source])).steps == ()


async def test_a_step_that_looks_into_the_database_is_told_as_far_as_it_is_known(
    filled: str, shop: Owner
) -> None:
    shop.rewrite(
        f'{COLUMN.replace("name", "title")}\n    op.get_bind().exec_driver_sql("SELECT 1").scalar()'
    )

    *_, step = (await plan(filled, [shop.source])).steps

    assert [each.statement.table for each in step.statements] == ["shop_things_1"]
    assert "decides by what it finds" in str(step.unread)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_processes_that_hold_up_the_second_half_are_named(
    url: str, make_service: ServiceFactory, shop: Owner, tmp_path: Path
) -> None:
    old = as_of(shop, 1, tmp_path / "old")
    await migrate(url, [CORE_MIGRATIONS, old])
    service = await make_service(database_url=url, extra_plugins=[("shop", Shop(old))])
    sources = [CORE_MIGRATIONS, shop.source]

    [other] = (await plan(url, sources)).others

    assert other.startswith("msgsvc 0")
    assert (await plan(url, service.migrations)).others == ()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_sound_owner_has_no_objections(shop: Owner, dialect: str) -> None:
    assert list(objections(shop.source, "sqlite" if dialect == "sqlite" else "postgresql")) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (TYPE, "removes"),
        (INDEX.replace(" postgresql_concurrently=True", ""), "blocks writers"),
        (f"{TABLE}\n\n\ntransactional = False", "only build indexes"),
        ('op.get_bind().exec_driver_sql("SELECT 1")', "decides by what it finds"),
        (COLUMN.replace("sa.Text", "sa.Text, nullable=False"), "NOT NULL without a default"),
    ],
)
def test_what_does_not_belong_into_the_first_half_is_objected_to(
    shop: Owner, body: str, reason: str
) -> None:
    shop.rewrite(body)

    [objection] = objections(shop.source, "postgresql")

    assert objection.startswith("shop:shop_0004: ")
    assert reason in objection


def test_the_second_half_may_do_what_it_wants(shop: Owner) -> None:
    shop.rewrite('op.drop_table("shop_things_1")')
    script: Path = max(shop.source.folder.glob("*.py"))
    script.write_text(script.read_text().replace('phase = "expand"', 'phase = "contract"'))

    assert list(objections(MigrationSource("shop", shop.source.folder), "postgresql")) == []
