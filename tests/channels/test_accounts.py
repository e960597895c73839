"""Another token of the same bot goes on where the first one was; another bot begins anew."""

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Polled, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import Tenant
from tests.channels.conftest import AddBot, knows_bot
from tests.channels.messenger import Bot, FakeChannel, Platform, started


async def polled_past(bot: Bot, update_id: str) -> None:
    async def found() -> bool:
        return update_id in bot.polls

    await until(found)


async def updates_of(service: Service, key: str) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT update_id FROM core_updates WHERE channel = :key ORDER BY update_id",
            {"key": key},
        )
        return [row["update_id"] for row in rows]


async def account_noted(service: Service, key: str, account: str) -> None:
    async def noted() -> bool:
        async with service.db.read() as tx:
            found = await tx.fetch_val(
                "SELECT account FROM core_bots WHERE channel = :key", {"key": key}
            )
            return bool(found == account)

    await until(noted)


@pytest.mark.parametrize(("account", "first"), [("42", "u2"), ("43", None)])
async def test_a_new_token_goes_on_where_the_old_one_was_if_it_is_the_same_bot(
    service: Service,
    client: httpx2.AsyncClient,
    platform: Platform,
    add_bot: AddBot,
    account: str,
    first: str | None,
) -> None:
    old, new = platform.bots["own"], platform.bots["rotated"]
    old.account, new.account = "42", account
    key = (await add_bot("messenger_a"))["channel_id"]
    await account_noted(service, key, "42")
    for number in (1, 2):
        old.bring(started("", update_id=f"u{number}", name=f"Person{number}"))
    await polled_past(old, "u2")
    # What the platform has kept for the bot, some of it taken already.
    for number in (1, 2, 3):
        new.bring(started("", update_id=f"u{number}", name=f"Person{number}"))

    await client.patch("/v1/channels/messenger_a", json={"settings": {"token": "rotated"}})
    await polled_past(new, "u3")

    assert new.polls[0] == first
    assert await updates_of(service, key) == ["u1", "u2", "u3"]


async def test_a_new_token_waits_with_its_updates_until_the_platform_says_whose_it_is(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    old, new = platform.bots["own"], platform.bots["rotated"]
    old.account = new.account = "42"
    key = (await add_bot("messenger_a"))["channel_id"]
    await account_noted(service, key, "42")
    old.bring(started("", update_id="u1"))
    await polled_past(old, "u1")
    new.away = True

    await client.patch("/v1/channels/messenger_a", json={"settings": {"token": "rotated"}})

    async def asked() -> bool:
        return new.checks > 0

    await until(asked)
    before = list(new.polls)
    new.away = False
    await polled_past(new, "u1")

    assert before == []
    assert new.polls[0] == "u1"


async def test_what_was_got_before_a_failure_is_taken_and_its_place_kept(
    service: Service, tenant: Tenant, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    await knows_bot(service, "messenger_a")
    asked: list[str | None] = []
    update = started("", update_id="u1")

    async def partly(_self: FakeChannel, cursor: str | None) -> Polled:
        asked.append(cursor)
        error = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the second room does not answer")
        return Polled((update,), "room1:1", error) if cursor != "room1:1" else Polled((), cursor)

    monkeypatch.setattr(FakeChannel, "poll_updates", partly)
    await polled_past(Bot("none", polls=asked), "room1:1")

    assert await updates_of(service, "messenger_a") == ["u1"]
