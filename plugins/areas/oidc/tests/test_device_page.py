"""The page on which a person enters or confirms the code of their device."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from msgsvc_core.plugins.sign_ins import PageSignIn
from plugins.areas.oidc.tests.conftest import Visitor
from plugins.areas.oidc.tests.devices import DEVICE_CLIENT, answer, enter, poll, start


@pytest.fixture
async def tv(register) -> dict[str, Any]:
    return await register(**DEVICE_CLIENT)


@pytest.fixture
def oidc_settings(oidc_settings: dict[str, Any]) -> dict[str, Any]:
    return {**oidc_settings, "device_codes_per_minute_per_address": 5}


async def error_of(person: Visitor, client: dict[str, Any], device_code: str) -> str:
    return (await poll(person, client, device_code)).json()["error"]


async def test_the_question_names_the_client_and_has_a_number(ann: Visitor, tv):
    codes = await start(ann, tv)
    page = await enter(ann, codes["user_code"].lower().replace("-", " "))

    asked = ann.sign_ins.latest.request
    assert (page.status_code, isinstance(asked, PageSignIn)) == (303, True)
    assert (asked.requester_name, asked.number_matching) == ("TV", True)


async def test_the_complete_uri_asks_to_compare_the_code_and_starts_nothing(
    ann: Visitor, tv, register
):
    codes = await start(ann, tv)
    await ann.tokens(await register(first_party=True))
    started = len(ann.sign_ins.started)
    shown = await ann.http.get(codes["verification_uri_complete"])

    assert shown.status_code == 200
    assert "Does your device show this code?" in shown.text
    assert codes["user_code"] in shown.text
    assert len(ann.sign_ins.started) == started
    assert await error_of(ann, tv, codes["device_code"]) == "authorization_pending"


async def test_a_code_in_the_url_is_not_looked_up(ann: Visitor, tv):
    known = await ann.http.get((await start(ann, tv))["verification_uri_complete"])
    unknown = await ann.http.get(f"{ann.issuer}/device", params={"user_code": "BCDF-GHJK"})

    assert known.status_code == unknown.status_code == 200
    assert "BCDF-GHJK" in unknown.text


async def test_what_is_no_code_in_the_url_is_not_shown(ann: Visitor):
    shown = await ann.http.get(f"{ann.issuer}/device", params={"user_code": "<b>call us</b>"})

    assert "Enter the code" in shown.text
    assert "call us" not in shown.text


async def test_a_browser_that_is_signed_in_is_still_asked(ann: Visitor, register):
    client = await register(**DEVICE_CLIENT, first_party=True)
    first = await start(ann, client)
    await answer(ann, first["user_code"])
    second = await start(ann, client)

    page = await enter(ann, second["user_code"])
    waiting = await error_of(ann, client, second["device_code"])
    await ann.answer_consent(page, "allow")

    assert "/consent/" in urlsplit(page.headers["Location"]).path
    assert len(ann.sign_ins.started) == 1
    assert waiting == "authorization_pending"
    assert (await poll(ann, client, second["device_code"])).status_code == 200


async def test_a_form_of_another_site_enters_no_code(ann: Visitor, tv):
    codes = await start(ann, tv)
    page = await ann.http.post(f"{ann.issuer}/device", data={"user_code": codes["user_code"]})

    assert page.status_code == 400
    assert ann.sign_ins.started == {}


async def test_the_consent_names_the_client_and_warns_of_codes_that_others_sent(ann: Visitor, tv):
    codes = await start(ann, tv, scope="openid profile notify")
    await enter(ann, codes["user_code"])
    page = await ann.press_yes("number")
    shown = await ann.http.get(urlsplit(page.headers["Location"]).path)

    assert "Allow TV?" in shown.text
    assert "Only allow it if the device is in front of you." in shown.text


async def test_a_wrong_code_is_said(ann: Visitor):
    unknown = await enter(ann, "BCDF-GHJK")
    malformed = await enter(ann, '"><script>')

    assert (unknown.status_code, "has expired" in unknown.text) == (400, True)
    assert 'value="BCDF-GHJK"' in unknown.text
    assert (malformed.status_code, "eight letters" in malformed.text) == (400, True)
    assert "<script>" not in malformed.text


async def test_guesses_are_limited_by_address(ann: Visitor, tv):
    for _ in range(5):
        await enter(ann, "BCDF-GHJK")
    page = await enter(ann, (await start(ann, tv))["user_code"])

    assert page.status_code == 429
    assert int(page.headers["Retry-After"]) <= 60


async def test_a_code_of_another_project_leads_nowhere(ann: Visitor, tv, make_tenant):
    codes = await start(ann, tv)
    path = f"/oidc/{(await make_tenant(ann.service, 'Other')).project.project_id}/device"
    opened = await ann.http.get(path)
    page = await ann.http.post(path, data={"user_code": codes["user_code"]})

    assert opened.status_code == 200
    assert page.status_code == 400


async def test_a_code_that_was_answered_leads_nowhere(ann: Visitor, tv):
    codes = await start(ann, tv)
    await answer(ann, codes["user_code"], "deny")

    assert (await enter(ann, codes["user_code"])).status_code == 400


async def test_the_page_is_in_the_language_of_the_browser_or_the_link(ann: Visitor):
    by_browser = await ann.http.get(f"{ann.issuer}/device", headers={"Accept-Language": "ru"})
    by_link = await ann.http.get(f"{ann.issuer}/device?user_code=BCDF-GHJK&lang=ru")

    assert "Введите код" in by_browser.text
    assert "Ваше устройство показывает этот код?" in by_link.text


async def test_the_page_can_not_be_framed(ann: Visitor):
    page = await ann.http.get(f"{ann.issuer}/device")

    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
