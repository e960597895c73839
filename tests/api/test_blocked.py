"""A project that is blocked: 402 for exactly the paid operations (decision 0075).

The routes are read from the service, so that a new one can't be forgotten: it is paid for and named in
`PAID`, or it goes on.
"""

from typing import Any

import pytest

from msgsvc_billing.service import Billing
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.billing import Charge
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.naming import BODIES
from tests.api.resources import (
    CALLBACK,
    HOOK,
    LATER,
    PLUGINS,
    SETTINGS,
    MiniAppPlugin,
    resources_of,
)
from tests.api.subscribing import Subscribe
from tests.paths import by_kind

pytestmark = pytest.mark.both_databases

DAY = 24 * 3600

#: Bodies of what is paid for, with `{name}` of the project's resources.
PAID: dict[str, Any] = {
    "send": {"subscriber_id": "{subscriber_id}", "text": "Hi"},
    "send_batch": {"messages": [{"subscriber_id": "{subscriber_id}", "text": "Hi"}]},
    "send_otp": {"subscriber_id": "{subscriber_id}", "purpose": "other"},
    "request_otp": {},
    "broadcast": {"audience": {"all": True}, "text": "Hi"},
    "send_broadcast_test": {"subscriber_id": "{subscriber_id}", "text": "Hi"},
    "reply_to_ticket": {"text": "Hi"},
}

_MESSAGE = {"audience": {"all": True}, "text": "Hi"}
_STEPS = [{"delay": {"days": 1}, "message": {"text": "Hi"}}]

#: Bodies of what goes on, beside those of `BODIES`; each is good, so that it comes as far as it can.
GOES_ON: dict[str, Any] = {
    **{name: body for name, body in BODIES.items() if name not in PAID},
    "update_project": {"name": "Mine"},
    "update_branding": {"sender_name": "Mine"},
    "update_ticket_settings": {"assignment": "manual"},
    "update_ticket_hours": {"timezone": "Europe/Berlin"},
    "update_ticket_service_levels": {"warn_seconds": 900},
    "take_otp_result": {"result": "0" * 40},
    "create_channel": {"name": "new_bot", "plugin": "recording"},
    "create_channel_request": {"name": "asked_bot", "plugin": "mini_app"},
    "create_link": {},
    "add_subscriber": {"channel": "mini", "address": "cat@shop.example"},
    "set_person_consent": {
        "external_id": "{external_id}",
        "channel": "messenger_a",
        "consent": "subscribed",
    },
    "merge_people": {"external_id": "{external_id}", "into": "nobody"},
    "split_person": {"subscriber_id": "{subscriber_id}"},
    "create_tag": {"name": "new"},
    "start_ticket_bulk_action": {"action": "close", "all": True},
    "start_bulk_action": {"action": "add_tag", "value": "new", "all": True},
    "create_permission": {"key": "new", "title": "New"},
    "create_template": {"key": "new", "text": "Hi"},
    "create_route": {"name": "New", "steps": [{"channel": "messenger_a"}]},
    "subscribe_in_mini_app": {"channel": "mini", "init_data": "Bob"},
    "track_event": {"subscriber_id": "{subscriber_id}", "name": "bought"},
    "add_member": {"name": "Bob", "email": "bob@shop.example"},
    "create_session": {"state": "s"},
    "verify": {"code": "0" * 43},
    "create_auth_link": {"slug": "new-shop", "name": "Shop", "callback_url": CALLBACK},
    "create_drip": {"name": "New", "trigger": {"on": "manual"}, "steps": _STEPS},
    "create_form": {
        "slug": "new-form",
        "title": "Form",
        "fields": [{"key": "name", "type": "text", "label": "Name"}],
    },
    "open_ticket": {"channel": "virtual", "text": "Hi"},
    "create_canned_answer": {"key": "new", "text": "Hi"},
    "verify_otp": {"otp_id": "{otp_id}", "code": "000000"},
    "schedule_message": {**_MESSAGE, "send_at": LATER},
    "create_recurring": {**_MESSAGE, "cron": "0 9 * * *"},
    "create_webhook": {"url": HOOK},
    "create_gateway": {"name": "Mine", "sender": "novu", "channels": ["messenger_a"]},
    "create_oidc_client": {"name": "New", "redirect_uris": [CALLBACK]},
    "create_oidc_registration_token": {"name": "New"},
}

_LOGO = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'
)

#: What routes that read ask for.
QUERIES: dict[str, Any] = {
    "get_person": {"external_id": "{external_id}"},
    "export_personal_data": {"subscriber_id": "{subscriber_id}"},
}

#: Files, and not JSON.
UPLOADS = {
    "upload_file": {"file": ("new.txt", b"Hi")},
    "set_logo": {"file": ("logo.svg", _LOGO)},
    "start_people_import": {"file": ("people.csv", b"address\ncat@shop.example\n")},
}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    settings = {**SETTINGS, "plugins": (*PLUGINS, "billing", "dashboard")}
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **settings)


async def test_a_blocked_project_is_refused_exactly_what_is_paid_for(
    service: Service, tenant: Tenant, subscribe: Subscribe, clock: FakeClock
) -> None:
    own = await resources_of(service, tenant, subscribe, "Ann")
    await _block(service, tenant, clock)
    refused = set()
    # What removes things comes last.
    for endpoint in sorted(service.endpoints, key=lambda one: one.method == "DELETE"):
        if endpoint.public:
            continue
        answer = await tenant.client.request(**_request(endpoint, own))

        assert answer.status_code < 500, f"{endpoint.name}: {answer.text}"
        if answer.status_code == 400:
            assert answer.json()["code"] != "validation_failed", f"{endpoint.name}: {answer.text}"
        if answer.status_code == 402:
            assert answer.json()["code"] == "billing_blocked"
            assert answer.json()["retryable"] is False
            refused.add(endpoint.name)
    assert refused == set(PAID)


async def test_a_blocked_project_takes_no_forms_and_lets_people_sign_in_and_agents_make_notes(
    service: Service, tenant: Tenant, subscribe: Subscribe, clock: FakeClock
) -> None:
    own = await resources_of(service, tenant, subscribe, "Ann")
    await _block(service, tenant, clock)

    form = await tenant.client.post(f"/f/{own['form_id']}", json={"name": "Ann"})
    dry = {"audience": {"all": True}, "text": "Hi", "dry_run": True}
    counted = await tenant.client.post("/v1/broadcast", json=dry)
    note = {"text": "Hi", "internal": True}
    noted = await tenant.client.post(f"/v1/tickets/{own['ticket_id']}/reply", json=note)
    session = await tenant.client.post("/v1/auth/session", json={"state": "s"})
    assert (form.status_code, counted.status_code, noted.status_code) == (402, 202, 201)
    assert session.status_code == 201
    sent = await tenant.client.post(
        "/v1/send",
        json={"subscriber_id": own["subscriber_id"], "text": "Hi"},
        headers={"Idempotency-Key": "the-same-key"},
    )
    assert sent.status_code == 402
    assert "X-RateLimit-Remaining" in sent.headers


async def test_what_was_planned_is_skipped_while_blocked_and_says_why(
    service: Service, tenant: Tenant, subscribe: Subscribe, clock: FakeClock
) -> None:
    own = await resources_of(service, tenant, subscribe, "Ann")
    ann = {"subscriber_id": own["subscriber_id"], "text": "Planned"}
    at = {"send_at": "2026-01-20T12:00:00Z"}
    to_one = (await tenant.client.post("/v1/scheduled", json={**ann, **at})).json()
    to_all = (await tenant.client.post("/v1/scheduled", json={**_MESSAGE, **at})).json()
    again = {**ann, "cron": "0 12 20 * *"}
    recurring = (await tenant.client.post("/v1/recurring", json=again)).json()
    await _block(service, tenant, clock)
    clock.advance(DAY)
    await settled(service)

    for one in (to_one, to_all):
        shown = (await tenant.client.get(f"/v1/scheduled/{one['scheduled_id']}")).json()
        assert (shown["status"], shown["reason"]) == ("skipped", "billing_blocked")
    shown = (await tenant.client.get(f"/v1/recurring/{recurring['recurring_id']}")).json()
    assert (shown["status"], shown["reason"]) == ("active", "billing_blocked")
    enrollment = (await tenant.client.get(f"/v1/drips/enrollments/{own['enrollment_id']}")).json()
    assert enrollment["status"] == "completed"
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    assert not [one for one in channel.sent if one.message.text == "Planned"]


async def _block(service: Service, tenant: Tenant, clock: FakeClock) -> None:
    """Has an account pay for the project, and spend all it has; its grace is over."""
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(tx, email="ann@shop.example", name="Ann")
        await service.get(Accounts).give_project(tx, project_id, account.account_id)
        await service.billing.charge(tx, Charge(project_id, "auth.confirmed", "all", False, 100))
        state = await service.get(Billing).state_of(tx, account.account_id)
    assert state.balance == 0
    clock.advance(4 * DAY)


def _request(endpoint: Endpoint, own: dict[str, str]) -> dict[str, Any]:
    """Arguments for `AsyncClient.request`."""
    url = by_kind(endpoint.path).format_map(own)
    request: dict[str, Any] = {"method": endpoint.method, "url": url}
    if endpoint.name in UPLOADS:
        return {**request, "files": UPLOADS[endpoint.name]}
    if endpoint.name in QUERIES:
        return {**request, "params": _filled(QUERIES[endpoint.name], own)}
    if endpoint.body is None:
        return request
    body = PAID[endpoint.name] if endpoint.name in PAID else GOES_ON[endpoint.name]
    return {**request, "json": _filled(body, own)}


def _filled(body: Any, own: dict[str, str]) -> Any:
    if isinstance(body, dict):
        return {name: _filled(value, own) for name, value in body.items()}
    if isinstance(body, list):
        return [_filled(value, own) for value in body]
    return body.format_map(own) if isinstance(body, str) else body
