"""Signatures are those of RFC 6376 and RFC 8463."""

import base64
import hashlib
import re

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_devkit.platforms.email import Mail, Person
from msgsvc_email.dkim import canonical_body, canonical_field, signed_data

from .conftest import ChannelFactory

#: RFC 8463, appendix A.
MESSAGE = b"""From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
""".replace(b"\n", b"\r\n")
SIGNATURE = b""" v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=""".replace(b"\n", b"\r\n")
GIVEN = "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=="
PUBLIC = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="


def pem(key: rsa.RSAPrivateKey | Ed25519PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def fields_of(content: bytes) -> list[tuple[bytes, bytes]]:
    head = content.partition(b"\r\n\r\n")[0] + b"\r\n"
    return re.findall(rb"([!-9;-~]+):((?:[^\r\n]|\r\n[ \t])*)\r\n", head)


def test_the_example_of_the_standard_verifies() -> None:
    body = MESSAGE.partition(b"\r\n\r\n")[2]
    names = ["from", "to", "subject", "date", "message-id", "from", "subject", "date"]
    data = signed_data(fields_of(MESSAGE), names, SIGNATURE)

    body_hash = base64.b64encode(hashlib.sha256(canonical_body(body)).digest())
    assert body_hash == b"2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(PUBLIC))
    public.verify(base64.b64decode(GIVEN), hashlib.sha256(data).digest())


def test_relaxed_forms_are_those_of_the_standard() -> None:
    # RFC 6376, section 3.4.5.
    assert canonical_field(b"A", b" X") == b"a:X"
    assert canonical_field(b"B ".strip(), b" Y\t\r\n\tZ  ") == b"b:Y Z"
    assert canonical_body(b" C \r\nD \t E\r\n\r\n\r\n") == b" C\r\nD E\r\n"
    assert canonical_body(b"\r\n\r\n") == b""
    assert canonical_body(b"A\t\t\r\n B  \r\n \r\n\t") == b"A\r\n B\r\n"
    assert canonical_body(b"A") == b"A\r\n"


async def signed(make_channel: ChannelFactory, person: Person, key: str) -> Mail:
    channel = await make_channel(dkim_selector="s1", dkim_key=key)
    message = OutgoingMessage("Привет\n.\n..x  ").with_unsubscribe_url("https://shop.example/u")
    await channel.send(person.address, message.with_key("k"))
    return person.messages[-1]


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
async def test_a_message_arrives_with_a_signature_that_verifies(
    make_channel: ChannelFactory, ann: Person, kind: str
) -> None:
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else Ed25519PrivateKey.generate()
    mail = await signed(make_channel, ann, pem(key))
    [(name, value), *others] = fields_of(mail.raw)
    tags = dict(re.findall(r"([a-z]+)=([^;]*)", re.sub(r"\s", "", value.decode())))

    assert name == b"DKIM-Signature"
    assert (tags["d"], tags["s"]) == ("shop.example", "s1")
    assert {"list-unsubscribe", "list-unsubscribe-post"} <= set(tags["h"].split(":"))
    assert tags["h"].split(":").count("from") == 2, "another From would break the signature"
    body = mail.raw.partition(b"\r\n\r\n")[2]
    assert tags["bh"] == base64.b64encode(hashlib.sha256(canonical_body(body)).digest()).decode()
    unsigned = re.sub(rb"\bb=[^;]*$", b"b=", value)
    data = signed_data(others, tags["h"].split(":"), unsigned)
    given = base64.b64decode(tags["b"])
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        public.verify(given, data, padding.PKCS1v15(), SHA256())
    else:
        public.verify(given, hashlib.sha256(data).digest())


@pytest.mark.parametrize(
    "key", ["no key", pem(Ed25519PrivateKey.generate())[:80]], ids=["no key", "half a key"]
)
async def test_what_is_no_key_is_refused_and_not_shown(
    make_channel: ChannelFactory, key: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        await make_channel(dkim_selector="s1", dkim_key=key)

    assert key not in str(caught.value)


async def test_key_and_selector_belong_together(make_channel: ChannelFactory) -> None:
    with pytest.raises(SettingsError, match="belong together"):
        await make_channel(dkim_selector="s1")
