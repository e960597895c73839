"""Device authorization without a database: user codes, polls, and the parts from fakes."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Route

from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_oidc import plugin
from msgsvc_oidc.authorization.models import DeviceAnswered
from msgsvc_oidc.device.endpoint import DeviceEndpoint
from msgsvc_oidc.device.models import DeviceRequest
from msgsvc_oidc.device.polling import DeviceGrants
from msgsvc_oidc.device_pages.pages import DevicePages
from msgsvc_oidc.device_pages.rendering import DeviceTemplates
from msgsvc_oidc.protocol.authorize import next_step
from msgsvc_oidc.protocol.device import ALPHABET, device_response, read_user_code, shown_user_code
from msgsvc_oidc.protocol.errors import OAuthError, RedirectError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import check_poll, requested_scopes
from msgsvc_oidc.settings import OidcSettings
from plugins.areas.oidc.tests.unit.test_parts import CLIENT, PENDING, REQUEST, SESSION, Parts

DEVICE = DeviceRequest(
    project_id=PROJECT,
    request_id="dev_1",
    client_id="app_1",
    status="pending",
    scopes=("openid",),
    interval_s=5,
    expires_at_ms=1000,
)


@pytest.fixture
def parts() -> Parts:
    return Parts(plugin_context(plugin=plugin, settings=[OidcSettings()]))


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


async def test_a_device_code_that_we_did_not_make_costs_no_query(parts: Parts) -> None:
    grants = DeviceGrants(
        db=parts.core.db,
        references=parts.references,
        consents=parts.consents,
        polls=parts.polls,
    )

    with pytest.raises(OAuthError, match="invalid_grant"):
        await grants.take(CLIENT, Parameters([("device_code", "dev_1")]))
    assert parts.core.db.statements == []


async def test_the_code_is_stored_as_a_hash(parts: Parts) -> None:
    parts.core.db.answers.append(1)
    started = await parts.devices.start(CLIENT, ("openid",), ())

    [(_, stored)] = parts.core.db.statements
    assert started.user_code not in stored.values()
    assert parts.core.secrets.keyed_hash("device", started.user_code) in stored.values()
    assert started.user_code not in repr(started)


async def test_a_code_that_is_in_use_is_drawn_again(parts: Parts) -> None:
    parts.core.db.answers += [0, 1]
    await parts.devices.start(CLIENT, ("openid",), ())

    first, second = (params["user_code_hash"] for _, params in parts.core.db.statements)
    assert first != second


async def test_the_answer_for_a_device_goes_to_no_redirect_uri(parts: Parts) -> None:
    pending = replace(PENDING, device_id="dev_1")
    tx = FakeTx(answers=[1, 1, 0])
    error = RedirectError("access_denied", "no")

    allowed = await parts.endings.allow(tx, CLIENT, pending, SESSION, agreed=True)
    refused = await parts.endings.refuse(tx, CLIENT, pending, error)

    assert isinstance(allowed, DeviceAnswered)
    assert isinstance(refused, DeviceAnswered)
    assert (allowed.allowed, refused.allowed) == (True, False)
    with pytest.raises(UnusableRequest):
        await parts.endings.allow(tx, CLIENT, pending, SESSION, agreed=True)


async def test_pages_and_endpoint_of_an_unknown_issuer_are_not_found(parts: Parts) -> None:
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": [],
            "path_params": {"project_id": "nobody"},
        }
    )
    pages = DevicePages(
        issuers=parts.issuers,
        limit=parts.limit,
        clients=parts.clients,
        devices=parts.devices,
        authorizations=parts.authorizations,
        cookies=parts.cookies,
        responses=parts.responses,
        templates=DeviceTemplates(parts.core.texts),
    )
    endpoint = DeviceEndpoint(
        db=parts.core.db,
        issuers=parts.issuers,
        access=parts.access,
        limit=parts.limit,
        devices=parts.devices,
        journal=parts.journal,
    )

    (route,) = pages.routes()
    assert isinstance(route, Route)
    assert (await route.endpoint(request)).status_code == 404
    with pytest.raises(NotFound):
        await parts.access.authenticate(request, Parameters([]))
    assert len(endpoint.routes()) == 1
