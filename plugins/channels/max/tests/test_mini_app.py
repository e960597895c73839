"""Who opened the mini app, from data that only the platform can have signed."""

import hmac
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import ChannelUser, InvalidMiniApp
from msgsvc_max.mini_app import read_init_data

TOKEN = "f9LHodD0cOJ-vector-token"

FIELDS = {
    "auth_date": "1733485316394",
    "query_id": "158b120b-7aa3-4a0f-a198-52ace06d0658",
    "start_param": "sub_1-2_3",
    "user": '{"language_code":"ru","first_name":"Вася & Co","last_name":"","photo_url":null,'
    '"username":"vasya","id":400}',
}

#: Of FIELDS by TOKEN, computed with OpenSSL:
#: key=$(printf %s "$TOKEN" | openssl dgst -sha256 -hmac WebAppData | sed 's/.* //')
#: printf %s "$LINES" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$key
HASH = "8c3e84c24de9cbeeabcd16272d44355ea68df67d7cb264c78c2894670c93a134"

SIGNED = urlencode({**FIELDS, "hash": HASH}, quote_via=quote)


def test_signed_data_says_who_opened_it() -> None:
    opened = read_init_data(SIGNED, TOKEN)

    assert opened.user == ChannelUser("400", "Вася & Co", "vasya", "ru")
    assert opened.signed_at_ms == 1733485316394
    assert opened.start_payload == "sub_1-2_3"


def test_data_as_it_stands_in_the_address_is_read_too() -> None:
    assert read_init_data(quote(SIGNED, safe=""), TOKEN) == read_init_data(SIGNED, TOKEN)


def test_what_stands_beside_the_data_is_not_signed() -> None:
    beside = f"{SIGNED}&WebAppPlatform=ios&WebAppVersion=25.9"

    assert read_init_data(beside, TOKEN) == read_init_data(SIGNED, TOKEN)


def test_of_two_fields_the_signed_one_is_read() -> None:
    assert read_init_data(f"user=%7B%22id%22%3A1%7D&{SIGNED}", TOKEN).user.user_id == "400"


@pytest.mark.parametrize(
    ("auth_date", "signed_at_ms"), [("1662771648", 1662771648000), ("1733485316394", 1733485316394)]
)
def test_seconds_are_told_from_milliseconds(auth_date: str, signed_at_ms: int) -> None:
    signed = signature_of({**FIELDS, "auth_date": auth_date})

    assert read_init_data(signed, TOKEN).signed_at_ms == signed_at_ms


@pytest.mark.parametrize(
    "fields",
    [
        {"auth_date": "1", "query_id": "x"},
        {"user": '{"id":1}'},
        {"auth_date": "soon", "user": '{"id":1}'},
        {"auth_date": "1" * 5000, "user": '{"id":1}'},
        {"auth_date": "1", "user": "[]"},
        {"auth_date": "1", "user": "{"},
        {"auth_date": "1", "user": '{"id":"1"}'},
        {"auth_date": "1", "user": '{"id":true}'},
        {"auth_date": "1", "user": '{"id":1,"username":2}'},
    ],
)
def test_signed_data_that_says_nothing_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidMiniApp, match="does not say who"):
        read_init_data(signature_of(fields), TOKEN)


def signature_of(fields: dict[str, str]) -> str:
    """The fields, signed for the bot."""
    lines = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    key = hmac.digest(b"WebAppData", TOKEN.encode(), "sha256")
    return urlencode({**fields, "hash": hmac.digest(key, lines.encode(), "sha256").hex()})


@pytest.mark.parametrize(
    "data",
    [
        "",
        "hash=",
        "x",
        "&&",
        "a=%ff",
        f"hash={HASH}",
        SIGNED.replace("400", "401"),
        SIGNED.replace(HASH, HASH[::-1]),
        SIGNED.replace(HASH, HASH.upper()),
        SIGNED.replace(HASH, "ё"),
        SIGNED.replace(f"&hash={HASH}", ""),
        f"{SIGNED}&user=%7B%22id%22%3A1%7D",
        f"{SIGNED}&extra=1",
        f"{SIGNED}&x={'x' * 20_000}",
    ],
)
def test_data_that_the_platform_did_not_sign_is_refused(data: str) -> None:
    with pytest.raises(InvalidMiniApp):
        read_init_data(data, TOKEN)


def test_data_for_another_bot_is_refused() -> None:
    with pytest.raises(InvalidMiniApp, match="not signed for this bot"):
        read_init_data(SIGNED, TOKEN + "x")


async def test_the_channel_reads_what_the_platform_gives_its_page(channel, platform) -> None:
    ann = platform.person("Ann", username="ann")

    opened = channel.verify_mini_app(platform.init_data(ann, "form_1"))

    assert (opened.user.user_id, opened.user.first_name) == (str(ann.user_id), "Ann")
    assert opened.start_payload == "form_1"
    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(platform.init_data(ann, token="another"))


@settings(deadline=None)  # other work on the machine
@given(st.text())
def test_any_text_is_refused(data: str) -> None:
    with pytest.raises(InvalidMiniApp):
        read_init_data(data, TOKEN)
