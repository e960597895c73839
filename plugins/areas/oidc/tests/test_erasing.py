"""What is left of a person who was erased."""

import pytest

from msgsvc_devkit import settled


@pytest.mark.both_databases
async def test_an_erased_person_is_signed_out_everywhere_and_named_nowhere(
    ann, register, client, service
):
    app = await register(scopes=["openid", "offline_access"])
    tokens = await ann.tokens(app, scope="openid offline_access")

    erased = await client.delete(f"/v1/subscribers/{ann.subscriber.subscriber_id}?erase=true")
    await settled(service)
    person = await ann.userinfo(tokens["access_token"])
    refreshed = await ann.refresh(app, tokens["refresh_token"])
    async with service.db.read() as tx:
        named = await tx.fetch_val(
            "SELECT COUNT(*) FROM oidc_sign_ins WHERE subscriber_id IS NOT NULL"
        )

    assert erased.status_code == 204
    assert person.status_code == 401
    assert refreshed.json()["error"] == "invalid_grant"
    assert named == 0
