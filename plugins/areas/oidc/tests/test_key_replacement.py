"""Keys that leaked are replaced at once."""

from typing import Any

import pytest
from joserfc import jws

from msgsvc_oidc.keys.service import SigningKeys
from plugins.areas.oidc.tests.conftest import Registry, Visitor


def kid_of(tokens: dict[str, Any]) -> str:
    found: str = jws.extract_compact(tokens["id_token"].encode()).headers()["kid"]
    return found


@pytest.mark.both_databases
async def test_replaced_keys_sign_no_more_and_are_not_published(
    ann: Visitor, register: Registry
) -> None:
    client = await register()
    before = kid_of(await ann.tokens(client))
    keys = ann.service.get(SigningKeys)
    async with ann.service.db.transaction() as tx:
        await keys.replace_all(tx)
    after = kid_of(await ann.tokens(client))
    published = {key["kid"] for key in (await ann.http.get(f"{ann.issuer}/jwks")).json()["keys"]}

    assert after in published
    assert before not in published
    assert len(published) == 2
