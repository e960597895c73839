"""/v1/channels/{key}/shelf: what a project's own bot could not read."""

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, MessageReceived, Unreadable, UnreadableReason
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import Tenant, tenant_of
from tests.api.conftest import CheckError
from tests.channels.conftest import AddBot
from tests.channels.messenger import Platform

RAW = b'{"text": null}'


def item(number: int, raw: bytes = RAW) -> Unreadable:
    return Unreadable(
        update_id=f"u{number}",
        raw=raw,
        reason=UnreadableReason.MALFORMED,
        detail="text: is no text",
    )


async def on_shelf(client: httpx2.AsyncClient, name: str = "support") -> list[dict[str, object]]:
    answer = await client.get(f"/v1/channels/{name}/shelf")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["data"]
    return found


@pytest.fixture
async def bot(add_bot: AddBot) -> str:
    """The key of a bot of the project's own, `support`."""
    return str((await add_bot("support"))["channel_id"])


async def test_one_bad_item_of_a_batch_costs_only_itself(
    service: Service, client: httpx2.AsyncClient, platform: Platform, bot: str
) -> None:
    ann = ChannelUser("7", "Ann")
    for update in (
        MessageReceived(update_id="1", chat_id="7", user=ann, text="before"),
        item(2),
        MessageReceived(update_id="3", chat_id="7", user=ann, text="after"),
    ):
        platform.bots["own"].bring(update)

    async def received() -> bool:
        async with service.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT update_id FROM core_updates WHERE channel = :bot", {"bot": bot}
            )
        return {row["update_id"] for row in rows} == {"1", "unreadable:u2", "3"}

    await until(received)
    [found] = await on_shelf(client)

    assert found["reason"] == "malformed"
    assert found["detail"] == "text: is no text"
    assert (found["kind"], found["size"], found["kept"]) == ("update", len(RAW), len(RAW))
    assert found["tried_at"] is None


async def test_the_list_is_in_pages_newest_first(
    service: Service, client: httpx2.AsyncClient, bot: str
) -> None:
    for number in range(3):
        await service.inbound.receive(bot, item(number))
    first = (await client.get("/v1/channels/support/shelf?limit=2")).json()
    last = (
        await client.get(
            "/v1/channels/support/shelf", params={"limit": 2, "cursor": first["next_cursor"]}
        )
    ).json()
    ids = [each["item_id"] for each in (*first["data"], *last["data"])]

    assert len(ids) == 3
    assert ids == sorted(ids, reverse=True)
    assert last["next_cursor"] is None


async def test_the_item_itself_is_a_download_that_no_browser_shows(
    service: Service, client: httpx2.AsyncClient, bot: str
) -> None:
    await service.inbound.receive(bot, item(1, b"<script>alert(1)</script>"))
    [found] = await on_shelf(client)
    answer = await client.get(f"/v1/channels/support/shelf/{found['item_id']}/content")

    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_taking_says_whether_it_was_read_and_deleting_ends_it(
    service: Service, client: httpx2.AsyncClient, platform: Platform, bot: str
) -> None:
    await service.inbound.receive(bot, item(1, b"good"))
    await service.inbound.receive(bot, item(2, b"bad"))
    platform.bots["own"].readable[b"good"] = MessageReceived(
        update_id="1", chat_id="7", user=ChannelUser("7", "Ann"), text="hello"
    )
    bad, good = await on_shelf(client)
    taken = await client.post(f"/v1/channels/support/shelf/{good['item_id']}/take")
    kept = await client.post(f"/v1/channels/support/shelf/{bad['item_id']}/take")
    deleted = await client.delete(f"/v1/channels/support/shelf/{bad['item_id']}")

    assert taken.json() == {"outcome": "taken", "item": None}
    assert kept.json()["outcome"] == "kept"
    assert kept.json()["item"]["item_id"] == bad["item_id"]
    assert kept.json()["item"]["tried_at"] is not None
    assert deleted.status_code == 204
    assert await on_shelf(client) == []


async def test_a_shelf_is_of_its_project(
    service: Service, client: httpx2.AsyncClient, bot: str, check_error: CheckError
) -> None:
    await service.inbound.receive(bot, item(1))
    [found] = await on_shelf(client)
    other = await tenant_of(service, "Other")
    async with other.client:
        path = f"/v1/channels/support/shelf/{found['item_id']}"
        check_error(await other.client.get("/v1/channels/support/shelf"), 404, "not_found")
        check_error(await other.client.get(f"{path}/content"), 404, "not_found")
        check_error(await other.client.post(f"{path}/take"), 404, "not_found")
        check_error(await other.client.delete(path), 404, "not_found")

    assert len(await on_shelf(client)) == 1


async def test_a_removed_channel_takes_its_shelf_along(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, bot: str
) -> None:
    await service.inbound.receive(bot, item(1))
    await client.delete("/v1/channels/support")

    async with service.db.read() as tx:
        assert await service.get(Shelf).count(tx, [bot]) == {}
