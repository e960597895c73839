"""People of projects: they open a subscription link, as in a messenger."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant

Subscribe = Callable[..., Awaitable[str]]


def subscribing(service: Service, tenant: Tenant) -> Subscribe:
    """`await subscribe("Ann")` has a person open a subscription link; returns the subscriber's id.

    Keywords: `channel`, `to` (another tenant than the test's own), and what the link carries.
    """
    numbers = count(1)

    async def make(
        name: str = "Ann",
        *,
        channel: str = "messenger_a",
        to: Tenant = tenant,
        lang: str = "en",
        **link: Any,
    ) -> str:
        answer = await to.client.post("/v1/subscribers/links", json=link)
        assert answer.status_code == 201, answer.text
        payload = answer.json()["links"][channel].partition("start=")[2]
        user = ChannelUser(f"user-{name}", name, name.lower(), lang)
        update_id = f"start-{name}-{next(numbers)}"
        await service.inbound.receive(
            channel,
            Started(update_id=update_id, chat_id=f"chat-{name}", user=user, payload=payload),
        )
        await settled(service)
        async with service.db.read() as tx:
            return str(
                await tx.fetch_val(
                    "SELECT subscriber_id FROM core_subscribers WHERE project_id = :project_id"
                    " AND channel = :channel AND user_id = :user_id",
                    {
                        "project_id": to.project.project_id,
                        "channel": channel,
                        "user_id": user.user_id,
                    },
                )
            )

    return make
