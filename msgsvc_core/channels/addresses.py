"""Where a bot is started and called: what people write to it, its QR codes, and its webhook."""

from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.db import Tx
from msgsvc_core.security import SecretBox


class ChannelAddresses:
    """Addresses of this service for channels, by their keys; `base_url` is where it is reached."""

    def __init__(self, *, base_url: str, secrets: SecretBox, start_codes: StartCodes) -> None:
        self._base_url = base_url
        self._secrets = secrets
        self._start_codes = start_codes

    def start_message(self, payload: str) -> str:
        """What a person writes to a bot to start it with `payload`; see `remember_start` for long ones."""
        return self._start_codes.start_message(payload)

    async def remember_start(self, tx: Tx, payload: str, expires_at_ms: int) -> None:
        """Has the short code of `payload` work until then, if it needs one."""
        await self._start_codes.remember(tx, payload, expires_at_ms)

    def qr_code(self, key: str, payload: str) -> str:
        """The address of an SVG that shows as a QR code how to start the bot; no API key needed."""
        return f"{self._base_url}/qr/{key}/{payload}.svg"

    def hook_url(self, key: str) -> str:
        """Where the platform calls us with a bot's updates."""
        return f"{self._base_url}/hooks/{key}"

    def hook_secrets(self, key: str) -> tuple[str, ...]:
        """Webhook secrets: the current one, which the platform is given, then those of older keys.

        64 hex digits, which every platform accepts.
        """
        return tuple(secret.hex() for secret in self._secrets.derive_all("channel hook", key))
