"""What a mini app's request is refused for, whatever the messenger; the plugins test what they sign."""

from typing import Any

import httpx2
import pytest

from tests.api.conftest import CheckError

PATH = "/v1/subscribers/mini-app"


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({}, "validation_failed", "channel: messenger_a has no mini apps"),
        ({"channel": "nowhere"}, "validation_failed", "channel: must be one of messenger_a"),
        ({"init_data": "x" * 16_385}, "validation_failed", "init_data: "),
        ({"init_data": None}, "validation_failed", "init_data: "),
        ({"tags": ["two words"]}, "validation_failed", "tags[0]: "),
        ({"external_id": " a"}, "invalid_external_id", "external_id: "),
    ],
)
async def test_a_request_that_cannot_be_is_refused_by_its_field(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    change: dict[str, Any],
    code: str,
    message: str,
) -> None:
    body = {"channel": "messenger_a", "init_data": "user=1&hash=2", **change}
    answer = await client.post(PATH, json=body)

    assert check_error(answer, 400, code)["error"].startswith(message)
