"""Signatures, encryption of secrets, API keys, and the guard on outgoing requests."""

from msgsvc_core.security.api_keys import ApiKey, digest, looks_like_key, new_api_key
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_core.security.numbers import new_number, offered
from msgsvc_core.security.secret_box import DecryptionError, SecretBox
from msgsvc_core.security.signing import (
    InvalidWebhook,
    WebhookDelivery,
    new_secret,
    open_webhook,
    sign,
    standard_headers,
    verify,
    verify_standard,
)

__all__ = [
    "ApiKey",
    "DecryptionError",
    "ForbiddenTarget",
    "InvalidWebhook",
    "OutboundGuard",
    "SecretBox",
    "WebhookDelivery",
    "digest",
    "looks_like_key",
    "new_api_key",
    "new_number",
    "new_secret",
    "offered",
    "open_webhook",
    "sign",
    "standard_headers",
    "verify",
    "verify_standard",
]
