"""A plugin's request for a sign-in on a page."""

import re
from dataclasses import dataclass

from msgsvc_core.channels import Identity
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.ids import ID_WIDTH, new_token

#: What the path of a request's page begins with. A slug has no `_`, so it is never one.
PATH_PREFIX = "req_"

_PATH = re.compile(rf"{PATH_PREFIX}([0-9A-Za-z]{{{ID_WIDTH}}})")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A sign-in page for one occasion. `token`, which is stored only as a digest, is in its address.

    `return_url` belongs to the plugin `source`; people are shown the requester's name, and the host of
    its URL.
    """

    project_id: str
    request_id: str
    token: str
    source: str
    source_id: str
    requester_name: str
    requester_url: str
    return_url: str
    state: str
    lang: Language | None
    channel: str | None
    number_matching: bool
    created_at_ms: int
    #: Until then sign-ins can be started on the page.
    expires_at_ms: int
    must_prove: tuple[Identity, ...] = ()

    @staticmethod
    def new_token() -> str:
        return new_token()

    @property
    def path(self) -> str:
        """The page's path below `/login/`."""
        return PATH_PREFIX + self.token

    def is_open(self, now_ms: int) -> bool:
        """Whether a sign-in can still be started."""
        return now_ms < self.expires_at_ms


def read_token(path: str) -> str | None:
    """The token of a request's page; None for any other path below `/login/`."""
    match = _PATH.fullmatch(path)
    return None if match is None else match[1]
