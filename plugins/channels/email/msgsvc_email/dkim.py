"""Signs messages by DKIM (RFC 6376), with RSA or Ed25519 (RFC 8463)."""

import base64
import hashlib
import re

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from msgsvc_core.kernel.errors import InvalidValue

#: Bits of an RSA key that receivers accept (RFC 8301, section 3.2).
MIN_RSA_BITS, MAX_RSA_BITS = 1024, 4096

#: Fields that are signed where they are there.
SIGNED = (
    "From", "To", "Subject", "Date", "Message-ID", "Reply-To", "In-Reply-To", "References",
    "Auto-Submitted", "Content-Language", "List-Unsubscribe", "List-Unsubscribe-Post", "MIME-Version",
    "Content-Type", "Content-Transfer-Encoding",
)  # fmt: skip

#: Fields of which nobody may add another one: they are signed once more than they are there.
OVERSIGNED = (
    "From",
    "To",
    "Subject",
    "Date",
    "Reply-To",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
)

_FIELD = re.compile(rb"^([!-9;-~]++)[ \t]*+:((?:[^\r\n]|\r\n[ \t])*+)\r\n", re.MULTILINE)

_SPACES = re.compile(rb"  +")

Key = RSAPrivateKey | Ed25519PrivateKey


def read_key(pem: str) -> Key:
    """Raises `InvalidValue`, which does not show the key."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        raise InvalidValue("must be a private key as PEM, without a password") from None
    if isinstance(key, RSAPrivateKey) and MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        return key
    if isinstance(key, Ed25519PrivateKey):
        return key
    raise InvalidValue("must be an RSA key of 1024 to 4096 bits, or an Ed25519 key")


class Signer:
    """Signs for a domain; receivers look the public key up at `<selector>._domainkey.<domain>`."""

    def __init__(self, key: Key, domain: str, selector: str) -> None:
        self._key = key
        self._domain = domain
        self._selector = selector

    def signed(self, content: bytes, at_s: int) -> bytes:
        """The message with `DKIM-Signature` before its other fields. Its lines end with CRLF."""
        head, _, body = content.partition(b"\r\n\r\n")
        fields = _FIELD.findall(head + b"\r\n")
        names = _names([name.decode("ascii").lower() for name, _ in fields])
        algorithm = "rsa-sha256" if isinstance(self._key, RSAPrivateKey) else "ed25519-sha256"
        body_hash = base64.b64encode(hashlib.sha256(canonical_body(body)).digest()).decode()
        value = (
            f" v=1; a={algorithm}; c=relaxed/relaxed; d={self._domain};\r\n"
            f" s={self._selector}; t={at_s}; bh={body_hash};\r\n"
            f" h={_folded(names)};\r\n b="
        )
        data = signed_data(fields, names, value.encode())
        return b"DKIM-Signature:" + value.encode() + _wrapped(self._sign(data)) + b"\r\n" + content

    def _sign(self, data: bytes) -> bytes:
        if isinstance(self._key, RSAPrivateKey):
            return self._key.sign(data, PKCS1v15(), SHA256())
        # RFC 8463, section 3: the hash is what is signed.
        return self._key.sign(hashlib.sha256(data).digest())


def canonical_body(body: bytes) -> bytes:
    """As `relaxed` has it: RFC 6376, section 3.4.4."""
    # Over all of it at once: a file of 10 MB has 180,000 lines.
    body = _SPACES.sub(b" ", body.replace(b"\t", b" ")).replace(b" \r\n", b"\r\n").rstrip(b" ")
    end = len(body)
    while body[max(0, end - 2) : end] == b"\r\n":
        end -= 2
    return body[:end] + b"\r\n" if end else b""


def canonical_field(name: bytes, value: bytes) -> bytes:
    """As `relaxed` has it: RFC 6376, section 3.4.2."""
    text = re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b""))
    return name.lower() + b":" + text.strip(b" \t")


def signed_data(fields: list[tuple[bytes, bytes]], names: list[str], value: bytes) -> bytes:
    """What a signature is over: the named fields, the last of a name first, and the signature's own."""
    left = list(reversed(fields))
    found = []
    for name in names:
        for number, (given, content) in enumerate(left):
            if given.decode("ascii").lower() == name:
                found.append(canonical_field(given, content) + b"\r\n")
                del left[number]
                break
    return b"".join(found) + canonical_field(b"DKIM-Signature", value)


def _names(there: list[str]) -> list[str]:
    signed = [name for field in SIGNED for name in there if name == field.lower()]
    return signed + [field.lower() for field in OVERSIGNED]


def _folded(names: list[str]) -> str:
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 68:
            lines.append(line)
            line = ""
        line += f"{name}:"
    return "\r\n  ".join([*lines, line]).rstrip(":")


def _wrapped(signature: bytes) -> bytes:
    text = base64.b64encode(signature)
    return b"\r\n  ".join(text[at : at + 72] for at in range(0, len(text), 72))
