"""What the API says of a message, and of what happened."""

from typing import Any

import httpx2


async def message_of(client: httpx2.AsyncClient, message_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/messages/{message_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events_named(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    """Data of the events of that name, oldest first."""
    data = (await client.get("/v1/events", params={"event": name})).json()["data"]
    return [event["data"] for event in reversed(data)]
