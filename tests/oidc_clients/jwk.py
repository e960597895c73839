"""Keys of clients as JWK (RFC 7517)."""

import base64

from cryptography.hazmat.primitives.asymmetric import ec, rsa

KID = "client-key"


def ec_jwks() -> tuple[dict[str, object], dict[str, str]]:
    """A new P-256 key: the JWK set to register, and the private JWK that the client keeps."""
    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.private_numbers()
    point = numbers.public_numbers
    public = {
        "kty": "EC",
        "crv": "P-256",
        "x": _coordinate(point.x),
        "y": _coordinate(point.y),
        "kid": KID,
        "alg": "ES256",
        "use": "sig",
    }
    secret = {name: public[name] for name in ("kty", "crv", "x", "y", "kid")}
    return {"keys": [public]}, secret | {"d": _coordinate(numbers.private_value)}


def rsa_jwks() -> tuple[dict[str, object], rsa.RSAPrivateKey]:
    """A new RSA key: the JWK set to register, and the key itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    numbers = key.public_key().public_numbers()
    public = {
        "kty": "RSA",
        "n": _number(numbers.n, 256),
        "e": _number(numbers.e, 3),
        "kid": KID,
        "alg": "RS256",
        "use": "sig",
    }
    return {"keys": [public]}, key


def _number(number: int, length: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(length, "big")).rstrip(b"=").decode()


def _coordinate(number: int) -> str:
    return _number(number, 32)
