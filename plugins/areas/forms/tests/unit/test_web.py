"""What the web sends in, and the pages that people see, built from fakes."""

import io
from dataclasses import asdict, replace
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.routing import Router

from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import from_json
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import fake_secrets
from msgsvc_forms import plugin
from msgsvc_forms.errors import FormFilesLimited, FormRateLimited
from msgsvc_forms.models import Form
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.web.intake import Intake, WrongAnswers
from msgsvc_forms.web.pages import WebForms
from msgsvc_forms.web.posted import Posted, PostedFile
from msgsvc_forms.web.public import NoToken
from msgsvc_forms.web.rendering import FormPages, Shown
from msgsvc_forms.web.tokens import PageTokens

from .order import FIELDS, FORM, SENT_IN, form_of, public_forms, submissions, tables

PHOTO = {"key": "photo", "type": "file", "label": "Photo?", "max": 2}


@pytest.fixture
def core() -> FakeContext:
    core = plugin_context(plugin=plugin)
    hold(core, FORM)
    return core


def hold(core: FakeContext, form: Form | None, **others: Any) -> None:
    """Has the database hold a form, and nothing that was sent in with it."""
    core.db.replies = tables(form, others={"once_key = :once_key": [], **others})


# ---- tokens -------------------------------------------------------------------------------------


def test_a_token_says_its_version_and_when_it_was_given() -> None:
    tokens = PageTokens(fake_secrets())
    token = tokens.read("frm_1", tokens.new(replace(FORM, version=3), 1_700_000_000_000))

    assert token is not None
    assert (token.version, token.issued_ms) == (3, 1_700_000_000_000)


def test_a_token_is_of_one_form_and_can_not_be_changed() -> None:
    tokens = PageTokens(fake_secrets())
    text = tokens.new(FORM, 5)

    assert text != tokens.new(FORM, 5)
    assert tokens.read("frm_2", text) is None
    assert tokens.read("frm_1", text.replace("1.5.", "1.6.", 1)) is None
    assert tokens.read("frm_1", text + "x") is None


# ---- forms at their addresses -------------------------------------------------------------------


def posted(core: FakeContext, form: Form = FORM, *, age_s: float = 10, **values: Any) -> Posted:
    """What was filled in on a page that was fetched so long ago."""
    token = public_forms(core).new_token(form)
    core.clock.advance(age_s)
    return Posted({"_token": [token], **{name: [value] for name, value in values.items()}})


async def test_who_began_with_a_version_finishes_it(core: FakeContext) -> None:
    newest, first = form_of(2, title="New"), posted(core, form_of(1))
    hold(core, form_of(1))

    assert (await public_forms(core).version_of(newest, first)).version == 1
    hold(core, None)
    assert (await public_forms(core).version_of(newest, first)).version == 2
    assert (await public_forms(core).version_of(newest, Posted({}))).version == 2


async def test_a_token_is_good_for_a_day_and_asked_for_where_time_counts(core: FakeContext) -> None:
    page = posted(core, age_s=24 * 3600)
    assert public_forms(core).token_of(FORM, page) is not None
    core.clock.advance(1)

    with pytest.raises(NoToken, match="not valid any more"):
        public_forms(core).token_of(FORM, page)
    with pytest.raises(NoToken, match="is required"):
        public_forms(core).token_of(FORM, Posted({}))
    assert public_forms(core).token_of(form_of(min_fill_seconds=0), Posted({})) is None


async def test_who_sends_a_shown_page_again_at_once_is_not_too_fast(core: FakeContext) -> None:
    late = posted(core, age_s=48 * 3600)
    renewed = public_forms(core).renewed_token(FORM, late)
    fresh = public_forms(core).renewed_token(FORM, Posted({}))

    issued = [
        found.issued_ms
        for text in (renewed, fresh)
        if (found := PageTokens(core.secrets).read("frm_1", text)) is not None
    ]
    assert issued == [core.clock.now_ms() - 3000, core.clock.now_ms()]


# ---- what is sent in ----------------------------------------------------------------------------


def intake(core: FakeContext, **settings: Any) -> Intake:
    return Intake(
        clock=core.clock,
        db=core.db,
        limiter=core.limiter,
        texts=core.texts,
        files=core.files,
        submissions=submissions(core),
        forms=public_forms(core),
        settings=FormsSettings(**settings),
    )


def kept(core: FakeContext) -> dict[str, Any]:
    """The one submission that was kept."""
    [row] = core.db.params_of("INSERT INTO forms_submissions")
    return row


async def test_answers_are_kept_as_their_fields_take_them(core: FakeContext) -> None:
    await intake(core).submit(FORM, posted(core, name="Ann", count="3"), "en")

    values = [answer["value"] for answer in from_json(kept(core)["answers"])]
    assert values == ["Ann", 3]
    assert kept(core)["spam"] is None


async def test_every_wrong_answer_is_named(core: FakeContext) -> None:
    with pytest.raises(WrongAnswers) as refused:
        await intake(core).submit(FORM, posted(core, count="12"), "en")

    why = {key: wrong.why for key, wrong in refused.value.wrong.items()}
    assert why == {"name": "required", "count": "too_large"}
    assert core.db.commits == 0


async def test_a_field_that_the_form_does_not_have_is_refused(core: FakeContext) -> None:
    with pytest.raises(ValidationFailed, match="no such field"):
        await intake(core).submit(FORM, posted(core, name="Ann", other="x"), "en")


@pytest.mark.parametrize(
    ("age_s", "values", "reason"),
    [(10, {"website": "x"}, "honeypot"), (2, {}, "too_fast"), (3, {}, None)],
)
async def test_machines_fill_in_what_nobody_sees_or_are_too_fast(
    core: FakeContext, age_s: int, values: dict[str, Any], reason: str | None
) -> None:
    await intake(core).submit(FORM, posted(core, age_s=age_s, name="Ann", **values), "en")

    assert kept(core)["spam"] == reason


async def test_a_machine_is_not_told_what_is_wrong(core: FakeContext) -> None:
    await intake(core).submit(FORM, posted(core, website="x", count="many"), "en")

    assert kept(core)["spam"] == "honeypot"


async def test_the_same_page_sent_twice_is_one_submission(core: FakeContext) -> None:
    page = posted(core, name="Ann")
    await intake(core).submit(FORM, page, "en")
    once_key = kept(core)["once_key"]
    core.db.replies["once_key = :once_key"] = lambda params: (
        [asdict(SENT_IN)] if params["once_key"] == once_key else []
    )
    again = await intake(core).submit(FORM, page, "en")

    assert again == SENT_IN
    other = Posted({**page.values, "name": ["Boris"]})
    assert (await intake(core).submit(FORM, other, "en")).submission_id != SENT_IN.submission_id


async def test_spam_takes_no_slot_of_people(core: FakeContext) -> None:
    one = intake(core, submissions_per_minute=1)
    await one.submit(FORM, posted(core, name="Ann", website="x"), "en")
    await one.submit(FORM, posted(core, name="Ann"), "en")

    with pytest.raises(FormRateLimited) as limited:
        await one.submit(FORM, posted(core, name="Boris"), "en")
    assert limited.value.retry_after_s == 50


async def test_an_address_of_ipv6_counts_as_its_network(core: FakeContext) -> None:
    one = intake(core, submissions_per_minute_per_address=1)
    await one.count_address(FORM, "2001:db8:1:2::1")
    await one.count_address(FORM, "2001:db8:1:3::1")

    with pytest.raises(FormRateLimited, match="from one address"):
        await one.count_address(FORM, "2001:db8:1:2::2")


def photo(name: str = "a.png", size: int = 72) -> PostedFile:
    head = b"\x89PNG\r\n\x1a\n"
    return PostedFile(io.BytesIO(head + b"\0" * (size - len(head))), name, size)


def with_photos(core: FakeContext, form: Form, *photos: PostedFile) -> Posted:
    page = posted(core, form, name="Ann")
    return Posted(page.values, {"photo": photos})


async def test_files_are_stored_and_stand_in_the_answer(core: FakeContext) -> None:
    form = form_of(fields=[*FIELDS, PHOTO])
    hold(core, form)
    await intake(core).submit(form, with_photos(core, form, photo()), "en")

    [file_id] = core.files.kept
    assert from_json(kept(core)["answers"])[1]["value"][0]["file_id"] == file_id
    assert kept(core)["file_bytes"] == 72


async def test_a_file_without_content_is_a_wrong_answer(core: FakeContext) -> None:
    form = form_of(fields=[*FIELDS, PHOTO])
    hold(core, form)
    empty = PostedFile(io.BytesIO(b""), "a.png", 0)

    with pytest.raises(WrongAnswers, match="photo"):
        await intake(core).submit(form, with_photos(core, form, empty), "en")


@pytest.mark.parametrize(("full_ago_ms", "wait_s"), [(None, None), (DAY_MS - 1500, 2)])
async def test_the_files_of_a_day_are_bounded(
    core: FakeContext, full_ago_ms: int | None, wait_s: int | None
) -> None:
    form = form_of(fields=[*FIELDS, PHOTO])
    page = with_photos(core, form, photo())
    full_ms = None if full_ago_ms is None else core.clock.now_ms() - full_ago_ms
    hold(core, form, **{"MAX(created_at_ms)": [{"max": full_ms}]})

    if wait_s is None:
        await intake(core).submit(form, page, "en")
    else:
        with pytest.raises(FormFilesLimited) as limited:
            await intake(core).submit(form, page, "en")
        assert limited.value.retry_after_s == wait_s


async def test_one_that_is_larger_than_a_days_files_is_refused_whatever_there_is(
    core: FakeContext,
) -> None:
    form = form_of(fields=[*FIELDS, PHOTO])
    hold(core, form, **{"MAX(created_at_ms)": [{"max": None}]})

    with pytest.raises(FormFilesLimited):
        page = with_photos(core, form, photo())
        await intake(core, file_bytes_per_day=71).submit(form, page, "en")
    assert core.files.stored == {}


async def test_files_of_what_came_second_are_removed(core: FakeContext) -> None:
    form = form_of(fields=[*FIELDS, PHOTO])
    page = with_photos(core, form, photo())
    looks = [[], [asdict(SENT_IN)]]
    hold(
        core,
        form,
        **{"INSERT INTO forms_submissions": 0, "MAX(created_at_ms)": [{"max": None}]},
    )
    core.db.replies["once_key = :once_key"] = lambda _: looks.pop(0)

    assert await intake(core).submit(form, page, "en") == SENT_IN
    assert core.files.stored == {}


# ---- pages --------------------------------------------------------------------------------------


def rendered(core: FakeContext) -> FormPages:
    return FormPages(texts=core.texts, default_lang="en", languages=("en", "ru"))


def request(**headers: str) -> Request:
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], **headers})


async def test_what_was_typed_is_shown_again_as_text(core: FakeContext) -> None:
    typed = {"name": ["<b>Ann</b>"]}
    page = rendered(core).form(request(), Shown(FORM, "en", "token", typed))

    html = bytes(page.body).decode()
    assert "&lt;b&gt;Ann&lt;/b&gt;" in html
    assert 'name="website"' in html
    assert page.status_code == 200


async def test_who_sends_too_much_is_told_when_to_come_again(core: FakeContext) -> None:
    error = FormRateLimited("too much", retry_after_s=40)
    page = rendered(core).form(request(), Shown(FORM, "ru", "token", error=error))

    assert page.status_code == 429
    assert page.headers["retry-after"] == "40"


async def test_a_page_leads_only_to_where_its_form_says(core: FakeContext) -> None:
    shop = form_of(redirect_url="https://shop.example/done")
    pages = [rendered(core).form(request(), Shown(form, "en", "t")) for form in (FORM, shop)]

    policies = [page.headers["content-security-policy"] for page in pages]
    assert ["https://shop.example" in policy for policy in policies] == [False, True]


async def test_pages_are_below_another_application_if_the_service_is(core: FakeContext) -> None:
    page = rendered(core).thanks(request(root_path="/msg"), FORM, "en")

    assert "/msg/f/frm_1" in bytes(page.body).decode()


# ---- routes -------------------------------------------------------------------------------------


def web(core: FakeContext, **settings: Any) -> WebForms:
    return WebForms(
        forms=public_forms(core),
        intake=intake(core, **settings),
        pages=rendered(core),
        config=core.config,
        settings=FormsSettings(**settings),
    )


#: An id as the service gives them.
FORM_ID = new_id("frm")


def visitor(core: FakeContext, form: Form | None = FORM, **settings: Any) -> httpx2.AsyncClient:
    """Somebody who visits the pages of a form, and nothing else of the service."""
    hold(core, form)
    app = Router(routes=web(core, **settings).routes())
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://msgsvc.test")


HTML = {"accept": "text/html"}


async def test_a_browser_is_led_to_the_thanks_and_a_program_gets_json(core: FakeContext) -> None:
    browser, page = visitor(core), posted(core, name="Ann").values
    shown = await browser.post(f"/f/{FORM_ID}", data=page, headers=HTML)
    told = await browser.post(
        f"/f/{FORM_ID}", json={name: value[0] for name, value in page.items()}
    )

    assert shown.status_code == 303
    assert shown.headers["location"] == "/f/frm_1/thanks?lang=en"
    assert (told.status_code, told.json()["form_id"]) == (201, "frm_1")


async def test_what_was_typed_stays_when_an_answer_is_wrong(core: FakeContext) -> None:
    page = posted(core, name="Ann", count="12").values
    shown = await visitor(core).post(f"/f/{FORM_ID}", data=page, headers=HTML)

    assert shown.status_code == 400
    assert 'value="Ann"' in shown.text
    assert page["_token"][0] in shown.text


async def test_a_page_that_was_open_too_long_gets_a_token_that_works(core: FakeContext) -> None:
    page = posted(core, age_s=48 * 3600, name="Ann").values
    shown = await visitor(core).post(f"/f/{FORM_ID}", data=page, headers=HTML)

    assert 'value="Ann"' in shown.text
    assert page["_token"][0] not in shown.text


async def test_pages_of_other_sites_send_where_the_form_allows_it(core: FakeContext) -> None:
    form = form_of(allowed_origins=["https://shop.example"])
    asked = [
        await visitor(core, form).get(f"/f/{FORM_ID}/token", headers={"origin": origin})
        for origin in ("https://shop.example",)
    ]
    program = await visitor(core, form).options(
        f"/f/{FORM_ID}", headers={"origin": "https://x.example"}
    )

    assert asked[0].headers["access-control-allow-origin"] == "https://shop.example"
    assert asked[0].json()["min_fill_seconds"] == 3
    assert "access-control-allow-origin" not in program.headers
    refused = await visitor(core, form).post(
        f"/f/{FORM_ID}", json={"name": "Ann"}, headers={"origin": "https://x.example"}
    )
    assert refused.status_code == 403


async def test_who_sends_too_much_keeps_what_they_typed(core: FakeContext) -> None:
    browser = visitor(core, submissions_per_minute_per_address=1)
    await browser.post(f"/f/{FORM_ID}", data=posted(core, name="Ann").values, headers=HTML)
    page = posted(core, name="Boris").values
    shown = await browser.post(f"/f/{FORM_ID}", data=page, headers=HTML)

    assert shown.status_code == 429
    assert 'value="Boris"' in shown.text


async def test_a_person_sees_a_page_where_no_form_is_and_a_program_the_error(
    core: FakeContext,
) -> None:
    browser = visitor(core, None)

    assert (await browser.get(f"/f/{FORM_ID}")).status_code == 404
    assert (await browser.get("/f/nonsense/thanks")).status_code == 404
    assert (await browser.post(f"/f/{FORM_ID}", data={}, headers=HTML)).status_code == 404
    with pytest.raises(NotFound):
        await browser.post(f"/f/{FORM_ID}", json={})
