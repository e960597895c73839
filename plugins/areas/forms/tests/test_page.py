"""The ready page by HTTP: what it shows, what it keeps of what was typed, where it leads."""

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_forms.definition import read_definition
from tests.payloads import NAMES, PAYLOADS

from .conftest import NAME, WITH_FORMS, Desk
from .web import PNG, Visitor, visiting

#: A field of every type.
EVERY: list[dict[str, Any]] = [
    NAME,
    {"key": "age", "type": "number", "label": "Age"},
    {"key": "mail", "type": "email", "label": "Email"},
    {"key": "phone", "type": "phone", "label": "Phone"},
    {"key": "day", "type": "date", "label": "Day", "min": "2026-01-01"},
    {"key": "size", "type": "choice", "label": "Size", "options": ["S", "M", "L"]},
    {"key": "city", "type": "choice", "label": "City", "options": [f"C{n}" for n in range(9)]},
    {"key": "topics", "type": "multichoice", "label": "Topics", "options": ["news", "sale"]},
    {"key": "mark", "type": "rating", "label": "Mark"},
    {"key": "about", "type": "text", "label": "About", "multiline": True},
    {"key": "photo", "type": "file", "label": "Photo"},
    {"key": "terms", "type": "consent", "label": {"en": "I agree", "ru": "Согласен"}},
]


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    async with visiting(service) as opened:
        yield opened


def tag(page: str, pattern: str) -> str:
    """The first tag that holds the text."""
    match = re.search(rf"<[^<>]*{pattern}[^<>]*>", page)
    assert match, f"no {pattern} in {page}"
    return match[0]


async def test_page_asks_every_question_in_the_readers_language(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(*EVERY, title={"en": "Join", "ru": "Вступить"}, description="Hi")

    english, russian = (await visitor.open(form)).text, (await visitor.open(form, "ru")).text

    assert '<html lang="en">' in english
    assert "<h1>Join</h1>" in english
    assert "I agree" in english
    assert '<html lang="ru">' in russian
    assert "<h1>Вступить</h1>" in russian
    assert "Согласен" in russian
    assert "Отправить" in russian
    for kind in ("email", "tel", "date", "file", "radio", "checkbox"):
        assert tag(english, f'type="{kind}"')
    assert tag(english, 'inputmode="decimal"')
    assert 'enctype="multipart/form-data"' in tag(english, 'method="post"')
    assert "required" in tag(english, 'name="name"')
    assert english.count("<option ") == 10
    assert english.count('name="mark"') == 5


async def test_page_lets_nothing_in_and_stays_out_of_frames(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(redirect_url="https://shop.example/thanks?a=b")

    headers = (await visitor.open(form)).headers

    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self' https://shop.example;" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


async def test_a_host_in_another_script_is_led_to_as_dns_has_it(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(redirect_url="https://пример.рф/спасибо")

    shown = await visitor.open(form)

    assert shown.status_code == 200
    assert (
        "form-action 'self' https://xn--e1afmkfd.xn--p1ai;"
        in (shown.headers["Content-Security-Policy"])
    )


def test_a_form_that_was_taken_with_a_wrong_host_is_read_without_it() -> None:
    field = {"key": "name", "type": "text", "label": {"en": "Name"}}
    column = {"title": {"en": "T"}, "fields": [field], "redirect_url": "https://a;sandbox/x"}

    assert read_definition(json.dumps(column)).redirect_url is None


async def test_a_browser_without_scripts_sends_it_and_is_thanked(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form(*EVERY, min_fill_seconds=3, thanks={"en": "See you", "ru": "До встречи"})
    await visitor.open(form)
    clock.advance(5)

    sent = await visitor.send(
        form,
        name="Ann",
        age="",
        topics=["sale", "news"],
        mark="4",
        terms="true",
        files={"photo": ("a.png", PNG, "image/png")},
    )
    thanks = await visitor.http.get(sent.headers["Location"])
    russian = await visitor.http.get(sent.headers["Location"].replace("=en", "=ru"))

    assert sent.status_code == 303
    assert "See you" in thanks.text
    assert "До встречи" in russian.text
    [kept] = await desk.submissions(form)
    assert {one["key"] for one in kept["answers"]} == {"name", "topics", "mark", "photo", "terms"}


async def test_a_registered_page_takes_the_place_of_the_thanks(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form(redirect_url="https://shop.example/thanks")
    await visitor.open(form)

    sent = await visitor.send(form, name="Ann")
    elsewhere = await visitor.send_to(form, name="Ann", redirect_url="https://evil.example")

    assert sent.headers["Location"] == "https://shop.example/thanks"
    assert elsewhere.status_code == 400


async def test_what_was_typed_stays_when_something_is_wrong(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form(*EVERY)
    await visitor.open(form)
    token = visitor.token

    page = await visitor.send(
        form,
        age="x",
        mail="ann@",
        size="M",
        city="C3",
        topics="news",
        mark="2",
        about="one\ntwo",
        terms="true",
        files={"photo": ("a.png", PNG, "image/png")},
    )

    assert page.status_code == 400
    text = page.text
    assert 'role="alert"' in text
    assert '<a href="#f-name">Name</a>: Please fill this in.' in text
    assert '<a href="#f-age">Age</a>: Please enter a number, e.g. 12 or 3.5.' in text
    assert 'value="x"' in tag(text, 'name="age"')
    assert 'aria-invalid="true" aria-describedby="f-age-fault"' in tag(text, 'name="age"')
    assert 'value="ann@"' in tag(text, 'name="mail"')
    assert "checked" in tag(text, 'name="size" value="M"')
    assert "checked" not in tag(text, 'name="size" value="L"')
    assert "selected" in tag(text, 'value="C3"')
    assert "checked" in tag(text, 'name="mark" value="2"')
    assert ">\none\ntwo</textarea>" in text
    assert "checked" in tag(text, 'name="terms"')
    assert "Please choose the files again." in text
    assert visitor.token == token


async def test_faults_are_told_in_the_readers_language(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form()
    await visitor.open(form)

    page = await visitor.send(form, _lang="ru")

    assert "Пожалуйста, заполните." in page.text
    assert '<html lang="ru">' in page.text


async def test_a_page_that_was_open_too_long_keeps_what_was_typed(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form(min_fill_seconds=3)
    await visitor.open(form)
    clock.advance(25 * 3600)

    late = await visitor.send(form, name="Ann")
    assert late.status_code == 400
    assert "Please send again" in late.text
    assert 'value="Ann"' in tag(late.text, 'name="name"')
    # At once, as asked: nobody who does is a machine.
    sent = await visitor.send(form, name="Ann")

    assert sent.status_code == 303
    assert len(await desk.submissions(form)) == 1


async def test_a_form_of_a_sites_own_without_token_leads_to_the_page(
    desk: Desk, visitor: Visitor, clock: FakeClock
) -> None:
    form = await desk.form(min_fill_seconds=3, allowed_origins=["https://shop.example"])

    visitor.shown = await visitor.http.post(
        f"/f/{form['form_id']}", data={"name": "Ann"}, headers={"Origin": "https://shop.example"}
    )
    assert 'value="Ann"' in tag(visitor.shown.text, 'name="name"')
    clock.advance(5)
    sent = await visitor.send(form, name="Ann")

    assert sent.status_code == 303


async def test_who_sends_too_much_is_asked_to_wait_with_what_they_typed(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form()
    for _ in range(6):
        await visitor.open(form)
        page = await visitor.send(form, name="Ann")

    assert page.status_code == 429
    assert page.headers["Retry-After"] == "60"
    assert "Please wait a minute" in page.text
    assert 'value="Ann"' in tag(page.text, 'name="name"')


async def test_where_no_more_files_are_taken_the_page_says_so_with_what_was_typed(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms={"file_bytes_per_day": 10})
    form = await Desk(service, await make_tenant(service), clock).form(NAME, EVERY[10])
    async with visiting(service) as visitor:
        await visitor.open(form)
        refused = await visitor.send(form, {"photo": ("a.png", PNG, "image/png")}, name="Ann")
        without = await visitor.send(form, name="Ann")

    assert refused.status_code == 429
    assert "No more files today" in refused.text
    assert 'value="Ann"' in tag(refused.text, 'name="name"')
    assert without.status_code == 303


async def test_who_sends_a_form_that_was_deleted_is_told_by_a_page(
    desk: Desk, visitor: Visitor
) -> None:
    form = await desk.form()
    await visitor.open(form)
    await desk.client.delete(f"/v1/forms/{form['form_id']}")

    answer = await visitor.send(form, name="Ann")

    assert answer.status_code == 404
    assert "Form not found" in answer.text


async def test_a_page_of_another_site_is_refused_as_a_page(desk: Desk, visitor: Visitor) -> None:
    form = await desk.form()

    page = await visitor.http.post(
        f"/f/{form['form_id']}", data={"name": "Ann"}, headers={"Origin": "https://evil.example"}
    )

    assert page.status_code == 403
    assert "This page can&#39;t send the form" in page.text


async def test_questions_that_a_way_leads_past_need_no_answer(desk: Desk, visitor: Visitor) -> None:
    company = {"key": "company", "type": "text", "label": "Company", "required": True}
    kind = {"key": "kind", "type": "choice", "label": "Kind", "options": ["person", "firm"]}
    skip = {
        "when": {"field": "kind", "op": "ne", "value": "firm"},
        "to": {"kind": "next_field", "field": "name"},
    }
    form = await desk.form({**kind, "required": True}, company, NAME, rules=[skip])
    text = (await visitor.open(form)).text

    person = await visitor.send(form, kind="person", name="Ann")
    await visitor.open(form)
    firm = await visitor.send(form, kind="firm", name="Ann")

    assert "required" not in tag(text, 'name="company"')
    assert "required" in tag(text, 'name="name"')
    assert person.status_code == 303
    assert firm.status_code == 400
    assert '<a href="#f-company">Company</a>' in firm.text


def harmless(page: str, payload: str) -> None:
    """The payload is on the page as text, and has made no tag, attribute or script of its own."""
    inputs = re.findall(r"<(\w+)", page)
    assert set(inputs) <= {
        *(
            "html",
            "head",
            "meta",
            "title",
            "link",
            "script",
            "body",
            "main",
            "div",
            "h1",
            "h2",
            "p",
        ),
        *("ul", "li", "a", "form", "input", "label", "textarea", "span", "button", "footer", "nav"),
        "header",
    }
    assert page.count("<script") == 1
    shown = " ".join(unescape(page).split())
    assert " ".join(payload.split()) in shown


#: Limits that no test of many submissions comes to.
LOTS = {"submissions_per_minute_per_address": 1000, "submissions_per_minute": 1000}


async def test_markup_that_was_typed_is_shown_as_text(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms=LOTS)
    desk = Desk(service, await make_tenant(service), clock)
    form = await desk.form(NAME, EVERY[9], EVERY[1])
    async with visiting(service) as visitor:
        for payload in PAYLOADS:
            await visitor.open(form)
            page = await visitor.send(form, name=payload, about=payload, age="x")

            assert page.status_code == 400
            harmless(page.text, payload)


async def test_a_senders_name_is_shown_as_text(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms=LOTS)
    tenant = await make_tenant(service)
    form = await Desk(service, tenant, clock).form(NAME)
    shown = 0
    async with visiting(service) as visitor:
        for payload in NAMES:
            look = {"sender_name": payload, "accent": "#ffd400"}
            answer = await tenant.client.patch("/v1/project/branding", json=look)
            if answer.is_success:
                page = await visitor.open(form)
                harmless(page.text, payload)
                assert page.text.count('href="/brand/ffd400.css"') == 1
                shown += 1

    assert shown > 50


async def test_markup_comes_through_as_it_was_written(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_FORMS, forms=LOTS)
    desk = Desk(service, await make_tenant(service), clock)
    ann = await desk.person("Ann")
    form = await desk.form(
        EVERY[9], EVERY[10], rules=[{"to": {"kind": "subscriber", "subscriber_id": ann}}]
    )
    async with visiting(service) as visitor:
        for payload in NAMES:
            files = {"photo": (f"{payload}.png", PNG, "image/png")}
            answer = await visitor.post(form, data={"about": payload}, files=files)
            assert answer.status_code == 201, answer.text
    await settled(service)

    for payload, text in zip(NAMES, desk.texts("Ann"), strict=True):
        assert f"About: {payload.strip()}" in text
    names = [
        one["answers"][1]["value"][0]["filename"] for one in await desk.submissions(form, limit=100)
    ]
    assert len(names) == len(NAMES)
    assert "<script>alert(1)<&#47;script>.png" in names
