"""Editing and deleting messages, and sends that wait for a test's word."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_devkit import RecordingChannel
from tests.api.reading import message_of

#: What a platform says that wants its peace for a minute.
WAIT = DeliveryError(Reason.RATE_LIMITED, "wait", 60)


async def edit(client: httpx2.AsyncClient, message_id: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/messages/{message_id}/edit", json=body)
    assert answer.status_code == 202, answer.text
    fields: dict[str, Any] = answer.json()
    return fields


def hold_sends(channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Has sends wait for the event that is returned."""
    may_send, send = asyncio.Event(), channel.send

    async def wait(chat_id: str, message: OutgoingMessage) -> str:
        await may_send.wait()
        return await send(chat_id, message)

    monkeypatch.setattr(channel, "send", wait)
    return may_send


async def is_now(client: httpx2.AsyncClient, message_id: str, status: str) -> bool:
    return bool((await message_of(client, message_id))["status"] == status)
