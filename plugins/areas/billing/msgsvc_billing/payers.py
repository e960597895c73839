"""The account that pays for a project: its owner."""

from collections.abc import Mapping, Sequence

from msgsvc_billing import store
from msgsvc_billing.models import Payer
from msgsvc_core.db import Tx
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.projects import Projects


class Payers:
    """Finds them, also before their first charge: billing months start with the account."""

    def __init__(self, *, projects: Projects, accounts: AccountDirectory) -> None:
        self._projects = projects
        self._accounts = accounts

    async def find(self, tx: Tx, project_id: str) -> Payer | None:
        """None for a project that nobody pays for."""
        return (await self.find_many(tx, [project_id])).get(project_id)

    async def find_many(self, tx: Tx, project_ids: Sequence[str]) -> Mapping[str, Payer]:
        """By project; those that nobody pays for are left out."""
        owners = await self._projects.find_owners(tx, project_ids)
        states = await store.find_many(tx, {*owners.values()}) if owners else {}
        uncharged = {*owners.values()} - states.keys()
        accounts = await self._accounts.find_many(tx, uncharged) if uncharged else {}
        payers: dict[str, Payer] = {}
        for project_id, owner_id in owners.items():
            if (state := states.get(owner_id)) is not None:
                payers[project_id] = Payer(owner_id, state.anchor_ms, state)
            elif (account := accounts.get(owner_id)) is not None:
                payers[project_id] = Payer(owner_id, account.created_at_ms, None)
        return payers
