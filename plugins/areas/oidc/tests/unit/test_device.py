"""Device authorization: user codes, polls, and what is stored of them."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.device.models import DeviceRequest
from msgsvc_oidc.device.polling import DeviceGrants
from msgsvc_oidc.protocol.authorize import next_step
from msgsvc_oidc.protocol.device import ALPHABET, device_response, read_user_code, shown_user_code
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import check_poll, requested_scopes
from plugins.areas.oidc.tests.unit.provider import (
    CLIENT,
    REQUEST,
    SESSION,
    polls_of,
    register,
)

DEVICE = DeviceRequest(
    project_id=PROJECT,
    request_id="dev_1",
    client_id="app_1",
    status="pending",
    scopes=("openid",),
    interval_s=5,
    expires_at_ms=1000,
)


@pytest.mark.parametrize(
    "typed",
    [
        "WDJB-MJHT",
        "wdjbmjht",
        " wdjb mjht ",
        "WDJB\u2013MJHT",
        "\uff37\uff24\uff2a\uff22MJHT",
        "W.D.J.B.M.J.H.T",
    ],
)
def test_a_code_is_read_however_it_is_typed(typed: str) -> None:
    assert read_user_code(typed) == "WDJBMJHT"


def test_cyrillic_letters_that_look_like_those_of_a_code_are_read_as_these() -> None:
    assert read_user_code("вснк-мртх") == "BCHKMPTX"


@pytest.mark.parametrize("typed", ["", "WDJB-MJH", "WDJB-MJHTT", "WDJB-MJHA", "WDJB-MJH1", "Я" * 8])
def test_what_has_other_letters_or_another_length_is_no_code(typed: str) -> None:
    assert read_user_code(typed) is None


def test_a_long_text_is_not_read_at_all() -> None:
    assert read_user_code("-" * 57 + "WDJBMJHT") is None


def test_the_alphabet_has_no_vowels_and_no_digits() -> None:
    assert not set(ALPHABET) & set("AEIOUY0123456789")
    assert read_user_code(shown_user_code(ALPHABET[:8])) == ALPHABET[:8]


def test_the_complete_uri_holds_the_code_as_shown() -> None:
    body = device_response(
        "https://o.example/device", "d", "WDJBMJHT", expires_in_s=9, interval_s=5
    )

    assert body["verification_uri_complete"] == "https://o.example/device?user_code=WDJB-MJHT"


@pytest.mark.parametrize(
    ("found", "now_ms", "error"),
    [
        (None, 0, "invalid_grant"),
        ({"client_id": "app_2"}, 0, "invalid_grant"),
        ({"client_id": "app_2", "status": "denied"}, 0, "invalid_grant"),
        ({"status": "used"}, 0, "invalid_grant"),
        ({"status": "used"}, 2000, "invalid_grant"),
        ({"status": "denied"}, 2000, "access_denied"),
        ({"status": "expired"}, 0, "expired_token"),
        ({"status": "pending"}, 1000, "expired_token"),
        ({"status": "approved"}, 1000, "expired_token"),
    ],
)
def test_a_poll_is_told_what_became_of_the_request(
    found: dict[str, Any] | None, now_ms: int, error: str
) -> None:
    request = None if found is None else replace(DEVICE, **found)

    with pytest.raises(OAuthError) as refused:
        check_poll(request, "app_1", now_ms)
    assert refused.value.error == error


def test_a_poll_in_time_finds_the_request() -> None:
    assert check_poll(DEVICE, "app_1", 999) is DEVICE


def test_refresh_tokens_need_the_grant_type() -> None:
    given = Parameters([("scope", "openid offline_access other")])
    client = replace(
        CLIENT,
        scopes=("openid", "offline_access"),
        grant_types=("urn:ietf:params:oauth:grant-type:device_code",),
    )

    assert requested_scopes(given, client) == ("openid",)


def test_for_a_device_the_person_is_always_asked() -> None:
    step = next_step(REQUEST, CLIENT, SESSION, ("openid",), now_ms=0, device=True)
    answered = next_step(REQUEST, CLIENT, SESSION, (), now_ms=0, device=True, agreed=True)

    assert (step, answered) == ("consent", "issue")


async def test_a_device_code_that_we_did_not_make_costs_no_query(
    without_database: MemoryCore,
) -> None:
    records = Records(without_database)
    grants = DeviceGrants(
        db=without_database.db,
        references=records.references,
        consents=records.consents,
        polls=polls_of(without_database, records),
    )

    with pytest.raises(OAuthError, match="invalid_grant"):
        await grants.take(CLIENT, Parameters([("device_code", "dev_1")]))


async def test_the_code_is_stored_as_a_hash(core: MemoryCore, requests: Requests) -> None:
    async with core.db.transaction() as tx:
        client = await register(core, tx)
    started = await requests.devices.start(client, ("openid",), ())

    async with core.db.read() as tx:
        [row] = await tx.fetch_all("SELECT * FROM oidc_device_requests")
    assert started.user_code not in str(dict(row))
    assert row["user_code_hash"] == core.secrets.keyed_hash("device", started.user_code)
    assert started.user_code not in repr(started)


async def test_a_code_that_is_in_use_is_drawn_again(
    core: MemoryCore, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter("BBBBBBBB" * 2 + "CCCCCCCC")
    monkeypatch.setattr("secrets.choice", lambda _: next(drawn))
    async with core.db.transaction() as tx:
        client = await register(core, tx)
    started = [await requests.devices.start(client, ("openid",), ()) for _ in range(2)]

    assert [each.user_code for each in started] == ["BBBBBBBB", "CCCCCCCC"]
