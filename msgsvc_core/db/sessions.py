"""Sessions of the service on PostgreSQL. Their name tells which schema their process knows, so that a
migration can tell the processes of other releases from those of its own."""

import hashlib
from collections.abc import Sequence

from msgsvc_core.db.revisions import MigrationSource
from msgsvc_core.db.schema import steps_of, this_release
from msgsvc_core.db.tx import Tx

#: Key of the advisory lock that a contracting migration holds, and a process that starts while it compares
#: the schema: one of them sees the other. An arbitrary constant.
CONTRACT_LOCK = 7_136_742_003

#: The sessions of processes whose schema is another than that of `:name`. Early releases put no schema there.
OTHER_SESSIONS = (
    "SELECT DISTINCT application_name || coalesce(' from ' || host(client_addr), '') AS session"
    " FROM pg_stat_activity WHERE datname = current_database() AND application_name <> :name"
    " AND (application_name = 'msgsvc' OR application_name LIKE 'msgsvc %') ORDER BY 1"
)


def session_name(sources: Sequence[MigrationSource]) -> str:
    """The name of a process' sessions in `pg_stat_activity`, e.g. `msgsvc 0.1.0 3f9a1c52`: its release, and a
    digest of the newest revision of each owner."""
    newest = [steps[-1].name for source in sources if (steps := steps_of(source))]
    digest = hashlib.sha256("\n".join(sorted(newest)).encode()).hexdigest()
    return f"msgsvc {this_release()} {digest[:8]}"


async def hold_off_contract(tx: Tx) -> None:
    """Waits for a contracting migration to end; the next can't begin before the end of the transaction."""
    await tx.execute(f"SELECT pg_advisory_xact_lock_shared({CONTRACT_LOCK})")
