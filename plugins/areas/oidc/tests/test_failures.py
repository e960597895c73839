"""What a client's developer finds in the journal when a sign-in does not work."""

from typing import Any

from msgsvc_oidc.journal.store import list_entries
from plugins.areas.oidc.tests.conftest import CALLBACK, Registry, Visitor


async def details(ann: Visitor, client: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Flow, outcome and detail of failures, newest first."""
    async with ann.service.db.read() as tx:
        entries = await list_entries(tx, ann.project_id, client["client_id"], None, 100)
    return [(each.flow, each.outcome, each.detail) for each in entries if each.detail]


async def test_a_redirect_uri_that_is_not_registered_is_told_as_it_was_sent(
    ann: Visitor, register: Registry
) -> None:
    client = await register()
    await ann.authorize(client, redirect_uri=f"{CALLBACK}/")

    [(flow, outcome, detail)] = await details(ann, client)
    assert (flow, outcome) == ("code", "invalid_request")
    assert detail.endswith(f": {CALLBACK}/")


async def test_a_wrong_secret_is_told(ann: Visitor, register: Registry) -> None:
    client = await register()
    await ann.exchange({**client, "client_secret": "mos_wrong"}, "code")

    [(flow, outcome, detail)] = await details(ann, client)
    assert (flow, outcome) == ("token", "invalid_client")
    assert "mos_" not in detail


async def test_a_code_that_can_not_be_exchanged_is_told(ann: Visitor, register: Registry) -> None:
    client = await register()
    code = await ann.code(client)
    await ann.exchange(client, code, code_verifier="w" * 43)
    await ann.exchange(client, "no code")
    await ann.refresh(client, "no token")

    found = await details(ann, client)
    assert [(flow, outcome) for flow, outcome, _ in found] == [("token", "invalid_grant")] * 3
    assert "verifier" in found[-1][2]


async def test_a_client_that_nobody_knows_has_no_journal(ann: Visitor, register: Registry) -> None:
    client = await register()
    answer = await ann.exchange({**client, "client_id": "app_" + "0" * 22}, "code")

    assert answer.status_code == 401
    assert await details(ann, client) == []
