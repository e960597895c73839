"""Returns free pages of a SQLite file to the file system, a few at a time.

Deleted rows leave free pages, which later rows use. A file whose `auto_vacuum` is `INCREMENTAL`, as that of
every file made by this release, can also be cut shorter: pages from its end are moved into free places.
"""

from dataclasses import dataclass

from msgsvc_core.db.database import Database
from msgsvc_core.db.tx import Tx

#: SQLite's value of `PRAGMA auto_vacuum` for `INCREMENTAL`.
INCREMENTAL = 2

#: Free pages of the first step, and the most of any. SQLite looks for each in its list of free pages, so
#: that in a long list a page takes longer: half a millisecond of the processor's time among 200,000.
LEAST_PAGES, MOST_PAGES = 10, 1000

#: Free pages that stay: a sixteenth of the file, at least 4 MiB and at most 80. Rows of the next hours fill
#: them, and the file would grow again.
SPARE_SHARE, LEAST_SPARE, MOST_SPARE = 16, 1000, 20_000


@dataclass(frozen=True, slots=True)
class FileSpace:
    """The pages of a SQLite file, those of them that hold nothing, and whether it can be cut shorter."""

    page_bytes: int
    pages: int
    free_pages: int
    can_shrink: bool

    @property
    def excess_pages(self) -> int:
        """Free pages beyond those that are kept for new rows."""
        spare = min(MOST_SPARE, max(LEAST_SPARE, self.pages // SPARE_SHARE))
        return max(0, self.free_pages - spare)


async def read_space(tx: Tx) -> FileSpace:
    """How full the SQLite file is."""
    return FileSpace(
        page_bytes=await tx.fetch_val("PRAGMA page_size"),
        pages=await tx.fetch_val("PRAGMA page_count"),
        free_pages=await tx.fetch_val("PRAGMA freelist_count"),
        can_shrink=await tx.fetch_val("PRAGMA auto_vacuum") == INCREMENTAL,
    )


async def count_excess(db: Database) -> int:
    """Free pages that can be cut off the file."""
    if db.dialect != "sqlite":
        return 0
    async with db.read() as tx:
        space = await read_space(tx)
    return space.excess_pages if space.can_shrink else 0


async def shrink_some(db: Database, limit: int) -> tuple[int, float]:
    """Cuts up to `limit` free pages off the file; returns how many, and the seconds for which others waited.

    None of a file made by an earlier release, and none on PostgreSQL.
    """
    count = min(limit, await count_excess(db))
    return count, await db.cut_free_pages(count) if count else 0.0
