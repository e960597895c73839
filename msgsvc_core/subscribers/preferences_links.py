"""Signed addresses of preferences pages: whoever has one can change what one person gets from one project."""

import re

from msgsvc_core.content.substitution import SERVICE_ADDRESS
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.security import SecretBox

#: What the signatures are for.
PURPOSE = "preferences"

#: The variable in templates that holds the address.
VARIABLE = SERVICE_ADDRESS

_TOKEN = re.compile(r"(prj_[0-9A-Za-z]+)\.(sub_[0-9A-Za-z]+)\.([0-9a-f]{1,6})\.([0-9A-Za-z]+)")


class LinkExpired(NotFound):
    """The link is genuine, but too old."""


class PreferencesLinks:
    """Makes and reads the addresses. They are the same for a day, and valid for `days` more."""

    def __init__(self, *, clock: Clock, secrets: SecretBox, base_url: str, days: int) -> None:
        self._clock = clock
        self._secrets = secrets
        self._base_url = base_url.rstrip("/")
        self._days = days

    @property
    def is_public(self) -> bool:
        """Whether messengers accept the address for a button: they refuse hosts without TLS."""
        return self._base_url.startswith("https:")

    def url(self, project_id: str, subscriber_id: str) -> str:
        """The address of a subscriber's page."""
        day = f"{self._clock.now_ms() // DAY_MS:x}"
        signature = self._secrets.sign(PURPOSE, project_id, subscriber_id, day)
        return f"{self._base_url}/preferences/{project_id}.{subscriber_id}.{day}.{signature}"

    def read(self, token: str) -> tuple[str, str]:
        """The project and the subscriber. Raises `NotFound` for what was not signed here, `LinkExpired`."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise NotFound("there is no page at this address")
        project_id, subscriber_id, day, signature = match.groups()
        if not self._secrets.verify(signature, PURPOSE, project_id, subscriber_id, day):
            raise NotFound("there is no page at this address")
        if self._clock.now_ms() // DAY_MS - int(day, 16) > self._days:
            raise LinkExpired("the link is too old")
        return project_id, subscriber_id
