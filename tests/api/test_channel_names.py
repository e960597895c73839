"""Wherever a request names a channel, it names one that there is, and the right one."""

from typing import Any

import httpx2
import pytest


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/subscribers?channel=messenger_z", None),
        ("POST", "/v1/send", {"external_id": "c1", "channel": "messenger_z", "text": "Hi"}),
        ("POST", "/v1/send", {"subscriber_id": "sub_1", "channel": "messenger_z", "text": "Hi"}),
    ],
)
async def test_an_unknown_channel_is_refused_by_name(
    client: httpx2.AsyncClient, method: str, path: str, body: Any, check_error: Any
) -> None:
    answer = await client.request(method, path, json=body)

    error = check_error(answer, 400, "validation_failed")
    assert error["error"] == "channel: must be one of messenger_a, messenger_b"


async def test_a_subscriber_is_not_sent_to_on_another_channel(
    client: httpx2.AsyncClient, subscribe: Any, check_error: Any
) -> None:
    subscriber_id = await subscribe("Ann", channel="messenger_b")

    answer = await client.post(
        "/v1/send", json={"subscriber_id": subscriber_id, "channel": "messenger_a", "text": "Hi"}
    )

    error = check_error(answer, 400, "validation_failed")
    assert error["error"] == "channel: this subscriber is on messenger_b"


async def test_a_text_of_spaces_is_refused(client: httpx2.AsyncClient, check_error: Any) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": "sub_1", "text": " \n "})

    error = check_error(answer, 400, "validation_failed")
    assert error["error"] == "text: must hold more than spaces and invisible characters"
