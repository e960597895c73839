"""Starts by a word, where no link can carry a payload: the person writes `start K7QF2M9X` to the bot."""

import re

from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.start_links import start_code_store as store
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import DecryptionError, SecretBox

#: No letter that is easily taken for another or for a digit (Crockford's base 32).
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

#: Characters of a code: 40 bits, valid for minutes; a correct guess only yields a question.
CODE_LENGTH = 8

#: Characters of a payload that people can be asked to write as it is, e.g. `auth_my-shop`.
SHORT = 24

_CODE = re.compile(rf"[{ALPHABET}]{{{CODE_LENGTH}}}")
_START = re.compile(r"/?(?:start|старт)\s+(\S+)", re.IGNORECASE)

PURPOSE = "start code"

SEALED = store.SEALED


class StartCodes:
    """Short codes that stand for start payloads, where people write what starts a bot."""

    def __init__(self, *, clock: Clock, secrets: SecretBox) -> None:
        self._clock = clock
        self._secrets = secrets

    def code_of(self, payload: str) -> str:
        """Always the same for the same payload, and no part of it."""
        number = int.from_bytes(self._secrets.derive(PURPOSE, payload)[:8])
        letters = []
        for _ in range(CODE_LENGTH):
            number, rest = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[rest])
        return "".join(letters)

    def start_message(self, payload: str) -> str:
        """What a person writes to a bot to start it with `payload`; see `remember` for long ones."""
        return f"start {payload if len(payload) <= SHORT else self.code_of(payload)}"

    async def remember(self, tx: Tx, payload: str, expires_at_ms: int) -> None:
        """Has the short code of `payload` work until then, if it needs one."""
        if len(payload) > SHORT:
            digest = self._secrets.keyed_hash(PURPOSE, self.code_of(payload))
            sealed = self._secrets.encrypt(payload)
            await store.save(tx, digest, sealed, expires_at_ms)

    async def payload_in(self, tx: Tx, text: str) -> str | None:
        """The start payload that a text asks for: `start auth_shop`, `start K7QF2M9X`, or the code alone.

        None for other words. A code that stands for nothing any more is a payload that nobody knows, if it
        came after `start`.
        """
        text = text.strip()
        match = _START.fullmatch(text)
        word = match[1] if match else text
        code = word.upper().replace("-", "").replace("O", "0").replace("I", "1").replace("L", "1")
        if _CODE.fullmatch(code):
            digests = list(self._secrets.keyed_hashes(PURPOSE, code))
            sealed = await store.find(tx, digests, self._clock.now_ms())
            if sealed is not None:
                try:
                    return self._secrets.decrypt(sealed)
                except DecryptionError:
                    return None
        return word if match and START_PAYLOAD.fullmatch(word) else None
