"""The secrets of a visit, encrypted between the browser's departure and the exchange of its code."""

import json
from dataclasses import dataclass, field

from msgsvc_core.channels import PlatformAttempt
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import SecretBox, digest
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import Row

#: Bits of the state, the nonce, the verifier and the cookie. A verifier needs 43 characters
#: (RFC 7636, section 4.1), which is what 256 bits have in base 62.
SECRET_BITS = 256

SEALED = [
    SealedColumn(
        table="auth_platform_visits",
        column=column,
        key=("project_id", "session_id"),
        bound_to=("state_digest",),
        holds="{count} sign-in(s) on the page of a messenger",
        if_lost="nothing: people begin the sign-in again",
        is_lasting=False,
    )
    for column in ("sealed", "sealed_code")
]


@dataclass(frozen=True, slots=True)
class VisitSecrets:
    """What a new visit is made of."""

    attempt: PlatformAttempt
    cookie: str = field(repr=False)

    @classmethod
    def new(cls, redirect_uri: str) -> "VisitSecrets":
        state, nonce, verifier, cookie = (new_token(SECRET_BITS) for _ in range(4))
        attempt = PlatformAttempt(
            redirect_uri=redirect_uri, state=state, nonce=nonce, code_verifier=verifier
        )
        return cls(attempt, cookie)


class VisitSeal:
    """Encrypts for the row of one state, by its digest."""

    def __init__(self, secrets: SecretBox) -> None:
        self._secrets = secrets

    def seal(self, attempt: PlatformAttempt) -> str:
        fields = [attempt.redirect_uri, attempt.nonce, attempt.code_verifier]
        return self._secrets.encrypt(json.dumps(fields), _row("sealed", digest(attempt.state)))

    def seal_code(self, code: str, state_digest: str) -> str:
        return self._secrets.encrypt(code, _row("sealed_code", state_digest))

    def open(self, sealed: str, state_digest: str) -> PlatformAttempt:
        """The attempt without its state, which is only compared. Raises `DecryptionError`."""
        text = self._secrets.decrypt(sealed, _row("sealed", state_digest))
        redirect_uri, nonce, verifier = json.loads(text)
        return PlatformAttempt(
            redirect_uri=redirect_uri, state="", nonce=nonce, code_verifier=verifier
        )

    def open_code(self, sealed: str, state_digest: str) -> str:
        """Raises `DecryptionError`."""
        return self._secrets.decrypt(sealed, _row("sealed_code", state_digest))


def _row(column: str, state_digest: str) -> Row:
    return f"auth_platform_visits.{column}", state_digest
