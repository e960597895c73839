"""The Python client verifies what the service signs, by the vectors that all verifiers share."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_client.events import UnknownEvent
from msgsvc_client.webhooks import InvalidWebhook, open_webhook, verify, verify_standard
from msgsvc_core.security import new_secret
from msgsvc_devkit.webhooks import signed_webhook

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/webhooks.json").read_text("utf-8"))


def accepts(check: Any, case: dict[str, Any]) -> bool:
    try:
        check(case["headers"], base64.b64decode(case["body"]), case["secrets"])
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("case", VECTORS["signature"], ids=lambda case: case["about"])
def test_a_signature_of_the_services_own_scheme(case: dict[str, Any]) -> None:
    assert accepts(verify, case) == case["valid"]


@pytest.mark.parametrize("case", VECTORS["standard"], ids=lambda case: case["about"])
def test_a_signature_of_standard_webhooks(case: dict[str, Any]) -> None:
    assert accepts(verify_standard, case) == case["valid"]


@pytest.fixture
def secret() -> str:
    return new_secret()


@pytest.mark.parametrize("scheme", ["both", "own", "standard"])
def test_a_delivery_is_opened_by_either_scheme(scheme: str, secret: str) -> None:
    headers, body = signed_webhook("something.new", {"first_name": "Ann"}, secret)
    dropped = {"own": "webhook-", "standard": "X-Service-Signature", "both": "nothing"}[scheme]
    headers = {name: value for name, value in headers.items() if not name.startswith(dropped)}

    delivery = open_webhook(headers, body, [new_secret(), secret])

    assert isinstance(delivery.event, UnknownEvent)
    assert delivery.event.name == "something.new"
    assert delivery.event.data["first_name"] == "Ann"
    assert delivery.delivery_id.startswith("whd_")


def test_a_delivery_under_another_id_is_refused(secret: str) -> None:
    headers, body = signed_webhook("something.new", {}, secret)

    with pytest.raises(InvalidWebhook):
        open_webhook({**headers, "webhook-id": "whd_another"}, body, secret)


def test_a_strangers_request_is_refused(secret: str) -> None:
    headers, body = signed_webhook("something.new", {}, new_secret())

    with pytest.raises(InvalidWebhook, match="does not match"):
        open_webhook(headers, body, secret)


@pytest.mark.parametrize("secrets", ["", [], [""], "whsec_c2hvcnQ=", "whsec_!", "plain"])
def test_a_secret_that_is_none_is_an_error_of_the_program(secrets: Any, secret: str) -> None:
    headers, body = signed_webhook("something.new", {}, secret)

    with pytest.raises(ValueError, match="a secret is") as caught:
        open_webhook(headers, body, secrets)
    assert not isinstance(caught.value, InvalidWebhook)
