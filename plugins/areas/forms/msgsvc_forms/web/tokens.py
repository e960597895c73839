"""The token of a page, with its time and version; unique for each page."""

import re
from dataclasses import dataclass

from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security.secret_box import SecretBox
from msgsvc_forms.models import Form

PURPOSE = "form page"

_TOKEN = re.compile(
    r"([0-9]{1,9})\.([0-9]{1,15})\.([0-9A-Za-z]{16,32})\.([0-9A-Za-z]{22})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class PageToken:
    """The content of a token; `text` is the complete token."""

    version: int
    issued_ms: int
    text: str


class PageTokens:
    """Signs tokens, and verifies those signed here, with any of the secret keys."""

    def __init__(self, secrets: SecretBox) -> None:
        self._secrets = secrets

    def new(self, form: Form, now_ms: int) -> str:
        parts = (str(form.version), str(now_ms), new_token(96))
        return ".".join((*parts, self._secrets.sign(PURPOSE, form.form_id, *parts)))

    def read(self, form_id: str, text: str) -> PageToken | None:
        """None for what is no token of this form."""
        match = _TOKEN.fullmatch(text)
        if match is None:
            return None
        version, issued_ms, nonce, seal = match.groups()
        if not self._secrets.verify(seal, PURPOSE, form_id, version, issued_ms, nonce):
            return None
        return PageToken(int(version), int(issued_ms), text)
