"""Parts of billing, built from fakes."""

from msgsvc_billing.payers import Payers
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx


async def test_who_was_never_charged_pays_from_the_day_their_account_was_made() -> None:
    core = plugin_context()
    ann = core.peers.accounts.account("ann@shop.example")
    row = {"project_id": PROJECT, "owner_id": ann.account_id, "account_id": None}
    payers = Payers(accounts=core.peers.accounts)
    payer = await payers.find(FakeTx(answers=[[row]]), PROJECT)

    assert payer is not None
    assert (payer.account_id, payer.anchor_ms) == (ann.account_id, ann.created_at_ms)
    assert payer.state is None
