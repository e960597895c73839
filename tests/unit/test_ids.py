"""Public ids sort by creation, and can't be told from their neighbours' where that matters."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from msgsvc_core.kernel.ids import (
    ALPHABET,
    creation_ms,
    earliest_id,
    encode_base62,
    new_id,
    new_secret_id,
    new_token,
    stamped_by,
    uuid7,
)


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id("msg") for _ in range(20_000)]

    assert made == sorted(made)


def test_ids_of_many_threads_are_all_different() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id("msg"), range(20_000)))

    assert len(set(made)) == len(made)


def test_an_id_has_its_prefix_and_22_base62_characters() -> None:
    prefix, _, rest = new_id("sub").partition("_")

    assert prefix == "sub"
    assert len(rest) == 22
    assert rest.isalnum()
    assert rest.isascii()


def test_an_id_is_the_base62_of_a_uuid_of_version_7() -> None:
    digits = new_id("sub").removeprefix("sub_")
    made = 0
    for digit in digits:
        made = made * 62 + ALPHABET.index(digit)

    assert encode_base62(made.to_bytes(16, "big"), 22) == digits
    assert made >> 76 & 0xF == 7
    assert made >> 62 & 0b11 == 0b10
    assert abs((made >> 80) / 1000 - time.time()) < 5


def test_the_first_bits_are_the_milliseconds_and_the_marks_of_a_uuid_of_version_7() -> None:
    made = uuid7()

    assert abs((made >> 80) / 1000 - time.time()) < 5
    assert made >> 76 & 0xF == 7
    assert made >> 62 & 0b11 == 0b10


def test_a_secret_id_carries_another_128_random_bits() -> None:
    first, second = new_secret_id("ses"), new_secret_id("ses")

    assert len(first) == len("ses_") + 44
    assert first[-22:] != second[-22:]


def test_a_token_has_the_characters_that_its_bits_need() -> None:
    assert [len(new_token(bits)) for bits in (128, 256)] == [22, 43]


def test_base62_keeps_the_order_of_the_bytes() -> None:
    values = [bytes([high, low]) for high in range(256) for low in (0, 1, 255)]

    assert [encode_base62(v, 3) for v in values] == sorted(encode_base62(v, 3) for v in values)


def test_ids_made_from_a_time_on_follow_its_earliest() -> None:
    before = new_id("evt")
    ms = time.time_ns() // 1_000_000
    between = earliest_id("evt", ms + 1)
    while time.time_ns() // 1_000_000 <= ms:
        pass
    after = new_id("evt")

    assert before < between < after
    assert len(between) == len(after)
    assert earliest_id("evt", ms - 60_000) < before


def test_an_id_tells_when_it_was_made() -> None:
    ms = time.time_ns() // 1_000_000
    made = new_id("evt")

    assert ms <= creation_ms(made) <= time.time_ns() // 1_000_000
    assert creation_ms(earliest_id("evt", ms)) == ms


@pytest.mark.parametrize("text", ["", "evt", "evt_", "evt_0354Q06", "evt_0354Q06BNiSMPOemgj7e!z"])
def test_a_text_that_is_no_id_tells_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        creation_ms(text)


def test_ids_of_a_simulated_time_are_of_that_time_and_later_ones_of_now_again() -> None:
    past_ms = 1_600_000_000_000
    with stamped_by(lambda: past_ms * 1_000_000):
        first, second = new_id("sub"), new_id("sub")

    assert creation_ms(first) == creation_ms(second) == past_ms
    assert first < second < earliest_id("sub", past_ms + 1) < new_id("sub")
