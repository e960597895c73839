"""What PostgreSQL does by itself within minutes, done at once."""

import asyncpg

from msgsvc_core.service import Service
from tests.bench.servers import ServiceUnderTest


def vacuum(service: ServiceUnderTest) -> None:
    """Removes dead rows and gathers statistics, as autovacuum does, which a test server may have off.

    SQLite has neither dead rows nor, here, a use for statistics.
    """

    async def run(opened: Service) -> None:
        if opened.db.dialect == "postgresql":
            connection = await asyncpg.connect(opened.settings.database_url)
            try:
                # Not in a transaction, in which a VACUUM is refused.
                await connection.execute("VACUUM (ANALYZE)")
            finally:
                await connection.close()

    service.use(run)
