"""The API of webhooks."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service

URL = "https://shop.example/hooks"


def assert_error(response: Any, status: int, code: str, *parts: str) -> None:
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    for part in parts:
        assert part in body["error"]


async def test_new_webhook_is_answered_with_its_secret(client: Any):
    response = await client.post(
        "/v1/webhooks",
        json={"url": URL, "events": ["delivery.failed"], "description": "Shop, production"},
    )
    webhook = response.json()

    assert response.status_code == 201
    assert webhook.pop("secret").startswith("whsec_")
    assert webhook.pop("webhook_id").startswith("whe_")
    assert webhook == {
        "url": URL,
        "events": ["delivery.failed"],
        "description": "Shop, production",
        "status": "active",
        "failing_since": None,
        "disabled_reason": None,
        "created_at": "2026-01-15T12:00:00.000Z",
        "updated_at": "2026-01-15T12:00:00.000Z",
    }


async def test_webhook_without_events_is_for_all_of_them(client: Any):
    webhook = (await client.post("/v1/webhooks", json={"url": URL})).json()

    assert webhook["events"] == []
    assert webhook["description"] is None


@pytest.mark.both_databases
async def test_secret_is_not_shown_again(client: Any, add_webhook: Any):
    webhook = await add_webhook()
    one = await client.get(f"/v1/webhooks/{webhook['webhook_id']}")
    several = await client.get("/v1/webhooks")
    updated = await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"events": []})

    for response in (one, several, updated):
        assert response.status_code == 200
        assert "secret" not in response.text


async def test_secret_is_encrypted_at_rest(service: Service, client: Any, add_webhook: Any):
    webhook = await add_webhook()
    path = f"/v1/webhooks/{webhook['webhook_id']}/rotate-secret"
    rotated = (await client.post(path)).json()
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM webhooks_secrets")
        columns = [str(row[column]) for row in rows for column in row.keys()]

    assert len(rows) == 2
    for secret in (webhook["secret"], rotated["secret"]):
        assert not any(secret.removeprefix("whsec_") in column for column in columns)


async def test_sixth_webhook_of_a_project_is_a_conflict(client: Any, add_webhook: Any):
    for _ in range(5):
        await add_webhook()

    assert_error(await client.post("/v1/webhooks", json={"url": URL}), 409, "conflict", "5")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_webhooks_made_at_once_do_not_pass_the_limit(client: Any):
    responses = await asyncio.gather(
        *(client.post("/v1/webhooks", json={"url": URL}) for _ in range(12))
    )
    statuses = sorted(response.status_code for response in responses)

    assert statuses == [201] * 5 + [409] * 7


async def test_limit_is_per_project(service: Service, add_webhook: Any, make_tenant: Any):
    for _ in range(5):
        await add_webhook()
    other = await make_tenant(service, "Other")

    assert (await other.client.post("/v1/webhooks", json={"url": URL})).status_code == 201


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_unknown_event_is_named(client: Any, add_webhook: Any, method: str):
    webhook = await add_webhook()
    path = "/v1/webhooks" + (f"/{webhook['webhook_id']}" if method == "PUT" else "")
    body = {"url": URL, "events": ["delivery.success", "delivery.sucess"]}

    response = await client.request(method, path, json=body)

    assert_error(response, 400, "validation_failed", "events[1]", "'delivery.sucess'")


async def test_event_of_a_plugin_that_is_not_loaded_is_told_apart(client: Any):
    if "broadcasts" not in available_plugins():
        pytest.skip("the plugin broadcasts is not installed, so none of its events can be known")
    body = {"url": URL, "events": ["broadcast.completed"]}

    response = await client.post("/v1/webhooks", json=body)

    words = "its plugin 'broadcasts' is installed, but not loaded"
    assert_error(response, 400, "validation_failed", "events[0]", "'broadcast.completed'", words)


async def test_event_named_twice_is_kept_once(client: Any):
    events = ["delivery.failed", "button.clicked", "delivery.failed"]

    webhook = (await client.post("/v1/webhooks", json={"url": URL, "events": events})).json()

    assert webhook["events"] == ["delivery.failed", "button.clicked"]


FORBIDDEN_URLS = [
    "",
    "shop.example/hooks",
    "ftp://shop.example/",
    "http://shop.example/",
    "https://",
    "https:///hooks",
    "https://user:password@shop.example/",
    "https://shop.example:0/",
    "https://shop.example:99999/",
    "https://shop.example /",
    "https://shop.example\\@evil.example/",
    "https://localhost/",
    "https://db.internal/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fd00::1]/",
    "https://shop.example/" + "x" * 2048,
]


@pytest.mark.shared_service
@pytest.mark.parametrize("url", FORBIDDEN_URLS)
async def test_forbidden_url_is_refused_at_create_and_update(
    make_webhook_service: Any, make_tenant: Any, url: str
):
    service = await make_webhook_service(allow_http=False, allow_cidrs=[])
    client = (await make_tenant(service)).client
    webhook = (await client.post("/v1/webhooks", json={"url": URL})).json()

    created = await client.post("/v1/webhooks", json={"url": url})
    updated = await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"url": url})

    assert_error(created, 400, "invalid_url", "url: ")
    assert_error(updated, 400, "invalid_url", "url: ")


@pytest.mark.parametrize(
    ("url", "setting"),
    [
        ("http://127.0.0.1:8091/", "allow_http"),
        ("https://127.0.0.1:8091/", "allow_cidrs"),
        ("https://localhost:8091/", "allow_cidrs"),
    ],
)
async def test_the_refusal_of_a_local_address_names_the_setting_that_allows_it(
    make_webhook_service: Any, make_tenant: Any, url: str, setting: str
):
    service = await make_webhook_service(allow_http=False, allow_cidrs=[])
    client = (await make_tenant(service)).client

    refused = await client.post("/v1/webhooks", json={"url": url})

    hint = f"(the operator allows it by {setting} in [webhooks])"
    assert_error(refused, 400, "invalid_url", "url: ")
    assert refused.json()["error"].endswith(hint)


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "url: is required"),
        ({"url": 5}, "url: "),
        ({"url": URL, "events": "delivery.failed"}, "events: "),
        ({"url": URL, "events": [7]}, "events[0]: "),
        ({"url": URL, "event": []}, "event: there is no such field"),
        ({"url": URL, "description": "x" * 501}, "description: "),
        ({"url": URL, "status": "disabled"}, "status: there is no such field"),
    ],
)
async def test_bad_body_is_refused_by_the_name_of_its_field(client: Any, body: Any, part: str):
    response = await client.post("/v1/webhooks", json=body)

    assert_error(response, 400, "validation_failed", part)


@pytest.mark.parametrize("field", ["url", "events", "status"])
async def test_null_is_no_change(client: Any, add_webhook: Any, field: str):
    webhook = await add_webhook()

    response = await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={field: None})

    assert_error(response, 400, "validation_failed", f"{field}: must not be null")


@pytest.mark.both_databases
async def test_update_changes_what_is_given_and_keeps_the_rest(
    client: Any, add_webhook: Any, clock: Any
):
    webhook = await add_webhook(events=["delivery.failed"], description="old")
    del webhook["secret"]
    path = f"/v1/webhooks/{webhook['webhook_id']}"
    clock.advance(60)

    renamed = (await client.put(path, json={"description": None})).json()
    disabled = (await client.put(path, json={"status": "disabled", "url": URL})).json()

    assert renamed == {**webhook, "description": None, "updated_at": "2026-01-15T12:01:00.000Z"}
    assert disabled == {**renamed, "status": "disabled", "url": URL}
    assert (await client.get(path)).json() == disabled


@pytest.mark.both_databases
async def test_list_is_paged_newest_first(client: Any, add_webhook: Any):
    made = [(await add_webhook())["webhook_id"] for _ in range(3)]

    first = (await client.get("/v1/webhooks?limit=2")).json()
    second = (await client.get(f"/v1/webhooks?limit=2&cursor={first['next_cursor']}")).json()

    listed = [webhook["webhook_id"] for webhook in first["data"] + second["data"]]
    assert listed == made[::-1]
    assert second["next_cursor"] is None


async def test_deleted_webhook_is_gone_and_frees_its_place(client: Any, add_webhook: Any):
    webhooks = [await add_webhook() for _ in range(5)]
    path = f"/v1/webhooks/{webhooks[0]['webhook_id']}"

    deleted = await client.delete(path)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert_error(await client.get(path), 404, "not_found")
    assert_error(await client.delete(path), 404, "not_found")
    assert (await client.post("/v1/webhooks", json={"url": URL})).status_code == 201


async def test_rotation_shows_the_new_secret_and_the_end_of_the_old_one(
    client: Any, add_webhook: Any
):
    webhook = await add_webhook()

    response = await client.post(f"/v1/webhooks/{webhook['webhook_id']}/rotate-secret")
    rotated = response.json()

    assert response.status_code == 200
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != webhook["secret"]
    assert rotated["previous_valid_until"] == "2026-01-16T12:00:00.000Z"


async def test_rotation_waits_when_too_many_secrets_are_valid(
    client: Any, add_webhook: Any, clock: Any
):
    path = f"/v1/webhooks/{(await add_webhook())['webhook_id']}/rotate-secret"
    statuses = [(await client.post(path)).status_code for _ in range(5)]
    clock.advance(24 * 3600)
    afterwards = await client.post(path)

    assert statuses == [200, 200, 200, 200, 409]
    assert afterwards.status_code == 200


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/rotate-secret"),
        ("GET", "/deliveries"),
    ],
)
async def test_webhook_of_another_project_is_answered_as_a_missing_one(
    service: Service, client: Any, add_webhook: Any, make_tenant: Any, method: str, rest: str
):
    webhook_id = (await add_webhook())["webhook_id"]
    stranger = (await make_tenant(service, "Other")).client
    body = {"json": {"status": "disabled"}} if method == "PUT" else {}

    theirs = await stranger.request(method, f"/v1/webhooks/{webhook_id}{rest}", **body)
    missing = await stranger.request(method, f"/v1/webhooks/whe_0{rest}", **body)

    assert_error(theirs, 404, "not_found")
    assert theirs.text.replace(webhook_id, "whe_0") == missing.text
    assert (await client.get(f"/v1/webhooks/{webhook_id}")).json()["status"] == "active"


async def test_key_without_the_scope_is_refused(service: Service, make_tenant: Any):
    tenant = await make_tenant(service, "Narrow", scopes=("messages",))

    assert_error(await tenant.client.get("/v1/webhooks"), 403, "forbidden")


@pytest.mark.parametrize("path", ["/v1/webhooks", "/v1/webhooks/{}/deliveries"])
async def test_bad_cursor_is_a_bad_request(client: Any, add_webhook: Any, path: str):
    webhook = await add_webhook()
    path = path.format(webhook["webhook_id"])

    assert_error(await client.get(f"{path}?cursor=%21"), 400, "bad_request", "cursor")
