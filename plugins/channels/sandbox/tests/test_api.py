"""The JSON API and the pages over HTTP, as a browser without scripts sees them."""

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.sandbox import SandboxPerson
from msgsvc_sandbox import plugin
from msgsvc_sandbox.service import Messenger


async def test_people_are_made_listed_changed_and_deleted_without_a_key(
    web: httpx2.AsyncClient,
) -> None:
    made = await web.post("/sandbox/api/people", json={"name": "Anna", "lang": "ru"})
    path = f"/sandbox/api/people/{made.json()['person_id']}"
    changed = await web.patch(path, json={"name": "Anna Lind"})
    listed = await web.get("/sandbox/api/people")
    deleted = await web.delete(path)

    assert (made.status_code, changed.status_code, deleted.status_code) == (201, 200, 204)
    assert listed.json()["data"] == [changed.json()]
    assert (await web.get("/sandbox/api/people")).json() == {"data": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/people", {"name": ""}, 400, "validation_failed"),
        ("POST", "/people", {"name": "A", "nick": "x"}, 400, "validation_failed"),
        ("GET", "/people/nobody/state", None, 404, "not_found"),
        ("GET", "/people/nobody/state?wait=26", None, 400, "validation_failed"),
        ("GET", "/people/nobody/state?since=-1", None, 400, "validation_failed"),
        ("POST", "/people/nobody/open", {"channel": "messenger_a"}, 404, "not_found"),
        ("POST", "/people/nobody/open", {}, 400, "validation_failed"),
        ("GET", "/bots/nobody/fault", None, 404, "not_found"),
        ("PUT", "/bots/messenger_a/fault", {"reason": "tired"}, 400, "validation_failed"),
        ("PUT", "/bots/messenger_a/fault", {"delay_s": 500}, 400, "validation_failed"),
    ],
)
async def test_a_refusal_is_in_the_envelope(
    web: httpx2.AsyncClient, method: str, path: str, body: object, status: int, code: str
) -> None:
    answer = await web.request(method, f"/sandbox/api{path}", json=body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"error", "code", "retryable", "docs_url"}


async def test_a_form_of_another_site_can_not_use_the_api(web: httpx2.AsyncClient) -> None:
    answer = await web.post(
        "/sandbox/api/people", content='{"name": "A"}', headers={"Content-Type": "text/plain"}
    )

    assert answer.status_code == 400


async def test_a_form_of_another_site_can_not_open_a_link_for_a_person(
    web: httpx2.AsyncClient, anna: SandboxPerson
) -> None:
    answer = await web.post(
        "/sandbox/open/messenger_a",
        data={"person_id": anna.person_id, "start": "echo_1"},
        headers={"Sec-Fetch-Site": "cross-site"},
    )

    assert answer.status_code == 403
    assert await anna.messages() == []


async def test_a_start_link_asks_who_opens_it_and_starts_the_bot(
    service: Service, web: httpx2.AsyncClient, anna: SandboxPerson
) -> None:
    path = "/sandbox/open/messenger_a?start=echo_1"
    page = await web.get(path)
    sent = {"person_id": anna.person_id, "start": "echo_1"}
    answer = await web.post("/sandbox/open/messenger_a", data=sent)
    await settled(service)

    assert "Open as Anna" in page.text
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/sandbox/p/{anna.person_id}#messenger_a"
    assert [message.text for message in await anna.messages()] == ["Is it you?"]


async def test_who_opened_the_last_link_is_offered_first(
    web: httpx2.AsyncClient, service: Service, anna: SandboxPerson
) -> None:
    await web.post("/sandbox/open/messenger_a", data={"name": "Bo", "lang": "en", "start": ""})

    page = await web.get("/sandbox/open/messenger_a?start=echo_1")

    assert "Open as Bo" in page.text
    assert "Open as Anna" not in page.text


async def test_a_link_can_be_opened_by_somebody_new(
    web: httpx2.AsyncClient, service: Service
) -> None:
    form = {"name": "Мила", "username": "@mila", "lang": "ru", "start": "echo_1"}

    await web.post("/sandbox/open/messenger_a", data=form)

    [person] = await service.get(Messenger).people()
    assert (person.name, person.username, person.lang) == ("Мила", "mila", "ru")


@pytest.mark.parametrize("form", [{"name": " "}, {"name": "A", "username": "no spaces"}, {}])
async def test_a_form_that_is_not_filled_in_well_is_shown_again(
    web: httpx2.AsyncClient, form: dict[str, str]
) -> None:
    opened = await web.post("/sandbox/open/messenger_a", data=form)
    made = await web.post("/sandbox", data=form)

    assert (opened.status_code, made.status_code) == (400, 400)
    assert "Please check the name" in opened.text
    assert "Please check the name" in made.text


@pytest.mark.parametrize(
    "path",
    [
        "/sandbox/p/nobody",
        "/sandbox/open/nobody?start=x",
        "/sandbox/open/messenger_a?start=%3Cscript%3E",
        "/sandbox/open/messenger_a?start=" + "a" * 65,
    ],
)
async def test_what_is_not_there_is_said_on_a_page(web: httpx2.AsyncClient, path: str) -> None:
    answer = await web.get(path)

    assert answer.status_code == 404
    assert "Not found" in answer.text


async def test_pages_run_no_script_but_their_own(
    web: httpx2.AsyncClient, service: Service, anna: SandboxPerson
) -> None:
    for path in ("/sandbox", "/sandbox/open/messenger_a", f"/sandbox/p/{anna.person_id}"):
        page = await web.get(path)

        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "style=" not in page.text
        assert "http://" not in page.text
        assert "https://" not in page.text.replace('placeholder="https://', "")


async def test_a_name_is_never_markup(web: httpx2.AsyncClient) -> None:
    evil = "<script>alert(1)</script>\"'"
    made = await web.post("/sandbox/api/people", json={"name": evil})

    for path in ("/sandbox", "/sandbox/open/messenger_a", f"/sandbox/p/{made.json()['person_id']}"):
        page = await web.get(path)
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


async def test_people_here_read_any_language_that_is_listed(make_service: ServiceFactory) -> None:
    service = await make_service(extra_plugins=[("sandbox", plugin)], languages=("en", "ru", "de"))
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as web:
        made = await web.post("/sandbox", data={"name": "Jonas", "lang": "de"})
        refused = await web.post("/sandbox", data={"name": "Zoé", "lang": "fr"})
        people = (await web.get("/sandbox/api/people")).json()
        page = (await web.get("/sandbox")).text

    assert (made.status_code, refused.status_code) == (303, 400)
    assert "'lang': 'de'" in str(people)
    assert '<span lang="de">Deutsch</span>' in page


async def test_pages_speak_russian_to_those_who_do(web: httpx2.AsyncClient) -> None:
    made = await web.post("/sandbox/api/people", json={"name": "Миша", "lang": "ru"})

    people = await web.get("/sandbox", headers={"Accept-Language": "ru-RU,ru;q=0.9"})
    person = await web.get(f"/sandbox/p/{made.json()['person_id']}")

    assert "Новый человек" in people.text
    assert '<html lang="ru">' in person.text
    assert "Открыть ссылку на бота" in person.text


@pytest.mark.parametrize(
    ("setting", "address", "status"),
    [
        ("local", "127.0.0.1", 200),
        ("local", "192.168.1.7", 200),
        ("local", "::1", 200),
        ("local", "8.8.8.8", 403),
        ("local", "2001:4860:4860::8888", 403),
        ("everyone", "8.8.8.8", 200),
        ("off", "127.0.0.1", 404),
    ],
)
async def test_only_those_whom_the_setting_names_are_let_in(
    make_service: ServiceFactory, setting: str, address: str, status: int
) -> None:
    service = await make_service(
        extra_plugins=[("sandbox", plugin)],
        channels={"messenger_a": {"plugin": "sandbox"}},
        sandbox={"pages": setting},
    )
    transport = httpx2.ASGITransport(app=service.app, client=(address, 4711))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as web:
        page = await web.get("/sandbox")
        api = await web.get("/sandbox/api/people")

    assert (page.status_code, api.status_code) == (status, status)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_whoever_comes_through_a_proxy_is_not_local(
    web: httpx2.AsyncClient, header: str
) -> None:
    page = await web.get("/sandbox", headers={header: "127.0.0.1"})
    api = await web.get("/sandbox/api/people", headers={header: "127.0.0.1"})

    assert (page.status_code, api.status_code) == (403, 403)


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "https://shop.example"}, True),
        ({"Origin": "http://127.0.0.1:8090"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://[broken"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
    ],
)
async def test_nothing_is_changed_from_a_page_of_another_site(
    web: httpx2.AsyncClient, headers: dict[str, str], refused: bool
) -> None:
    form = await web.post("/sandbox", data={"name": "Eve"}, headers=headers)
    api = await web.post("/sandbox/api/people", json={"name": "Eve"}, headers=headers)

    assert (form.status_code, api.status_code) == ((403, 403) if refused else (303, 201))


@pytest.mark.parametrize(
    ("method", "below", "body"),
    [
        ("PUT", "/chats/messenger_a/blocked", {"blocked": True}),
        ("PATCH", "", {"name": "Eve"}),
        ("DELETE", "", None),
    ],
)
async def test_no_method_changes_anything_from_another_site(
    web: httpx2.AsyncClient, anna: SandboxPerson, method: str, below: str, body: object
) -> None:
    path = f"/sandbox/api/people/{anna.person_id}{below}"
    answer = await web.request(method, path, json=body, headers={"Origin": "https://shop.example"})

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_other_sites_may_link_to_the_pages(web: httpx2.AsyncClient) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    page = await web.get("/sandbox/open/messenger_a", headers=headers)

    assert page.status_code == 200


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("192.168.1.7:8000", 200),
        ("[::1]:8000", 200),
        ("Msgsvc.Example", 200),
        ("rebound.example", 403),
        ("localhost.rebound.example", 403),
        ("[broken", 403),
    ],
)
async def test_only_names_of_this_service_lead_to_the_messenger(
    make_service: ServiceFactory, host: str, status: int
) -> None:
    service = await make_service(
        extra_plugins=[("sandbox", plugin)],
        channels={"messenger_a": {"plugin": "sandbox"}},
        base_url="https://msgsvc.example",
    )
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as web:
        page = await web.get("/sandbox", headers={"Host": host})
        api = await web.get("/sandbox/api/people", headers={"Host": host})

    assert (page.status_code, api.status_code) == (status, status)
