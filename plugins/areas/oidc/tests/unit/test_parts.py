"""Tokens, sign-ins and limits of the provider, one by one."""

from dataclasses import replace

import pytest
from starlette.responses import Response

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, RateLimitProject
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.sign_ins import PageSignIn
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.grants.references import AccessToken
from msgsvc_oidc.journal.store import list_entries
from msgsvc_oidc.people import People
from msgsvc_oidc.protocol.errors import OAuthError, UnusableRequest
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.token import Grant, RefreshRequest, Replayed, check_refresh
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns
from plugins.areas.oidc.tests.unit.provider import (
    BASE_URL,
    CALLBACK,
    CLIENT,
    PENDING,
    browser_request,
    register,
    sign_in_pages,
)

#: An id of the right shape.
GRANT_ID = "gra_" + "0" * 22

GRANT = Grant(
    project_id=PROJECT,
    grant_id=GRANT_ID,
    client_id="app_1",
    subscriber_id="sub_1",
    subject="sub_1",
    scopes=("openid",),
    auth_time_ms=0,
    method="button",
    created_at_ms=0,
)


def test_a_token_is_read_in_its_project(records: Records) -> None:
    references, token = records.references, AccessToken(GRANT_ID, 1000, ("openid", "phone"))
    text = references.access_token(PROJECT, token)

    assert references.read_access_token(PROJECT, text) == token
    assert references.access_token(PROJECT, token) != text
    assert references.read_access_token("prj_other", text) is None


async def test_what_is_no_project_has_no_issuer_and_costs_no_query(
    without_database: MemoryCore,
) -> None:
    issuers = Records(without_database).issuers

    assert issuers.url("prj_1") == f"{BASE_URL}/oidc/prj_1"
    with pytest.raises(NotFound):
        await issuers.project("_static")


async def test_an_expired_access_token_is_refused_without_a_query(
    without_database: MemoryCore,
) -> None:
    records, now_s = Records(without_database), without_database.clock.now_ms() // 1000
    text = records.references.access_token(PROJECT, AccessToken(GRANT_ID, now_s, ("openid",)))

    with pytest.raises(OAuthError, match="expired"):
        await records.grants.find_by_access_token(PROJECT, text)


def test_without_an_interval_no_refresh_is_a_repetition_whatever_the_clocks_say() -> None:
    rotated = replace(
        GRANT,
        refresh_number=2,
        refreshed_at_ms=1001,
        refresh_expires_at_ms=9000,
        scopes=("openid",),
    )
    request = RefreshRequest(project_id=PROJECT, client_id="app_1", grant_id=GRANT_ID, number=1)

    assert check_refresh(rotated, request, 1000, reuse_ms=1) == (rotated, False)
    with pytest.raises(Replayed):
        check_refresh(rotated, request, 1000, reuse_ms=0)


async def test_a_flood_of_failures_is_no_flood_of_rows(
    core: MemoryCore, requests: Requests
) -> None:
    async with core.db.transaction() as tx:
        client = await register(core, tx)
    for _ in range(40):
        await requests.failed.record(client, "token", OAuthError("invalid_client", "no"))

    async with core.db.read() as tx:
        found = await list_entries(tx, PROJECT, client.client_id, None, 100)
    assert len(found) == 30


@pytest.mark.parametrize("core", [{"requests_per_minute_per_address": 1}], indirect=True)
async def test_an_address_that_asks_too_often_has_to_wait(requests: Requests) -> None:
    limit = requests.limit("requests")
    await limit.count(browser_request())

    with pytest.raises(RateLimitProject):
        await limit.count(browser_request())
    await limit.count(browser_request("198.51.100.9"))
    await requests.limit("logouts").count(browser_request())


async def test_a_request_that_names_no_client_is_refused(
    core: MemoryCore, requests: Requests
) -> None:
    async with core.db.transaction() as tx:
        project_id = await core.project(tx, new_id("prj"))

    with pytest.raises(OAuthError, match="does not say who it is"):
        await requests.access.authenticate(browser_request(project_id=project_id), Parameters([]))


async def test_a_person_who_was_erased_has_no_claims(core: MemoryCore) -> None:
    people = People(db=core.db, subscribers=core.subscribers, contacts=core.contacts)

    with pytest.raises(OAuthError, match="no longer known"):
        await people.get(GRANT)


# ---- browsers -----------------------------------------------------------------------------------


async def test_the_sign_in_page_names_the_client_and_comes_back_to_the_issuer(
    core: MemoryCore, tx: Tx, records: Records, sign_ins: ScriptedSignIns
) -> None:
    await sign_in_pages(core, records).open(tx, CLIENT, PENDING)

    asked = sign_ins.latest.request
    assert isinstance(asked, PageSignIn)
    assert (asked.requester_name, asked.requester_url) == ("Grafana", CALLBACK)
    assert asked.return_url == f"{BASE_URL}/oidc/{PROJECT}/return"
    assert not asked.number_matching


async def test_a_code_of_another_request_is_not_taken(
    core: MemoryCore, tx: Tx, records: Records, sign_ins: ScriptedSignIns
) -> None:
    pages = sign_in_pages(core, records)
    await pages.open(tx, CLIENT, PENDING)
    code = sign_ins.confirm(sign_ins.latest.session_id, await core.person(tx), "button")

    with pytest.raises(UnusableRequest):
        await pages.exchange(tx, PROJECT, "oar_2", code)


def test_cookies_are_only_for_this_host(records: Records) -> None:
    response = Response()
    cookies = BrowserCookies(
        issuers=records.issuers, sessions=records.sessions, references=records.references
    )
    cookies.set_session(response, PROJECT, "sid_" + "0" * 22, 60)
    cookies.set_started(response, PROJECT, "oar_" + "0" * 22, 60)

    session, started = response.headers.getlist("set-cookie")
    assert session.startswith("__Host-msgsvc-oidc-sid-")
    assert {"HttpOnly", "Path=/", "SameSite=none", "Secure"} <= set(session.split("; "))
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(started.split("; "))
