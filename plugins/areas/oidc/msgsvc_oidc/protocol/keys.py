"""Signing keys: making them, their public form, signatures, and when each is published and signs (JWK: RFC
7517; JWS: RFC 7515; OpenID Connect Core 1.0, section 10.1.1)."""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_oidc.protocol.clients import SigningAlg

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, KeyParameters, OKPKey, RSAKey
    from joserfc.jws import JWSRegistry

    PrivateKey = RSAKey | ECKey | OKPKey

#: `next` is published and does not sign yet, `retired` is published and signs no more.
KeyStatus = Literal["next", "current", "retired"]

#: Bits of an RSA key: what NIST SP 800-57 holds good until 2030.
RSA_BITS = 2048

#: Bits of a client's RSA key, and a little: a longer one costs time at each request.
MAX_RSA_BITS = 8192 + 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key pair; the private half is encrypted."""

    key_id: str
    alg: SigningAlg
    status: KeyStatus
    public_jwk: Mapping[str, Any]
    private_sealed: str = field(repr=False)
    #: When it got its status.
    changed_at_ms: int


@dataclass(frozen=True, slots=True)
class Rotation:
    """What has to change in the keys of an algorithm: the key that signs from now on, the one that stops,
    whether a next one has to be made, and those to delete."""

    promoted: SigningKey | None = None
    retired: SigningKey | None = None
    makes_next: bool = False
    deleted: Sequence[SigningKey] = ()


def rotation_of(
    keys: Collection[SigningKey],
    now_ms: int,
    *,
    period_ms: int,
    cached_ms: int,
    kept_ms: int,
    at_once: bool = False,
) -> Rotation:
    """What has to change now in the keys of one algorithm.

    A key signs for `period_ms`. The next one is published for `cached_ms` before it signs, so that no client
    meets a key that its cache lacks; a retired one stays for `kept_ms`. `at_once` promotes the next one as
    soon as it was published for long enough.
    """
    current = next((key for key in keys if key.status == "current"), None)
    following = next((key for key in keys if key.status == "next"), None)
    old = [key for key in keys if key.status == "retired" and now_ms >= key.changed_at_ms + kept_ms]
    due = current is None or at_once or now_ms >= current.changed_at_ms + period_ms
    ready = following is not None and now_ms >= following.changed_at_ms + cached_ms
    if due and ready:
        return Rotation(following, current, makes_next=True, deleted=old)
    return Rotation(makes_next=following is None, deleted=old)


def new_private_jwk(alg: SigningAlg, key_id: str) -> dict[str, Any]:
    """A new private key as JWK. An RSA key takes some 50-100 ms of processor time."""
    # Loaded with the first key, for a process that signs nothing does without: 10 MiB.
    from joserfc.jwk import ECKey, OKPKey, RSAKey  # noqa: PLC0415 - see above

    parameters: KeyParameters = {"kid": key_id, "alg": alg, "use": "sig"}
    made: PrivateKey
    if alg == "RS256":
        made = RSAKey.generate_key(RSA_BITS, parameters, private=True)
    elif alg == "ES256":
        made = ECKey.generate_key("P-256", parameters, private=True)
    else:
        made = OKPKey.generate_key("Ed25519", parameters, private=True)
    return dict(made.as_dict(private=True))


def public_jwk(private: Mapping[str, Any]) -> dict[str, Any]:
    """The public half of a private JWK."""
    return {
        name: value
        for name, value in private.items()
        if name not in {"d", "p", "q", "dp", "dq", "qi", "oth", "key_ops"}
    }


class Signer:
    """A private key that signs JWTs (RFC 7519)."""

    def __init__(self, alg: SigningAlg, key_id: str, private: Mapping[str, Any]) -> None:
        from joserfc.jwk import import_key  # noqa: PLC0415 - see `new_private_jwk`

        self.alg, self.key_id = alg, key_id
        self._key = import_key(dict(private))

    def sign(self, claims: Mapping[str, Any], typ: str = "JWT") -> str:
        """The compact form (RFC 7515, section 7.1)."""
        from joserfc import jwt  # noqa: PLC0415 - see `new_private_jwk`

        header = {"alg": self.alg, "kid": self.key_id, "typ": typ}
        return jwt.encode(header, dict(claims), self._key, registry=_registry((self.alg,)))


@cache
def _registry(algorithms: tuple[str, ...]) -> "JWSRegistry":
    """The algorithms, without the warning that joserfc gives for the name `EdDSA`: RFC 9864 has one name for
    each curve instead, which clients don't know yet, and holds the signature as good as before."""
    from joserfc.jws import JWSRegistry  # noqa: PLC0415 - see `new_private_jwk`

    registry = JWSRegistry(algorithms=list(algorithms))
    eddsa = copy(JWSRegistry.algorithms["EdDSA"])
    eddsa.security_warning = None
    registry.algorithms = {**JWSRegistry.algorithms, "EdDSA": eddsa}
    return registry


def verified_claims(
    token: str, keys: Sequence[Mapping[str, Any]], algorithms: Sequence[str]
) -> dict[str, Any] | None:
    """The claims of a JWT that one of the public keys signed by one of the algorithms; None for any other.

    The algorithm comes from the list, never from the token alone: `none` and a public key used as a secret
    (RFC 8725, section 3.1) fail here.
    """
    from joserfc import jwt  # noqa: PLC0415 - see `new_private_jwk`
    from joserfc.errors import JoseError  # noqa: PLC0415 - see `new_private_jwk`
    from joserfc.jwk import KeySet  # noqa: PLC0415 - see `new_private_jwk`

    try:
        found = jwt.decode(
            token,
            KeySet.import_key_set({"keys": list(map(dict, keys))}),
            registry=_registry(tuple(algorithms)),
        )
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # The last ones for headers and keys that are no objects, or nested without end.
        return None
    claims = found.claims
    return claims if isinstance(claims, dict) else None


def is_signing_key(jwk: Mapping[str, Any]) -> bool:
    """Whether it is a public key by which a client's signatures can be verified: RSA of 2048 to 8192 bits,
    P-256 or Ed25519."""
    from joserfc.errors import JoseError  # noqa: PLC0415 - see `new_private_jwk`
    from joserfc.jwk import import_key  # noqa: PLC0415 - see `new_private_jwk`

    curves = {"RSA": None, "EC": "P-256", "OKP": "Ed25519"}
    kind, size = str(jwk.get("kty")), len(str(jwk.get("n", ""))) * 6
    if kind not in curves or jwk.get("crv") != curves[kind]:
        return False
    if kind == "RSA" and not RSA_BITS <= size <= MAX_RSA_BITS:
        return False
    try:
        # Reads the numbers: those of a key that is none fail only then.
        return import_key(dict(jwk)).public_key is not None
    except (JoseError, ValueError, TypeError, KeyError):
        return False


def jwk_text(jwk: Mapping[str, Any]) -> str:
    """A JWK as stored."""
    return to_json(jwk)


def jwk_of_text(text: str) -> dict[str, Any]:
    """A stored JWK."""
    found = from_json(text)
    assert isinstance(found, dict)
    return found
