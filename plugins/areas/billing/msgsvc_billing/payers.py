"""Who pays for a project: the account that owns it."""

from collections.abc import Mapping, Sequence

from msgsvc_billing import store
from msgsvc_billing.models import Payer
from msgsvc_core.db import Tx
from msgsvc_core.plugins.accounts import AccountDirectory


class Payers:
    """Finds them, also those who were never charged yet: their months begin with their account."""

    def __init__(self, *, accounts: AccountDirectory) -> None:
        self._accounts = accounts

    async def find(self, tx: Tx, project_id: str) -> Payer | None:
        """None for a project that nobody pays for."""
        return (await self.find_many(tx, [project_id])).get(project_id)

    async def find_many(self, tx: Tx, project_ids: Sequence[str]) -> Mapping[str, Payer]:
        """By project; those that nobody pays for are left out."""
        owners = await store.find_owners(tx, project_ids)
        uncharged = {owner_id for owner_id, state in owners.values() if state is None}
        accounts = await self._accounts.find_many(tx, uncharged) if uncharged else {}
        payers: dict[str, Payer] = {}
        for project_id, (owner_id, state) in owners.items():
            if state is not None:
                payers[project_id] = Payer(owner_id, state.anchor_ms, state)
            elif (account := accounts.get(owner_id)) is not None:
                payers[project_id] = Payer(owner_id, account.created_at_ms, None)
        return payers
