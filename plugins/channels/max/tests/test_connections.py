"""Where calls go: through a proxy, and to a platform whose certificate few machines trust."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from msgsvc_devkit.platforms.max.api import application


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of an authority that no machine knows, for 127.0.0.1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A root of tests")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "root.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.fixture
async def secure_url(platform, certificate: Path) -> AsyncIterator[str]:
    """The fake behind that certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    runner = web.AppRunner(application(platform), access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    yield f"https://127.0.0.1:{site.port}"
    await runner.cleanup()


async def test_a_certificate_is_trusted_where_its_authority_is_named(
    make_channel, secure_url, certificate
):
    without = await (await make_channel(base_url=secure_url)).check()
    with_it = await (await make_channel(base_url=secure_url, ca_file=str(certificate))).check()

    assert (without.ok, without.revoked) == (False, False)
    assert with_it.ok


async def test_every_call_goes_through_the_proxy(make_channel, platform):
    # A proxy is asked for whole addresses; the fake takes them as if they were its own.
    channel = await make_channel(base_url="http://max.invalid/", proxy=platform.url)

    health = await channel.check()

    assert health.ok
    assert platform.calls[0].headers["Host"] == "max.invalid"


async def test_a_proxy_that_is_away_is_named_without_its_password(make_channel):
    proxy = "http://user:pa55word@127.0.0.1:1"
    channel = await make_channel(base_url="http://max.invalid", proxy=proxy)

    health = await channel.check()

    assert not health.ok
    assert "pa55word" not in health.detail
