"""The shape of an API key, and what is kept and shown of it."""

import hashlib

import pytest

from msgsvc_core.security.api_keys import digest, looks_like_key, new_api_key


def test_new_key_has_the_shape_the_api_promises():
    key = new_api_key()

    assert key.secret.startswith("msk_")
    assert len(key.secret) == 4 + 43
    assert looks_like_key(key.secret)


def test_every_new_key_has_the_shape_and_is_its_own():
    secrets = {new_api_key().secret for _ in range(500)}

    assert len(secrets) == 500
    assert all(looks_like_key(secret) for secret in secrets)


def test_visible_prefix_is_the_first_12_characters():
    key = new_api_key()

    assert key.prefix == key.secret[:12]


def test_digest_is_the_sha256_of_the_whole_secret():
    key = new_api_key()

    assert key.digest == digest(key.secret) == hashlib.sha256(key.secret.encode()).hexdigest()


def test_repr_does_not_show_the_secret():
    key = new_api_key()

    assert key.secret not in repr(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "msk_",
        "msk_" + "a" * 42,
        "msk_" + "a" * 44,
        "msk_" + "a" * 43 + "\n",
        " msk_" + "a" * 43,
        "MSK_" + "a" * 43,
        "key_" + "a" * 43,
        "msk_" + "a" * 42 + "-",
        "msk_" + "a" * 42 + "é",
        "msk_" + "a" * 42 + "１",
    ],
)
def test_other_text_does_not_look_like_a_key(text: str):
    assert not looks_like_key(text)
