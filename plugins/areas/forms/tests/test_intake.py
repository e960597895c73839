"""What the web sends in: by JSON, by HTML forms, with files; spam, limits, origins, once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory

from .conftest import NAME, WITH_FORMS, Desk, refusal
from .web import PNG, Visitor, visiting

AGE = {"key": "age", "type": "number", "label": "Age", "min": 18}
TOPICS = {
    "key": "topics",
    "type": "multichoice",
    "label": "Topics",
    "options": ["news", {"value": "sale", "label": {"en": "Sales", "ru": "Скидки"}}, "other"],
}
PHOTO = {"key": "photo", "type": "file", "label": "Photo", "max": 2}


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


def values(submission: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in submission["answers"]}


async def test_json_becomes_typed_answers_in_the_order_of_the_questions(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(NAME, AGE, TOPICS)

    sent = {"topics": ["other", "news"], "age": 33, "name": " Ann "}
    answer = await visitor.post(form, json=sent)

    assert answer.status_code == 201
    [kept] = await desk.submissions(form)
    assert kept["submission_id"] == answer.json()["submission_id"]
    assert kept["answers"] == [
        {"key": "name", "type": "text", "value": "Ann"},
        {"key": "age", "type": "number", "value": 33},
        {"key": "topics", "type": "multichoice", "value": ["news", "other"]},
    ]
    [told] = await desk.told()
    assert told["answers"] == kept["answers"]
    assert (told["form_id"], told["form_version"], told["source"]) == (form["form_id"], 1, "web")
    assert told["submission_id"] == kept["submission_id"]


async def test_urlencoded_and_multipart_are_taken_as_well(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(NAME, AGE, TOPICS)

    encoded = await visitor.post(
        form, data={"name": "Ann", "age": "33,5", "topics": ["sale", "news"]}
    )
    parts = [("name", (None, "Bob")), ("age", (None, "")), ("topics", (None, "sale"))]
    multipart = await visitor.post(form, files=parts)

    assert (encoded.status_code, multipart.status_code) == (201, 201)
    bob, ann = await desk.submissions(form)
    assert values(ann) == {"name": "Ann", "age": 33.5, "topics": ["news", "sale"]}
    assert values(bob) == {"name": "Bob", "topics": ["sale"]}


async def test_files_are_kept_with_what_they_contain(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(NAME, PHOTO)

    files = [("photo", ("a.png", PNG, "image/png")), ("photo", ("b.txt", b"Hello", "image/png"))]
    answer = await visitor.post(form, data={"name": "Ann"}, files=files)

    assert answer.status_code == 201, answer.text
    [kept] = await desk.submissions(form)
    first, second = values(kept)["photo"]
    assert (first["filename"], first["type"], first["size"]) == ("a.png", "image", len(PNG))
    assert (second["filename"], second["type"]) == ("b.txt", "document")
    content = await desk.client.get(f"/v1/files/{first['file_id']}/content")
    assert content.content == PNG
    path = f"/v1/forms/{form['form_id']}/submissions/{kept['submission_id']}"
    assert (await desk.client.delete(path)).status_code == 204
    assert (await desk.client.get(f"/v1/files/{first['file_id']}")).status_code == 404
    assert await desk.submissions(form) == []


async def test_too_many_files_and_empty_ones_are_refused(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(NAME, PHOTO)

    three = [("photo", (f"{number}.png", PNG, "image/png")) for number in range(3)]
    many = await visitor.post(form, data={"name": "Ann"}, files=three)
    empty = await visitor.post(
        form, data={"name": "Ann"}, files=[("photo", ("a.png", b"", "image/png"))]
    )

    assert refusal(many) == (400, "validation_failed")
    assert many.json()["error"] == "photo: That is too many: at most 2."
    assert empty.json()["error"].startswith("photo: This file was not accepted")
    assert await desk.submissions(form) == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "name: Please fill this in."),
    ({"name": ""}, "name: Please fill this in."),
    ({"name": 5}, "name: Please write a text."),
    ({"name": "Ann", "age": "many"}, "age: Please enter a number, e.g. 12 or 3.5."),
    ({"name": "Ann", "age": 17}, "age: Please enter a number of at least 18."),
    ({"name": "Ann", "age": True}, "age: Please enter a number, e.g. 12 or 3.5."),
    ({"name": "Ann", "topics": ["x"]}, "topics: Please choose one of the options."),
    ({"name": "Ann", "topics": [[]]}, "topics: Please choose one of the options."),
    ({"name": "Ann", "nmae": "Ann"}, "nmae: the form has no such field"),
    ({"name": "Ann", "_token": "x"}, "_token: is not valid any more"),
    ({"name": "A\0nn"}, "body: "),
    ({"name": "A\x1bnn"}, "name: Please write a text."),
]


@pytest.mark.shared_service
@pytest.mark.parametrize(("sent", "said"), WRONG, ids=[said for _, said in WRONG])
async def test_what_is_wrong_is_told_in_the_envelope(
    desk: Desk, visitor: Visitor, sent: dict[str, Any], said: str
) -> None:
    form = await desk.form(NAME, AGE, TOPICS)

    answer = await visitor.post(form, json=sent)

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith(said), answer.text
    assert await desk.submissions(form) == []


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"[]", "application/json", "validation_failed"),
        (b"{", "application/json", "validation_failed"),
        (b"\xff=1", "application/x-www-form-urlencoded", "bad_request"),
        (b"name=Ann", "text/plain", "bad_request"),
        (b"nothing", "multipart/form-data; boundary=x", "bad_request"),
        (b"nothing", "multipart/form-data", "bad_request"),
    ],
)
async def test_a_body_that_is_none_is_refused(
    desk: Desk, visitor: Visitor, body: bytes, kind: str, code: str
) -> None:
    form = await desk.form()

    answer = await visitor.post(form, content=body, headers={"Content-Type": kind})

    assert refusal(answer) == (400, code)


async def test_a_body_that_is_too_large_is_refused(make_service: Any, make_tenant: Any) -> None:
    service = await make_service(**WITH_FORMS, forms={"max_body_bytes": 20_000})
    desk = Desk(service, await make_tenant(service), FakeClock())
    form = await desk.form(NAME, PHOTO)

    async with visiting(service) as visitor:
        files = [("photo", ("a.png", PNG + b"\0" * 30_000, "image/png"))]
        answer = await visitor.post(form, data={"name": "Ann"}, files=files)
        page = await visitor.http.post(f"/f/{form['form_id']}", data={"name": "Ann"}, files=files)

    assert refusal(answer) == (413, "payload_too_large")
    assert page.status_code == 413
    assert "choose smaller files" in page.text


async def test_what_fills_the_hidden_field_is_kept_apart_as_spam(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(NAME, AGE, rules=[{"to": {"kind": "webhook"}}])

    answer = await visitor.post(form, json={"name": "Bot", form["honeypot"]: "http://x.example"})
    odd = await visitor.post(form, json={"age": 3, form["honeypot"]: "x"})

    # It is told nothing that people aren't.
    assert (answer.status_code, odd.status_code) == (201, 201)
    assert answer.json().keys() == {"submission_id", "form_id", "form_version"}
    assert await desk.submissions(form) == []
    assert await desk.told() == []
    _, spam = await desk.submissions(form, spam="true")
    assert (spam["spam"], values(spam), spam["rules"]) == ("honeypot", {"name": "Bot"}, [])


@pytest.mark.both_databases
async def test_who_is_faster_than_people_is_spam(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form(min_fill_seconds=3)
    path = f"/f/{form['form_id']}/token"

    given = (await visitor.http.get(path)).json()
    clock.advance(2.9)
    await visitor.post(form, json={"name": "Bot", "_token": given["token"]})
    clock.advance(0.1)
    await visitor.post(form, json={"name": "Ann", "_token": given["token"]})

    assert (given["min_fill_seconds"], given["expires_in"]) == (3, 24 * 3600)
    assert [values(one) for one in await desk.submissions(form)] == [{"name": "Ann"}]
    [spam] = await desk.submissions(form, spam="true")
    assert (spam["spam"], values(spam)) == ("too_fast", {"name": "Bot"})


async def test_a_token_is_of_one_form_for_a_day(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form, other = await desk.form(min_fill_seconds=1), await desk.form(slug="other")
    token = (await visitor.http.get(f"/f/{form['form_id']}/token")).json()["token"]
    forged = token[:-1] + ("0" if token[-1] != "0" else "1")

    async def said(form: dict[str, Any], **sent: Any) -> str:
        answer = await visitor.post(form, json={"name": "Ann", **sent})
        return str(answer.json()["error"])

    assert (await said(form)).startswith("_token: is required; GET /f/frm_")
    assert (await said(form, _token=forged)).startswith("_token: is not valid any more")
    assert (await said(other, _token=token)).startswith("_token: is not valid any more")
    clock.advance(24 * 3600 + 1)
    assert (await said(form, _token=token)).startswith("_token: is not valid any more")


async def test_the_same_sent_twice_from_one_page_is_one_submission(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form(NAME, PHOTO, min_fill_seconds=1)
    await visitor.open(form)
    clock.advance(2)
    token = visitor.token

    async def send(name: str) -> str:
        answer = await visitor.post(
            form,
            data={"name": name, "_token": token},
            files=[("photo", ("a.png", PNG, "image/png"))],
        )
        return str(answer.json()["submission_id"])

    first, second = await asyncio.gather(send("Ann"), send("Ann"))
    again, changed = await send("Ann"), await send("Ann Lee")

    assert first == second == again
    assert changed != first
    assert len(await desk.submissions(form)) == 2
    assert len(await desk.told()) == 2
    async with desk.service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS count FROM core_files") == 2


async def test_an_address_sends_five_a_minute(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form()
    for _ in range(5):
        assert (await visitor.post(form, json={"name": "Ann"})).status_code == 201

    refused = await visitor.post(form, json={"name": "Ann"})
    async with visiting(desk.service, "203.0.113.8") as neighbour:
        other = await neighbour.post(form, json={"name": "Bob"})
    clock.advance(60)
    later = await visitor.post(form, json={"name": "Ann"})

    assert refusal(refused) == (429, "form_rate_limited")
    assert refused.headers["Retry-After"] == "60"
    assert refused.json()["retryable"] is True
    assert (other.status_code, later.status_code) == (201, 201)


async def test_neighbours_of_one_ipv6_network_are_counted_together(desk: Desk) -> None:
    form = await desk.form()
    answers = []
    for number in range(6):
        async with visiting(desk.service, f"2001:db8:1:1::{number}") as visitor:
            answers.append((await visitor.post(form, json={"name": "Ann"})).status_code)

    assert answers == [201] * 5 + [429]


async def test_a_form_takes_thirty_a_minute_and_spam_does_not_count(desk: Desk) -> None:
    form = await desk.form()
    answers: list[int] = []
    for number in range(8):
        async with visiting(desk.service, f"203.0.113.{number}") as visitor:
            spam = {"name": "Bot", form["honeypot"]: "x"}
            for sent in [spam if number == 0 else {"name": "Ann"}] * 5:
                answer = await visitor.post(form, json=sent)
                answers.append(answer.status_code)

    assert answers == [201] * 35 + [429] * 5


async def test_the_files_of_a_day_are_bounded_and_spam_counts_apart(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms={"file_bytes_per_day": 2 * len(PNG)})
    form = await Desk(service, await make_tenant(service), clock).form(NAME, PHOTO)

    async def send(number: int, *, files: int = 1, **more: str) -> httpx2.Response:
        async with visiting(service, f"203.0.113.{number}") as visitor:
            photo = ("photo", ("a.png", PNG, "image/png"))
            return await visitor.post(form, data={"name": "Ann", **more}, files=[photo] * files)

    first = await send(1)
    clock.advance(3600)
    taken = [first, await send(2), await send(3, **{form["honeypot"]: "x"})]
    clock.advance(1800)
    refused, without = await send(4), await send(5, files=0)
    clock.advance(int(refused.headers["Retry-After"]) - 1)
    still = await send(6)
    clock.advance(1)
    later = await send(7)

    assert [answer.status_code for answer in taken] == [201] * 3
    assert refusal(refused) == (429, "form_files_limited")
    assert refused.headers["Retry-After"] == str(24 * 3600 - 5400)
    assert (without.status_code, still.status_code, later.status_code) == (201, 429, 201)
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS count FROM core_files") == 4


async def test_pages_of_other_sites_send_only_where_the_form_allows_it(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(allowed_origins=["https://shop.example"])
    path = f"/f/{form['form_id']}"
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }

    async def answers(origin: str) -> tuple[int, str | None, int, str | None]:
        before = await visitor.http.options(path, headers={"Origin": origin, **asked})
        sent = await visitor.post(form, json={"name": "Ann"}, headers={"Origin": origin})
        allowed = "Access-Control-Allow-Origin"
        return (
            before.status_code,
            before.headers.get(allowed),
            sent.status_code,
            sent.headers.get(allowed),
        )

    shop = "https://shop.example"
    assert await answers(shop) == (204, shop, 201, shop)
    assert await answers("https://evil.example") == (204, None, 403, None)
    assert await answers("null") == (204, None, 403, None)
    own = "http://msgsvc.test"
    assert await answers(own) == (204, own, 201, own)
    preflight = await visitor.http.options(path, headers={"Origin": shop, **asked})
    assert preflight.headers["Access-Control-Allow-Methods"] == "GET, POST"
    assert preflight.headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert "Origin" in preflight.headers["Vary"]


async def test_any_site_may_be_allowed(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(allowed_origins=["*"])
    there = {"Origin": "https://any.example"}

    token = await visitor.http.get(f"/f/{form['form_id']}/token", headers=there)
    sent = await visitor.post(form, json={"name": "Ann"}, headers=there)

    assert token.headers["Access-Control-Allow-Origin"] == "https://any.example"
    assert sent.status_code == 201


async def test_who_began_with_a_version_finishes_it(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(NAME, AGE)
    await visitor.open(form)
    await desk.change(form, fields=[{**NAME, "key": "company"}])

    old = await visitor.post(form, data={"name": "Ann", "age": "20", "_token": visitor.token})
    new = await visitor.post(form, json={"company": "Shop"})

    assert (old.json()["form_version"], new.json()["form_version"]) == (1, 2)
    second, first = await desk.submissions(form)
    assert (values(first), first["form_version"]) == ({"name": "Ann", "age": 20}, 1)
    assert (values(second), second["form_version"]) == ({"company": "Shop"}, 2)


async def test_a_form_that_is_gone_or_of_a_disabled_project_is_not_found(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form()
    async with desk.service.db.transaction() as tx:
        await tx.execute("UPDATE core_projects SET status = 'inactive'")
    disabled = await visitor.post(form, json={"name": "Ann"})
    unknown = await visitor.post({"form_id": "frm_nobody"}, json={"name": "Ann"})
    page = await visitor.open(form)
    thanks = await visitor.http.get("/f/nonsense/thanks")

    assert refusal(disabled) == refusal(unknown) == (404, "not_found")
    assert (page.status_code, thanks.status_code) == (404, 404)
    assert "Form not found" in page.text
