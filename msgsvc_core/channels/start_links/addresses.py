"""Addresses of a bot: start links as texts and QR codes, and its webhook URL."""

from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.db import Tx
from msgsvc_core.security import SecretBox


class ChannelAddresses:
    """Addresses of this service for channels, by channel key. `base_url` is the public URL of the service."""

    def __init__(self, *, base_url: str, secrets: SecretBox, start_codes: StartCodes) -> None:
        self._base_url = base_url
        self._secrets = secrets
        self._start_codes = start_codes

    def start_message(self, payload: str) -> str:
        """The text that starts the bot with `payload` when a user sends it."""
        return self._start_codes.start_message(payload)

    async def remember_start(self, tx: Tx, payload: str, expires_at_ms: int) -> None:
        """Makes the short code of `payload` valid until then, if it needs one."""
        await self._start_codes.remember(tx, payload, expires_at_ms)

    def qr_code(self, key: str, payload: str) -> str:
        """The URL of an SVG with a QR code that starts the bot; no API key needed."""
        return f"{self._base_url}/qr/{key}/{payload}.svg"

    def hook_url(self, key: str) -> str:
        """The webhook URL of a bot."""
        return f"{self._base_url}/hooks/{key}"

    def hook_secrets(self, key: str) -> tuple[str, ...]:
        """Webhook secrets: the current one, which is registered with the platform, then those of older keys.

        64 hex digits, which every platform accepts.
        """
        return tuple(secret.hex() for secret in self._secrets.derive_all("channel hook", key))
