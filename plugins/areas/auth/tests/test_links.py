"""Static links: how they are kept, and what opening one does."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

BODY = {"slug": "shop-1", "name": "Shop", "callback_url": "https://shop.example/back"}


async def test_new_link_has_the_start_parameter_of_the_spec(client):
    response = await client.post("/v1/auth/links", json=BODY)

    assert response.status_code == 201
    assert response.json() == {
        **BODY,
        "number_matching": False,
        "must_prove": [],
        "links": {
            "messenger_a": "https://messenger_a.example/bot?start=auth_shop-1",
            "messenger_b": "https://messenger_b.example/bot?start=auth_shop-1",
        },
        "qr": {
            "messenger_a": "http://127.0.0.1:8000/qr/messenger_a/auth_shop-1.svg",
            "messenger_b": "http://127.0.0.1:8000/qr/messenger_b/auth_shop-1.svg",
        },
        "created_at": "2026-01-15T12:00:00.000Z",
    }


async def test_what_is_written_to_a_bot_without_start_links_does_not_end(client, service):
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, start_links=False)
    slug = "a-shop-whose-name-is-rather-long"

    created = (await client.post("/v1/auth/links", json={**BODY, "slug": slug})).json()

    # A short code would.
    assert created["start_messages"] == {"messenger_a": f"start auth_{slug}"}


async def test_link_is_read_changed_and_deleted(client):
    created = (await client.post("/v1/auth/links", json=BODY)).json()
    path = "/v1/auth/links/shop-1"

    read = (await client.get(path)).json()
    changed = (await client.patch(path, json={"name": "New name", "number_matching": True})).json()
    renamed = (await client.patch(path, json={"name": "Newer name"})).json()
    deleted = await client.delete(path)

    assert read == created
    assert changed == {**created, "name": "New name", "number_matching": True}
    assert renamed == {**changed, "name": "Newer name"}
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (await client.get(path)).status_code == 404


@pytest.mark.both_databases
async def test_list_goes_from_page_to_page_newest_first(client):
    for number in range(3):
        await client.post("/v1/auth/links", json={**BODY, "slug": f"shop-{number}"})

    first = (await client.get("/v1/auth/links?limit=2")).json()
    second = (await client.get(f"/v1/auth/links?limit=2&cursor={first['next_cursor']}")).json()

    assert [link["slug"] for link in first["data"]] == ["shop-2", "shop-1"]
    assert [link["slug"] for link in second["data"]] == ["shop-0"]
    assert second["next_cursor"] is None


async def test_slug_is_unique_over_all_projects(service, client, make_tenant):
    other = await make_tenant(service, "Other")
    await client.post("/v1/auth/links", json=BODY)

    own = await client.post("/v1/auth/links", json=BODY)
    theirs = await other.client.post("/v1/auth/links", json=BODY)

    assert own.status_code == theirs.status_code == 409
    assert own.json() == theirs.json()
    assert own.json()["code"] == "conflict"
    # Also to their own, so that it says nothing of whose.
    assert "by this project or another" in theirs.json()["error"]


async def test_link_of_another_project_is_missing(service, client, make_tenant):
    other = await make_tenant(service, "Other")
    await client.post("/v1/auth/links", json=BODY)
    path = "/v1/auth/links/shop-1"

    answers = [
        await other.client.get(path),
        await other.client.patch(path, json={"name": "Mine"}),
        await other.client.delete(path),
    ]

    assert [answer.json()["code"] for answer in answers] == ["not_found"] * 3
    assert (await other.client.get("/v1/auth/links")).json()["data"] == []
    assert (await client.get(path)).json()["name"] == "Shop"


@pytest.mark.shared_service
@pytest.mark.parametrize("slug", ["ab", "a" * 49, "Shop", "s_token", "a b c", "лавка", "shop\n"])
async def test_slug_of_another_shape_is_refused(client, slug):
    response = await client.post("/v1/auth/links", json={**BODY, "slug": slug})

    assert (response.status_code, response.json()["code"]) == (400, "validation_failed")
    assert response.json()["error"].startswith("slug: ")


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_callback_that_breaks_a_rule_is_refused(client, link, method):
    path = "/v1/auth/links" + ("/shop" if method == "PATCH" else "")
    body = {"callback_url": "http://shop.example/back"}
    if method == "POST":
        body = {**BODY, **body}

    response = await client.request(method, path, json=body)

    assert (response.status_code, response.json()["code"]) == (400, "invalid_url")
    assert response.json()["error"].startswith("callback_url: ")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_person_who_opens_a_static_link_is_asked_at_once(client, link, ann):
    question = await ann.open(link["links"]["messenger_a"])

    assert question.message.text.startswith("Sign in to Shop?\n")


async def test_yes_on_a_static_link_leads_back_with_a_code_that_works(client, link, ann):
    await ann.press(await ann.open(link["links"]["messenger_a"]), "Yes")

    url = urlsplit(ann.shown.message.buttons[0][0].url)
    query = parse_qs(url.query)
    verified = await client.post("/v1/auth/verify", json={"code": query["code"][0]})

    assert url._replace(query="").geturl() == "https://shop.example/back"
    assert query.keys() == {"from", "code"}
    assert (verified.status_code, verified.json()["state"]) == (200, "")
    assert verified.json()["first_name"] == "Ann"


async def test_number_of_a_static_link_is_for_the_page_and_not_asked_in_the_bot_alone(
    client, link, ann
):
    await client.patch("/v1/auth/links/shop", json={"number_matching": True})

    question = await ann.open(link["links"]["messenger_a"])

    assert [[button.text for button in row] for row in question.message.buttons] == [
        ["Yes", "Cancel"]
    ]


async def test_every_opening_of_a_static_link_is_a_sign_in_of_its_own(client, link, ann, bob):
    for person, yes in ((ann, "Yes"), (bob, "Да")):
        await person.press(await person.open(link["links"]["messenger_a"]), yes)

    codes = [
        parse_qs(urlsplit(person.shown.message.buttons[0][0].url).query)["code"][0]
        for person in (ann, bob)
    ]
    names = [
        (await client.post("/v1/auth/verify", json={"code": code})).json()["first_name"]
        for code in codes
    ]

    assert names == ["Ann", "Bob"]


async def test_openings_of_static_links_do_not_count_as_sessions_of_the_project(client, link, ann):
    for _ in range(6):
        question = await ann.open(link["links"]["messenger_a"])

    assert question.message.text.startswith("Sign in to Shop?\n")
    assert (await client.post("/v1/auth/session", json={})).status_code == 201


async def test_deleted_link_is_not_valid_any_more(client, link, ann):
    await client.delete("/v1/auth/links/shop")

    answer = await ann.open(link["links"]["messenger_a"])

    assert answer.message.text.startswith("This link is no longer valid.")


async def test_link_of_a_disabled_project_is_not_valid(service, tenant, link, ann):
    await service.projects.set_active(tenant.project.project_id, False)

    answer = await ann.open(link["links"]["messenger_a"])

    assert answer.message.text.startswith("This link is no longer valid.")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example\\.shop.example/",
        "https://-/",
        "https://./",
        "https://a..b/",
        "https://shop.example%2eevil.example/",
        "https://shop.example。evil/",
    ],
)
async def test_a_host_that_browsers_may_read_differently_is_refused(client, url):
    answer = await client.post("/v1/auth/links", json={**BODY, "callback_url": url})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_url")
