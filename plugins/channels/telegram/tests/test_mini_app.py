"""Who opened a mini app, by what Telegram signed."""

import hashlib
import hmac
import json
from urllib.parse import quote, urlencode

import pytest

from msgsvc_core.channels import ChannelUser, InvalidMiniApp

ANNA = {"id": 1001, "first_name": "Anna & Co", "username": "anna_k", "language_code": "ru"}
FIELDS = {
    "query_id": "AAHdF6IQAAAAAN0XohDhrOrc",
    "user": json.dumps(ANNA),
    "auth_date": "1662771648",
    "start_param": "form_7",
    "signature": "c2lnbmVkIGJ5IHRlbGVncmFt",
}


def signed(token: str, fields: dict[str, str]) -> str:
    """As the documentation says it, step by step, apart from the code under test."""
    check = "\n".join(sorted(f"{name}={value}" for name, value in fields.items()))
    secret = hmac.new(b"WebAppData", token.encode(), hashlib.sha256).digest()
    digest = hmac.new(secret, check.encode(), hashlib.sha256).hexdigest()
    return urlencode({**fields, "hash": digest}, quote_via=quote)


@pytest.fixture
def token(telegram) -> str:
    return telegram.bot.token


def test_what_telegram_signed_is_read(channel, token):
    found = channel.verify_mini_app(signed(token, FIELDS))

    assert found.user == ChannelUser("1001", "Anna & Co", "anna_k", "ru")
    assert found.signed_at_ms == 1_662_771_648_000
    assert found.start_payload == "form_7"


def test_a_known_signature_is_accepted(make_channel):
    # Computed with `openssl dgst -sha256 -mac HMAC`, for this token and these two fields.
    channel = make_channel(token="123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11")
    user = '{"id":279058397,"first_name":"Vladislav"}'
    digest = "2e8ff1d15ce35a21b4d730e5ca08e4553df4f57ea5b8a0e26bc732b4174da675"

    found = channel.verify_mini_app(f"user={quote(user)}&auth_date=1662771648&hash={digest}")

    assert found.user == ChannelUser("279058397", "Vladislav")


@pytest.mark.parametrize(
    "change",
    [
        {"user": json.dumps({**ANNA, "id": 1002})},
        {"auth_date": "1762771648"},
        {"start_param": "form_8"},
        {"is_admin": "1"},
    ],
)
def test_what_was_changed_afterwards_is_refused(channel, token, change):
    digest = signed(token, FIELDS).rpartition("hash=")[2]

    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(urlencode({**FIELDS, **change, "hash": digest}))


async def test_what_was_signed_for_another_bot_is_refused(channel, telegram):
    other = telegram.add_bot("other_bot")

    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(signed(other.token, FIELDS))


@pytest.mark.parametrize(
    "fields",
    [
        {"auth_date": "1662771648"},
        {"user": json.dumps(ANNA)},
        {"user": "no JSON", "auth_date": "1662771648"},
        {"user": "[]", "auth_date": "1662771648"},
        {"user": '{"id": "1001", "first_name": "A"}', "auth_date": "1662771648"},
        {"user": json.dumps(ANNA), "auth_date": "yesterday"},
        {"user": "[" * 100_000, "auth_date": "1"},
    ],
)
def test_what_is_signed_but_does_not_say_who_and_when_is_refused(channel, token, fields):
    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(signed(token, fields))


@pytest.mark.parametrize(
    "init_data",
    ["", "hash=", "hash=é", "%", "a", "=&=", "user=%ff&hash=1", "a=1&" * 60, "\ud83c=1&hash=2"],
)
def test_rubbish_is_refused(channel, init_data):
    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(init_data)


def test_a_field_that_is_named_twice_is_refused(channel, token):
    with pytest.raises(InvalidMiniApp):
        channel.verify_mini_app(signed(token, FIELDS) + "&start_param=form_8")
