"""What the plugin brings along: texts, upkeep, settings, rules of callbacks and payloads."""

import pytest

from msgsvc_auth import plugin
from msgsvc_auth.callbacks import check_callback_url, with_code
from msgsvc_auth.payloads import StartPayload, link_payload, read_payload, session_payload
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.kernel.errors import InvalidUrl, SettingsError
from msgsvc_devkit import settled, until

DAY_S = 24 * 3600


async def test_sessions_are_forgotten_a_week_after_they_were_opened(service, client, clock):
    old = (await client.post("/v1/auth/session", json={})).json()["session_id"]
    clock.advance(2 * DAY_S)
    # The hourly job has come by; had it only begun, it would be due again an hour after the days below.
    await settled(service)
    young = (await client.post("/v1/auth/session", json={})).json()["session_id"]
    clock.advance(5 * DAY_S + 1)

    async def forgotten():
        # Not by the API: its limit may be used up before a busy machine comes to the job.
        async with service.db.read() as tx:
            return await tx.fetch_val("SELECT COUNT(*) FROM auth_sessions") == 1

    # The job is due; what is left is that the runner notices it.
    await until(forgotten, interval_s=0.05)

    assert (await client.get(f"/v1/auth/session/{old}/status")).status_code == 404
    assert (await client.get(f"/v1/auth/session/{young}/status")).json()["status"] == "expired"


async def test_purge_runs_every_hour(service):
    every_s = {spec.name: spec.every_s for spec in service.job_specs}

    assert every_s["auth.purge"] == 3600


def test_settings_begin_with_the_numbers_of_the_interface_spec():
    settings = AuthSettings()

    assert settings.sessions_per_hour == 5
    assert settings.code_lifetime_s == 300
    assert settings.session_lifetime_s == 600
    assert settings.allow_http_callbacks is False


async def test_unknown_setting_is_refused(make_service):
    with pytest.raises(SettingsError, match=r"auth\.colour: there is no such setting"):
        await make_service(extra_plugins=[("auth", plugin)], auth={"colour": "red"})


async def test_session_of_one_service_is_nothing_to_another(make_service, make_tenant, service):
    other = await make_service(extra_plugins=[("auth", plugin)])
    here, there = await make_tenant(service), await make_tenant(other)
    session_id = (await here.client.post("/v1/auth/session", json={})).json()["session_id"]

    assert (await there.client.get(f"/v1/auth/session/{session_id}/status")).status_code == 404


async def test_event_and_error_codes_are_in_the_catalogues(service):
    assert "auth.completed" in service.events.catalogue
    assert {"auth_code_invalid", "auth_code_expired", "auth_code_used"} <= {
        error.code for error in service.errors
    }


async def test_listener_in_the_process_hears_of_a_sign_in(service, ann, sign_in):
    heard = []

    @service.on("auth.completed")
    async def listen(event):
        heard.append(event.data["first_name"])

    await sign_in(ann)

    async def told():
        return heard

    assert await until(told) == ["Ann"]


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/back",
        "https://shop.example:8443/back?from=bot&x=",
        "https://магазин.example/назад",
        "http://localhost:3000/back",
        "http://shop.localhost/back",
        "http://127.0.0.1:3000",
        "http://[::1]:3000/back",
    ],
)
def test_callback_that_can_be_registered(url):
    check_callback_url(url, allow_http=False)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must be an http or https URL"),
        ("shop.example/back", "must be an http or https URL"),
        ("javascript:alert(1)", "must be an http or https URL"),
        ("https:///back", "must be an http or https URL"),
        ("https://[::1/back", "must be an http or https URL"),
        ("https://shop.example:99999/", "must be an http or https URL"),
        ("https://shop.example/a b", "must not hold spaces"),
        ("https://shop.example/a\nb", "must not hold spaces"),
        ("https://shop.example@evil.example/", "must not hold a user name"),
        ("https://shop.example/back#top", "must not have a fragment"),
        ("https://shop.example/back#", "must not have a fragment"),
        ("https://shop.example/back?code=1", "must not have parameters named"),
        ("https://shop.example/back?state", "must not have parameters named"),
        ("http://shop.example/back", "must be https"),
        ("http://localhost.evil.example/back", "must be https"),
        ("http://10.0.0.1/back", "must be https"),
        ("https://shop.example/" + "x" * 2048, "must be at most 2048 characters"),
    ],
)
def test_callback_that_breaks_a_rule(url, problem):
    with pytest.raises(InvalidUrl, match=f"callback_url: {problem}"):
        check_callback_url(url, allow_http=False)


def test_http_callback_is_taken_where_the_setting_allows_it():
    check_callback_url("http://shop.example/back", allow_http=True)


@pytest.mark.parametrize(
    ("callback", "state", "url"),
    [
        ("https://a.example", "", "https://a.example?code=c"),
        ("https://a.example/b", "s", "https://a.example/b?code=c&state=s"),
        ("https://a.example/b?", "", "https://a.example/b?code=c"),
        ("https://a.example/b?x=1&x=%2F+&y", "", "https://a.example/b?x=1&x=%2F+&y&code=c"),
        ("https://a.example/", "a b&ё=#", "https://a.example/?code=c&state=a+b%26%D1%91%3D%23"),
    ],
)
def test_code_joins_the_query_that_is_there(callback, state, url):
    assert with_code(callback, "c", state) == url


def test_start_payload_is_a_session_or_a_link_and_never_both():
    token = "a" * 22

    assert read_payload(session_payload(token)) == StartPayload(token=token)
    assert read_payload(link_payload(token)) == StartPayload(slug=token)
    assert read_payload(link_payload("s-" + token)) == StartPayload(slug="s-" + token)
    assert read_payload(f"auth_s_{token}x") is None
