"""TLS certificates for tests, of authorities that no machine knows."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(path: Path, name: str, *, ends_in: timedelta = timedelta(days=1)) -> Path:
    """Writes a certificate, which is its own authority, with its key; returns `path`.

    `name` is a host or an IP address. The file serves as certificate, as key and as `ca_file`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.stem)])
    made = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=2))
        .not_valid_after(datetime.now(UTC) + ends_in)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    # The key is first: Postfix asks for this order.
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def server_context(path: Path) -> ssl.SSLContext:
    """Of a server that shows the certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


def client_context(path: Path) -> ssl.SSLContext:
    """Of a client that trusts the certificate, and nothing else."""
    return ssl.create_default_context(cafile=str(path))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
