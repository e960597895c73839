"""Encryption and keyed hashes, and what becomes of both when the keys change."""

import base64
import re

import pytest
from cryptography.fernet import Fernet

from msgsvc_core.security.secret_box import (
    ENCRYPTED,
    MARK_CHARACTERS,
    UNNAMED,
    DecryptionError,
    SecretBox,
    _subkey,
    key_id_in,
    mark_of,
)

NEW, OLD = "n" * 32, "o" * 40


def fernet_of(key: str) -> Fernet:
    """What a release encrypted with that did not name the key in its values."""
    return Fernet(base64.urlsafe_b64encode(_subkey(key, "encrypt")))


def test_text_survives_encryption():
    box = SecretBox([NEW])

    assert box.decrypt(box.encrypt("123456:token 🔑")) == "123456:token 🔑"


def test_same_text_is_never_encrypted_the_same_way_twice():
    box = SecretBox([NEW])

    assert box.encrypt("token") != box.encrypt("token")


def test_what_an_older_key_encrypted_stays_readable():
    token = SecretBox([OLD]).encrypt("token")

    assert SecretBox([NEW, OLD]).decrypt(token) == "token"


def test_new_text_is_encrypted_with_the_first_key():
    token = SecretBox([NEW, OLD]).encrypt("token")

    assert SecretBox([NEW]).decrypt(token) == "token"


@pytest.mark.parametrize(
    "change", [lambda t: t[:-2], lambda t: "", lambda t: "é", lambda t: "A" + t]
)
def test_changed_text_can_not_be_decrypted(change):
    box = SecretBox([NEW])

    with pytest.raises(DecryptionError):
        box.decrypt(change(box.encrypt("token")))


def test_text_of_a_removed_key_can_not_be_decrypted():
    token = SecretBox([OLD]).encrypt("token")

    with pytest.raises(DecryptionError, match="was a key removed"):
        SecretBox([NEW]).decrypt(token)


@pytest.mark.parametrize("keys", [[], [""], ["x" * 31], [NEW, "short"], NEW])
def test_missing_or_short_keys_are_refused(keys):
    with pytest.raises(ValueError, match="at least 32 characters"):
        SecretBox(keys)


def test_keyed_hash_is_stable_and_differs_by_key_purpose_and_value():
    box = SecretBox([NEW])
    hashes = {
        box.keyed_hash("otp", "123456"),
        box.keyed_hash("otp", "123457"),
        box.keyed_hash("auth", "123456"),
        SecretBox([OLD]).keyed_hash("otp", "123456"),
    }

    assert len(hashes) == 4
    assert box.keyed_hash("otp", "123456") == SecretBox([NEW]).keyed_hash("otp", "123456")


def test_keyed_hash_is_64_lower_case_hex_digits():
    value = SecretBox([NEW]).keyed_hash("otp", "")

    assert len(value) == 64
    assert set(value) <= set("0123456789abcdef")


def test_keyed_hashes_are_those_of_every_key_current_first():
    assert SecretBox([NEW, OLD]).keyed_hashes("otp", "1") == [
        SecretBox([NEW]).keyed_hash("otp", "1"),
        SecretBox([OLD]).keyed_hash("otp", "1"),
    ]


def test_derive_gives_the_same_32_bytes_again():
    value = SecretBox([NEW]).derive("code", "ses_1", "nonce")

    assert len(value) == 32
    assert value == SecretBox([NEW, OLD]).derive("code", "ses_1", "nonce")


def test_parts_can_not_be_shifted_into_one_another():
    box = SecretBox([NEW])
    values = {
        box.derive("code", "ab", "c"),
        box.derive("code", "a", "bc"),
        box.derive("code", "abc"),
        box.derive("codea", "bc"),
        box.derive("code", "abc", ""),
        box.derive("code", "ab\x00c"),
        box.derive("code"),
    }

    assert len(values) == 7


def test_derive_all_gives_one_value_per_key_current_first():
    assert SecretBox([NEW, OLD]).derive_all("code", "x") == [
        SecretBox([NEW]).derive("code", "x"),
        SecretBox([OLD]).derive("code", "x"),
    ]


def test_hashes_and_derived_bytes_of_the_same_input_are_unrelated():
    box = SecretBox([NEW])

    assert box.derive("p", "x").hex() != box.keyed_hash("p", "x")


def test_neither_repr_nor_error_shows_a_key():
    short = "tooshort-secret"

    with pytest.raises(ValueError, match="secret keys") as refused:
        SecretBox([NEW, short])

    assert short not in str(refused.value)
    assert NEW not in repr(SecretBox([NEW]))
    assert repr(SecretBox([NEW, OLD])) == "<SecretBox with 2 key(s)>"


ROW, OTHER = ("webhooks_secrets.encrypted", "whe_1"), ("webhooks_secrets.encrypted", "whe_2")


@pytest.mark.parametrize("row", [OTHER, ("webhooks_secrets.encryptedwhe", "_1"), ()])
def test_a_value_that_is_bound_is_read_in_its_row_alone(row):
    box = SecretBox([NEW])
    token = box.encrypt("token", ROW)

    assert box.decrypt(token, ROW) == "token"
    with pytest.raises(DecryptionError, match="another row"):
        box.decrypt(token, row)


def test_a_value_of_before_is_read_and_bound_when_it_is_renewed():
    box = SecretBox([NEW, OLD])
    for key in (OLD, NEW):
        before = fernet_of(key).encrypt(b"token").decode()
        renewed = box.renewed(before, ROW)

        assert box.decrypt(before, ROW) == "token"
        assert renewed is not None
        assert SecretBox([NEW]).decrypt(renewed, ROW) == "token"
        assert box.renewed(renewed, ROW) is None
        with pytest.raises(DecryptionError):
            box.decrypt(renewed, OTHER)


def test_a_bound_value_of_an_older_key_stays_bound_when_it_is_renewed():
    renewed = SecretBox([NEW, OLD]).renewed(SecretBox([OLD]).encrypt("token", ROW), ROW)

    assert renewed is not None
    assert SecretBox([NEW]).decrypt(renewed, ROW) == "token"
    with pytest.raises(DecryptionError):
        SecretBox([NEW, OLD]).decrypt(renewed, OTHER)


def test_a_value_of_another_row_is_not_renewed_for_this_one():
    with pytest.raises(DecryptionError):
        SecretBox([NEW, OLD]).renewed(SecretBox([OLD]).encrypt("token", ROW), OTHER)


def test_a_value_names_its_key_in_its_first_characters():
    older, newer = SecretBox([OLD]).encrypt("token", ROW), SecretBox([NEW, OLD]).encrypt("token")
    old_id, new_id = SecretBox([NEW, OLD]).key_ids[::-1]

    assert [key_id_in(older), key_id_in(newer)] == [old_id, new_id]
    assert key_id_in(newer[:MARK_CHARACTERS]) == new_id
    assert newer[:MARK_CHARACTERS] == mark_of(new_id) == SecretBox([NEW]).current_mark
    assert newer.startswith(ENCRYPTED)
    assert re.fullmatch("[0-9a-f]{10}", new_id)
    assert new_id not in NEW.encode().hex()


@pytest.mark.parametrize("text", ["", "g", '{"a": 1}', "жжжжжжжж", "not base64!", "AAAAAAAAAAAA"])
def test_what_is_no_encrypted_value_names_no_key(text: str):
    assert key_id_in(text) is None


def test_values_of_earlier_releases_name_no_key():
    before = fernet_of(NEW).encrypt(b"token").decode()

    assert before.startswith(UNNAMED)
    assert key_id_in(before) is None
    assert SecretBox([NEW]).decrypt(before) == "token"


def test_an_earlier_release_reads_values_that_name_their_key():
    # It runs beside this one while a cluster is upgraded.
    assert fernet_of(NEW).decrypt(SecretBox([NEW]).encrypt("token")) == b"token"


def test_a_signature_is_verified_under_every_key_and_for_its_parts_alone():
    made = SecretBox([OLD]).sign("button", "yes", "ses_1")
    box = SecretBox([NEW, OLD])

    assert re.fullmatch("[0-9A-Za-z]{22}", made)
    assert box.verify(made, "button", "yes", "ses_1")
    assert not box.verify(made, "button", "no", "ses_1")
    assert not box.verify(made, "page", "yes", "ses_1")
    assert not SecretBox([NEW]).verify(made, "button", "yes", "ses_1")


@pytest.mark.parametrize("text", ["", "ж", "\ud800", "0" * 22])
def test_what_is_no_signature_is_refused_without_an_error(text: str):
    assert not SecretBox([NEW]).verify(text, "button", "yes")
    assert not SecretBox([NEW]).verify(SecretBox([NEW]).sign("button", "yes"), "button", text)
