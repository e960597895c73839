"""Signed addresses of files."""

import pytest

from msgsvc_core.files.addresses import expiry_s, is_signed, sign
from msgsvc_core.security.secret_box import SecretBox

KEY, OTHER_KEY = "a" * 32, "b" * 32
BOX = SecretBox([KEY])
NOW_MS = 1_800_000_000_000
EXPIRES_S = expiry_s(NOW_MS, hours=2)


def test_a_signature_holds_until_it_expires() -> None:
    signature = sign(BOX, "fil_1", EXPIRES_S)

    assert 2 * 3600 <= EXPIRES_S - NOW_MS // 1000 <= 3 * 3600
    assert is_signed(BOX, "fil_1", signature, EXPIRES_S * 1000 - 1)
    assert not is_signed(BOX, "fil_1", signature, EXPIRES_S * 1000)


def test_addresses_that_are_made_within_an_hour_are_the_same() -> None:
    assert expiry_s(NOW_MS, hours=2) == expiry_s(NOW_MS + 1000, hours=2)


@pytest.mark.parametrize(
    ("file_id", "change"),
    [
        ("fil_2", lambda text: text),
        ("fil_1", lambda text: f"{int(text.partition('-')[0]) + 3600}-{text.partition('-')[2]}"),
        ("fil_1", lambda text: text[:-1] + ("A" if text[-1] != "A" else "B")),
        ("fil_1", lambda text: text.partition("-")[2]),
        ("fil_1", lambda text: ""),
        ("fil_1", lambda text: text + "\n"),
    ],
)
def test_a_signature_for_another_file_or_time_is_none(file_id: str, change: object) -> None:
    assert callable(change)
    signature = change(sign(BOX, "fil_1", EXPIRES_S))

    assert not is_signed(BOX, file_id, signature, NOW_MS)


def test_a_signature_outlives_the_change_of_the_key_while_the_old_one_is_listed() -> None:
    signature = sign(BOX, "fil_1", EXPIRES_S)

    assert is_signed(SecretBox([OTHER_KEY, KEY]), "fil_1", signature, NOW_MS)
    assert not is_signed(SecretBox([OTHER_KEY]), "fil_1", signature, NOW_MS)
