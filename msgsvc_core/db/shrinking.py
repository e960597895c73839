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

#: Free pages that stay, 4 MiB, or a sixteenth of the file if that is more: rows of the next hours fill them,
#: and the file would grow again.
SPARE_PAGES, SPARE_SHARE = 1000, 16


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
        return max(0, self.free_pages - max(SPARE_PAGES, self.pages // SPARE_SHARE))


async def read_space(tx: Tx) -> FileSpace:
    """How full the SQLite file is."""
    return FileSpace(
        page_bytes=await tx.fetch_val("PRAGMA page_size"),
        pages=await tx.fetch_val("PRAGMA page_count"),
        free_pages=await tx.fetch_val("PRAGMA freelist_count"),
        can_shrink=await tx.fetch_val("PRAGMA auto_vacuum") == INCREMENTAL,
    )


async def shrink_some(db: Database, limit: int) -> tuple[int, float]:
    """Cuts up to `limit` free pages off the file; returns how many, and the seconds for which others waited.

    None of a file made by an earlier release, and none on PostgreSQL.
    """
    if db.dialect != "sqlite":
        return 0, 0.0
    async with db.read() as tx:
        space = await read_space(tx)
    count = min(limit, space.excess_pages) if space.can_shrink else 0
    return count, await db.cut_free_pages(count) if count else 0.0
