"""What the journal keeps of headers."""

from msgsvc_webhooks.headers import (
    KEPT_HEADER_BYTES,
    KEPT_VALUE_LENGTH,
    dumped,
    kept,
    loaded,
)


def test_headers_are_kept_in_their_order_until_there_are_too_many() -> None:
    given = [(f"X-{number}", "v" * 100) for number in range(100)]
    found = kept(given)

    assert found == tuple(given[: len(found)])
    bytes_kept = sum(len(name) + len(value) for name, value in found)
    assert KEPT_HEADER_BYTES - 105 < bytes_kept <= KEPT_HEADER_BYTES


def test_a_long_value_is_cut_off_and_what_a_database_refuses_is_replaced() -> None:
    [(_, long), (_, bad)] = kept([("X-Long", "v" * 10_000), ("X-Bad", "a\0b")])

    assert long == "v" * KEPT_VALUE_LENGTH + "…"
    assert bad == "a\ufffdb"


def test_sessions_of_the_receiver_are_not_kept() -> None:
    assert kept([("Set-Cookie", "session=1"), ("Server", "x")]) == (
        ("Set-Cookie", "…"),
        ("Server", "x"),
    )


def test_what_is_stored_is_read_again_and_old_attempts_have_none() -> None:
    headers = (("X-One", "1"), ("X-Zwei", "ä"))

    assert loaded(dumped(headers)) == headers
    assert dumped(()) is None
    assert loaded(None) == ()
