"""Proof that a webhook call is the platform's (Graph API: "Webhooks": verification requests, event
notifications)."""

import hmac
from collections.abc import Iterable

from msgsvc_core.channels import InvalidWebhook, WebhookAnswer, WebhookCall

SIGNATURE_HEADER = "x-hub-signature-256"


def verify_signature(call: WebhookCall, app_secret: str) -> None:
    """Raises `InvalidWebhook` unless the body is signed with the app's secret."""
    wanted = "sha256=" + hmac.new(app_secret.encode(), call.body, "sha256").hexdigest()
    given = call.headers.get(SIGNATURE_HEADER, "")
    if not hmac.compare_digest(wanted.encode(), given.encode()):
        raise InvalidWebhook(f"{SIGNATURE_HEADER} is missing or wrong")


def verify_request(call: WebhookCall, tokens: Iterable[str]) -> None:
    """Checks a request by which the platform verifies the webhook's address. Raises `InvalidWebhook`."""
    given = call.query.get("hub.verify_token", "").encode()
    is_known = any(hmac.compare_digest(given, token.encode()) for token in tokens)
    if call.query.get("hub.mode") != "subscribe" or not is_known:
        raise InvalidWebhook("hub.verify_token is missing or wrong")


def challenge_of(call: WebhookCall) -> WebhookAnswer:
    """The response that proves to the platform that the address is ours."""
    return WebhookAnswer(call.query.get("hub.challenge", "").encode())
