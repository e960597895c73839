"""Returns free pages of a SQLite file to the file system, a few at a time.

Deleted rows leave free pages, which later rows use. A file whose `auto_vacuum` is `INCREMENTAL`, as that of
every file made by this release, can also be cut shorter: pages from its end are moved into free places.
"""

from dataclasses import dataclass

from msgsvc_core.db.database import Database
from msgsvc_core.db.tx import Tx

#: SQLite's value of `PRAGMA auto_vacuum` for `INCREMENTAL`.
INCREMENTAL = 2

#: Free pages per transaction, for which other writers wait: at most that many pages, 2 MiB, are moved.
STEP_PAGES = 500

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


async def shrink_some(db: Database, limit: int) -> int:
    """Cuts up to `limit` free pages off the file; returns how many. None of a file made by an earlier
    release, and none on PostgreSQL."""
    if db.dialect != "sqlite":
        return 0
    async with db.read() as tx:
        space = await read_space(tx)
    count = min(limit, space.excess_pages) if space.can_shrink else 0
    if count:
        await db.cut_free_pages(count)
    return count
