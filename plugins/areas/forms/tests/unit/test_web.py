"""What the web sends in, and the pages that people see."""

import io
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request

from msgsvc_devkit.core import MemoryCore
from msgsvc_forms.errors import FormRateLimited
from msgsvc_forms.models import Form
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.submissions import Submissions
from msgsvc_forms.web.intake import Intake
from msgsvc_forms.web.posted import Posted, PostedFile
from msgsvc_forms.web.public import NoToken, PublicForms
from msgsvc_forms.web.rendering import FormPages
from msgsvc_forms.web.tokens import PageTokens
from plugins.areas.forms.tests.unit.order import FIELDS, FORM, FORM_ID, add_form, form_of, kept

PHOTO = {"key": "photo", "type": "file", "label": "Photo?", "max": 2}


# ---- tokens -------------------------------------------------------------------------------------


def test_a_token_says_its_version_and_when_it_was_given(core: MemoryCore) -> None:
    tokens = PageTokens(core.secrets)
    token = tokens.read(FORM_ID, tokens.new(replace(FORM, version=3), 1_700_000_000_000))

    assert token is not None
    assert (token.version, token.issued_ms) == (3, 1_700_000_000_000)


def test_a_token_is_of_one_form_and_can_not_be_changed(core: MemoryCore) -> None:
    tokens = PageTokens(core.secrets)
    text = tokens.new(FORM, 5)

    assert text != tokens.new(FORM, 5)
    assert tokens.read(FORM_ID, text) is not None
    assert tokens.read("frm_2", text) is None
    assert tokens.read(FORM_ID, text.replace("1.5.", "1.6.", 1)) is None
    assert tokens.read(FORM_ID, text + "x") is None


# ---- forms at their addresses -------------------------------------------------------------------


def public_forms(core: MemoryCore) -> PublicForms:
    return PublicForms(
        clock=core.clock,
        db=core.db,
        projects=core.projects,
        forms=core.get(Forms),
        tokens=PageTokens(core.secrets),
        settings=core.settings(FormsSettings),
    )


def posted(core: MemoryCore, form: Form = FORM, *, age_s: float = 10, **values: Any) -> Posted:
    """What was filled in on a page that was fetched so long ago."""
    token = public_forms(core).new_token(form)
    core.clock.advance(age_s)
    return Posted({"_token": [token], **{name: [value] for name, value in values.items()}})


async def test_a_page_of_a_version_that_is_gone_is_one_of_the_newest(core: MemoryCore) -> None:
    newest = form_of(2)

    assert await public_forms(core).version_of(newest, posted(core, form_of(1))) == newest


def test_a_token_is_good_for_a_day_and_asked_for_where_time_counts(core: MemoryCore) -> None:
    page = posted(core, age_s=24 * 3600)
    assert public_forms(core).token_of(FORM, page) is not None
    core.clock.advance(1)

    with pytest.raises(NoToken, match="not valid any more"):
        public_forms(core).token_of(FORM, page)
    with pytest.raises(NoToken, match="is required"):
        public_forms(core).token_of(FORM, Posted({}))
    assert public_forms(core).token_of(form_of(min_fill_seconds=0), Posted({})) is None


# ---- what is sent in ----------------------------------------------------------------------------


def intake(core: MemoryCore) -> Intake:
    return Intake(
        clock=core.clock,
        db=core.db,
        limiter=core.limiter,
        texts=core.texts,
        files=core.files,
        submissions=core.get(Submissions),
        forms=public_forms(core),
        settings=core.settings(FormsSettings),
    )


@pytest.mark.parametrize("core", [{"submissions_per_minute_per_address": 1}], indirect=True)
async def test_an_address_of_ipv6_counts_as_its_network(core: MemoryCore) -> None:
    one = intake(core)
    await one.count_address(FORM, "2001:db8:1:2::1")
    await one.count_address(FORM, "2001:db8:1:3::1")

    with pytest.raises(FormRateLimited, match="from one address"):
        await one.count_address(FORM, "2001:db8:1:2::2")


async def test_files_of_what_came_second_are_removed(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_committed_yet(*_: Any) -> None:
        return None

    async with core.db.transaction() as tx:
        form = await add_form(tx, fields=[*FIELDS, PHOTO])
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
    values = posted(core, form, name="Ann").values
    page = Posted(values, {"photo": [PostedFile(io.BytesIO(png), "a.png", len(png))]})
    monkeypatch.setattr(core.get(Submissions), "find_by_once_key", not_committed_yet)
    first, second = [await intake(core).submit(form, page, "en") for _ in range(2)]

    assert second == first
    async with core.db.read() as tx:
        assert await kept(tx) == [first]
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_files") == 1


# ---- pages --------------------------------------------------------------------------------------


async def test_pages_are_below_another_application_if_the_service_is(core: MemoryCore) -> None:
    pages = FormPages(texts=core.texts, default_lang="en", languages=("en", "ru"))
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "root_path": "/msg"}
    page = pages.thanks(Request(scope), FORM, "en")

    assert f"/msg/f/{FORM_ID}" in bytes(page.body).decode()
