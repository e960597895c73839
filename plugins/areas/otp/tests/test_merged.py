"""One-time codes of people who are merged, or split, while a code is on its way."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant

pytestmark = pytest.mark.both_databases


@pytest.fixture
async def sent(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str, tenant: Tenant
) -> str:
    """The code that Ann got as the person `old-1`; there is a person `u1`, too."""
    await client.patch(f"/v1/subscribers/{ann_id}", json={"external_id": "old-1"})
    async with service.db.transaction() as tx:
        other = await tx.fetch_one("SELECT * FROM core_subscribers")
        assert other is not None
        await tx.insert(
            "core_subscribers",
            {
                **{name: other[name] for name in other.keys()},
                "subscriber_id": "sub_other",
                "channel": "messenger_b",
                "bot": "messenger_b",
                "external_id": "u1",
            },
        )
    await client.post("/v1/otp/send", json={"external_id": "old-1", "channel": "messenger_a"})
    await settled(service)
    return str(ann.code)


async def test_a_code_sent_before_a_merge_verifies_by_the_id_that_stays(
    client: httpx2.AsyncClient, sent: str
) -> None:
    merged = await client.post("/v1/people/merge", json={"external_id": "old-1", "into": "u1"})
    gone = await client.post("/v1/otp/verify", json={"external_id": "old-1", "code": sent})
    right = await client.post("/v1/otp/verify", json={"external_id": "u1", "code": sent})

    assert merged.status_code == 200, merged.text
    assert gone.status_code == 404
    assert right.status_code == 200, right.text
    assert right.json()["external_id"] == "u1"


async def test_a_code_is_no_longer_the_persons_after_a_split(
    client: httpx2.AsyncClient, sent: str, ann_id: str
) -> None:
    split = await client.post("/v1/people/split", json={"subscriber_id": ann_id})
    gone = await client.post("/v1/otp/verify", json={"external_id": "old-1", "code": sent})
    theirs = await client.post("/v1/otp/verify", json={"subscriber_id": ann_id, "code": sent})

    assert split.status_code == 200, split.text
    assert gone.status_code == 404
    assert theirs.status_code == 200, theirs.text
    assert theirs.json()["external_id"] is None
