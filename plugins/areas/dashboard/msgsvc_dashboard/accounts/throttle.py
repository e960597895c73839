"""Limits attempts to sign in, without locking owners out of their accounts.

Attempts from unknown browsers are counted by email and by address. Guessing at an account all day blocks
other unknown browsers, not its owner: a browser that was signed in before has a device cookie (OWASP's
"device cookies"), and is counted separately.
"""

import hmac

from msgsvc_core.kernel.ids import new_token
from msgsvc_core.limits import Limiter
from msgsvc_core.security import SecretBox
from msgsvc_core.security.networks import customer_network
from msgsvc_dashboard.accounts.models import Browser, TooMany
from msgsvc_dashboard.settings import AccountSettings

#: Seconds in which tries are counted.
WINDOW_S = 900

_PURPOSE = "dashboard device"


class Throttle:
    """Counts attempts; each takes its slot before it is verified."""

    def __init__(self, *, secrets: SecretBox, settings: AccountSettings, limiter: Limiter) -> None:
        self._secrets = secrets
        self._settings = settings
        self._limiter = limiter

    async def password(
        self, email: str, account_id: str | None, browser: Browser
    ) -> TooMany | None:
        """None if the password may be tried. Raises `Unavailable` where nobody can count."""
        limits = self._settings
        if account_id is not None and (device := self._device(account_id, browser)) is not None:
            return await self._hit(f"device:{device}", limits.tries_per_browser)
        # The address first: whoever is over it takes no slots of an email.
        address = customer_network(browser.ip) or "unknown"
        return await self._hit(f"address:{address}", limits.tries_per_address) or await self._hit(
            f"email:{email}", limits.tries_per_email
        )

    async def code(self, account_id: str, browser: Browser) -> TooMany | None:
        """The same for codes of the second factor."""
        limits = self._settings
        if (device := self._device(account_id, browser)) is not None:
            return await self._hit(f"code-device:{device}", limits.tries_per_browser)
        return await self._hit(f"code:{account_id}", limits.tries_of_codes)

    async def request(self, browser: Browser) -> TooMany | None:
        """The same for sign-ins by messenger that one address begins."""
        address = customer_network(browser.ip) or "unknown"
        limit = self._settings.tries_per_address
        return await self._hit(f"request:{address}", limit)

    def new_device(self, account_id: str) -> str:
        """What a browser keeps that the account was signed in in: nobody else can make it."""
        nonce = new_token()
        return f"{nonce}.{self._seals(account_id, nonce)[0]}"

    def _device(self, account_id: str, browser: Browser) -> str | None:
        """The browser's number, if the account was signed in there."""
        nonce, _, seal = browser.device.partition(".")
        if not (nonce and seal.isascii()):
            return None
        fits = [hmac.compare_digest(seal, valid) for valid in self._seals(account_id, nonce)]
        return nonce if any(fits) else None

    def _seals(self, account_id: str, nonce: str) -> list[str]:
        made = self._secrets.derive_all(_PURPOSE, account_id, nonce)
        return [seal.hex() for seal in made]

    async def _hit(self, key: str, limit: int) -> TooMany | None:
        window = await self._limiter.hit(f"sign-in:{key}", limit, WINDOW_S, when_away="refuse")
        return None if window.allowed else TooMany(window.retry_after_s)
