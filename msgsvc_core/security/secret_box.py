"""Cryptography with the service's secret keys: encryption, keyed hashes, derived codes."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from msgsvc_core.kernel.ids import ID_WIDTH, encode_base62

#: Minimum characters of a key; 32 hex digits are 128 bits, the least that can't be guessed.
MIN_KEY_LENGTH = 32

#: Bytes of every subkey: the size of Fernet's keys, and of the output of SHA-256.
SUBKEY_BYTES = 32


#: Bytes of a signature: 128 bits can't be guessed, and more would not fit into the data of a button.
_SIGNATURE_BYTES = 16

#: Bytes of the time in a Fernet token, after its version (https://github.com/fernet/spec), and those of them
#: that hold the id of the key: with the version, they are the first eight characters.
_TIME_BYTES, _ID_BYTES = 8, 5

#: First characters of an encrypted value, which name its key.
MARK_CHARACTERS = 8

#: First byte of a Fernet token, its version.
_VERSION = b"\x80"

#: First character of every encrypted value: the version.
ENCRYPTED = "g"

#: Prefix of values of earlier releases, which did not name the key: upper bytes of a time. Ids have their
#: first bit set.
UNNAMED = "gAAAAA"

#: Where an encrypted value is stored: table and column, and the row's key. Empty if not bound to a row.
Row = tuple[str, ...]

#: Prefix of a plaintext that is bound to its row; 32 bytes of row hash follow.
_BOUND = b"\0row\0"


class DecryptionError(ValueError):
    """The text was not encrypted with any key of this box, or was changed since."""


class SecretBox:
    """Encrypts and signs with the service's secret keys.

    `keys` are texts of at least 32 characters, the current one first and older ones after it. Values of an
    older key can be decrypted until it is removed; new values use the first.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        # A single string is a sequence too, of one-character keys: it fails here as well.
        if not keys or any(len(key) < MIN_KEY_LENGTH for key in keys):
            raise ValueError(
                f"a list of secret keys of at least {MIN_KEY_LENGTH} characters each is needed"
            )
        fernets = [Fernet(base64.urlsafe_b64encode(_subkey(key, "encrypt"))) for key in keys]
        self._fernet = MultiFernet(fernets)
        self._current = fernets[0]
        #: Ids of the keys, the current one's first: 10 hex digits that don't reveal the key.
        self.key_ids = [_key_id(key) for key in keys]
        #: In place of the time of encryption, which nothing reads, values have the id of their key. Releases
        #: that did not name it decrypt them as well.
        self._id_as_time = int(self.key_ids[0], 16) << 8 * (_TIME_BYTES - _ID_BYTES)
        self._hash_keys = [_subkey(key, "hash") for key in keys]
        self._derive_keys = [_subkey(key, "derive") for key in keys]

    def __repr__(self) -> str:
        return f"<SecretBox with {len(self._hash_keys)} key(s)>"

    def encrypt(self, text: str, row: Row = ()) -> str:
        """Encrypts ASCII text; only `decrypt` of a box with the same key reads it.

        `row` is the place of storage: table and column, then the row's key, e.g.
        `("webhooks_secrets.encrypted", webhook_id)`. The value decrypts only there, so write access to the
        database does not allow copying a secret to another row. The text must not start with a NUL then.
        """
        content = _bound(row) + text.encode()
        return self._current.encrypt_at_time(content, self._id_as_time).decode()

    def decrypt(self, token: str, row: Row = ()) -> str:
        """The text encrypted by `encrypt` for the same `row`, or for none: values from before rows were
        bound can still be decrypted. Raises `DecryptionError`."""
        try:
            content = self._fernet.decrypt(token.encode())
        except InvalidToken:
            raise DecryptionError(
                "no secret key decrypts this; was a key removed while data still needed it?"
            ) from None
        if not content.startswith(_BOUND):
            return content.decode()
        binding = _bound(row)
        if not row or not hmac.compare_digest(content[: len(binding)], binding):
            raise DecryptionError("this was encrypted for another row")
        return content[len(binding) :].decode()

    def renewed(self, token: str, row: Row = ()) -> str | None:
        """The value encrypted with the current key, and bound to its row; None if it names that key, since
        it was bound then when it was encrypted.

        Raises `DecryptionError`.
        """
        if token.startswith(self.current_mark):
            return None
        return self.encrypt(self.decrypt(token, row), row)

    @property
    def current_mark(self) -> str:
        """First characters of the values that `encrypt` makes, see `mark_of`."""
        return mark_of(self.key_ids[0])

    def keyed_hash(self, purpose: str, value: str) -> str:
        """Keyed hash of `value` as 64 hex digits, for storage.

        Unlike a plain hash, it cannot be brute-forced for short values (six-digit codes) without the key.
        """
        return _mac(self._hash_keys[0], (purpose, value)).hex()

    def keyed_hashes(self, purpose: str, value: str) -> list[str]:
        """`keyed_hash` under every key, the current one first: look up any of them."""
        return [_mac(key, (purpose, value)).hex() for key in self._hash_keys]

    def derive(self, purpose: str, *parts: str) -> bytes:
        """32 bytes that are always the same for the same parts, and random to anyone else."""
        return _mac(self._derive_keys[0], (purpose, *parts))

    def derive_all(self, purpose: str, *parts: str) -> list[bytes]:
        """`derive` under every key, the current one first."""
        return [_mac(key, (purpose, *parts)) for key in self._derive_keys]

    def sign(self, purpose: str, *parts: str) -> str:
        """A signature of the parts for one purpose: 22 letters and digits, 128 bits."""
        return _signature(self.derive(purpose, *parts))

    def verify(self, signature: str, purpose: str, *parts: str) -> bool:
        """Whether `sign` made the signature, with any of the keys. False for text that can't be encoded."""
        try:
            given = signature.encode()
            known = [_signature(key).encode() for key in self.derive_all(purpose, *parts)]
        except UnicodeEncodeError:
            return False
        # Compared with each before `any`: the duration must not reveal which key matched.
        matches = [hmac.compare_digest(given, each) for each in known]
        return any(matches)


def mark_of(key_id: str) -> str:
    """The first `MARK_CHARACTERS` of all values under the key of this id."""
    return base64.urlsafe_b64encode(_VERSION + bytes.fromhex(key_id)).decode()


def key_id_in(token: str) -> str | None:
    """The id of the key that encrypted a value, of which the first `MARK_CHARACTERS` are enough. None for
    values of releases that did not name it, and for what is no encrypted value."""
    try:
        content = base64.b64decode(token[:MARK_CHARACTERS].encode(), b"-_", validate=True)
    except ValueError:
        return None
    is_named = len(content) == 1 + _ID_BYTES and content[:1] == _VERSION and content[1] & 0x80
    return content[1:].hex() if is_named else None


def _key_id(key: str) -> str:
    made = bytearray(_subkey(key, "id")[:_ID_BYTES])
    made[0] |= 0x80
    return made.hex()


def _signature(derived: bytes) -> str:
    return encode_base62(derived[:_SIGNATURE_BYTES], ID_WIDTH)


def _bound(row: Row) -> bytes:
    """The prefix of a text that is bound to its row; empty without a row."""
    return _BOUND + _mac(b"row", row) if row else b""


def _subkey(key: str, purpose: str) -> bytes:
    # Separate keys per purpose: what one use reveals about its key can't affect the others.
    info = f"msgsvc/{purpose}".encode()
    return HKDF(SHA256(), length=SUBKEY_BYTES, salt=None, info=info).derive(key.encode())


def _mac(key: bytes, parts: Sequence[str]) -> bytes:
    # Each part follows its length, so that ("ab", "c") and ("a", "bc") always differ.
    encoded = [part.encode() for part in parts]
    message = b"".join(len(part).to_bytes(8, "big") + part for part in encoded)
    return hmac.digest(key, message, hashlib.sha256)
