"""A chat that goes on under another id: people are followed, and nobody is unsubscribed."""

import httpx2
import pytest

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryError,
    MessageReceived,
    Reason,
    Started,
    Unblocked,
    Update,
)
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe

ANN = ChannelUser("Ann", "Ann")
NEW = {"update_id": "n1", "chat_id": "new", "user": ANN}


async def chat_and_status(service: Service, subscriber_id: str) -> tuple[str, str]:
    async with service.db.read() as tx:
        row = await tx.fetch_one(
            "SELECT chat_id, status FROM core_subscribers WHERE subscriber_id = :id",
            {"id": subscriber_id},
        )
    assert row is not None
    return row["chat_id"], row["status"]


@pytest.fixture
async def ann(service: Service, subscribe: Subscribe) -> str:
    subscriber_id = await subscribe("Ann")
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscribers SET user_id = 'Ann', chat_id = 'old'")
    return subscriber_id


@pytest.mark.parametrize(
    "update",
    [
        Unblocked(**NEW),
        Started(**NEW),
        MessageReceived(**NEW, text="Hi"),
        ButtonPressed(**NEW, data="x", message_ref="m", button_ref="b"),
    ],
    ids=lambda update: type(update).__name__,
)
async def test_whatever_somebody_does_shows_where_they_are(
    service: Service, ann: str, update: Update
) -> None:
    await service.inbound.receive("messenger_a", update)

    assert await chat_and_status(service, ann) == ("new", "active")


@pytest.mark.parametrize("is_group", [False, True], ids=["blocked", "in a group"])
async def test_a_chat_that_is_no_way_to_them_is_not_followed(
    service: Service, channel: RecordingChannel, ann: str, is_group: bool
) -> None:
    channel.is_group = lambda _chat_id: is_group  # type: ignore[method-assign]
    update = MessageReceived(**NEW, text="Hi") if is_group else Blocked(**NEW)

    await service.inbound.receive("messenger_a", update)

    assert (await chat_and_status(service, ann))[0] == "old"


async def test_a_message_to_a_moved_chat_is_sent_where_it_is_now(
    service: Service, client: httpx2.AsyncClient, channel: RecordingChannel, ann: str
) -> None:
    channel.failures = [DeliveryError(Reason.CHAT_NOT_FOUND, "upgraded", moved_to="new")]

    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hello"})
    await settled(service)

    message = (await client.get(f"/v1/messages/{answer.json()['message_id']}")).json()
    assert message["status"] == "sent"
    assert [(sent.chat_id, sent.message.text) for sent in channel.sent][-1] == ("new", "Hello")
    assert await chat_and_status(service, ann) == ("new", "active")


@pytest.mark.both_databases
async def test_a_platform_that_tells_of_a_move_is_believed(service: Service, ann: str) -> None:
    moved = ChatMoved(update_id="n1", chat_id="old", user=ANN, new_chat_id="newer")

    await service.inbound.receive("messenger_a", moved)

    assert await chat_and_status(service, ann) == ("newer", "active")


@pytest.mark.both_databases
async def test_a_user_with_a_new_id_keeps_their_subscription(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    moved = ChatMoved(
        update_id="n1", chat_id="old", user=ANN, new_chat_id="newer", new_user_id="new-ann"
    )
    await service.inbound.receive("messenger_a", moved)
    wrote = ChannelUser("new-ann", "Ann")
    again = Started(update_id="n2", chat_id="newest", user=wrote)
    await service.inbound.receive("messenger_a", again)
    page = (await client.get("/v1/subscribers")).json()["data"]

    assert [person["subscriber_id"] for person in page] == [ann]
    assert await chat_and_status(service, ann) == ("newest", "active")


@pytest.mark.both_databases
async def test_a_new_id_that_has_a_subscription_already_is_not_given_twice(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: str
) -> None:
    other = ChannelUser("new-ann", "Ann")
    async with service.db.transaction() as tx:
        project_id = tenant.project.project_id
        await service.subscribers.subscribe(
            tx, project_id, "messenger_a", other, "newer", source="deep_link"
        )
    moved = ChatMoved(
        update_id="n1", chat_id="old", user=ANN, new_chat_id="newer", new_user_id="new-ann"
    )
    await service.inbound.receive("messenger_a", moved)
    page = (await client.get("/v1/subscribers")).json()["data"]

    assert len(page) == 2
    assert await chat_and_status(service, ann) == ("newer", "active")
