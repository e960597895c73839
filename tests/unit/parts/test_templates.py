"""Templates, and what pages offer of them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.content.spans import Span
from msgsvc_core.dashboard.access import Viewer
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.dashboard.previewing import MessagePreviews
from msgsvc_core.dashboard.writing import MessageChoices
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    PreviewTemplateBody,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core

GREETING = {"en": "Hi {{ name }}!", "ru": "Привет, {{ name }}!"}


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    limits = {"text_length": 50, "templates": 2, "tags": 200}
    async with memory_core(limits=limits) as core:
        yield core


def body(
    text: str | Mapping[str, str] = GREETING, key: str = "hello", **fields: Any
) -> CreateTemplateBody:
    return CreateTemplateBody.model_validate({"key": key, "text": text, **fields})


async def test_a_key_is_used_once_and_a_project_has_so_many_templates(
    core: MemoryCore, tx: Tx
) -> None:
    await core.templates.create(tx, PROJECT, body())
    with pytest.raises(Conflict, match="'hello' already"):
        await core.templates.create(tx, PROJECT, body("Bye"))
    await core.templates.create(tx, PROJECT, body(key="second"))

    with pytest.raises(Conflict, match="at most 2 templates"):
        await core.templates.create(tx, PROJECT, body(key="third"))


async def test_what_could_be_sent_in_no_language_is_not_kept(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(ValidationFailed, match="at most 50"):
        await core.templates.create(tx, PROJECT, body({"en": "Hi", "ru": "х" * 51}))
    with pytest.raises(ValidationFailed):
        await core.templates.create(tx, PROJECT, body("Hi {{ name"))

    assert await core.templates.page(tx, PROJECT, None, 10) == []


async def test_a_change_keeps_what_it_does_not_name(core: MemoryCore, tx: Tx) -> None:
    await core.templates.create(tx, PROJECT, body(format="markdown"))
    changed = await core.templates.update(tx, PROJECT, "hello", UpdateTemplateBody(text="Bye"))

    shown = TemplateContent.model_validate_json(changed.content)
    assert (shown.text, shown.format) == ("Bye", "markdown")
    assert await core.templates.find(tx, PROJECT, "hello") == changed


async def test_a_template_is_rendered_in_the_readers_language_or_the_default_one(
    core: MemoryCore, tx: Tx
) -> None:
    await core.templates.create(tx, PROJECT, body())
    texts = [
        (await core.templates.render(PROJECT, "hello", {"name": 7}, lang, tx)).text
        for lang in ("ru", "fr")
    ]

    assert texts == ["Привет, 7!", "Hi 7!"]


async def test_a_variable_that_is_missing_or_makes_it_too_long_is_refused(
    core: MemoryCore, tx: Tx
) -> None:
    await core.templates.create(tx, PROJECT, body())

    with pytest.raises(ValidationFailed, match=r"variables\.name: is required"):
        await core.templates.render(PROJECT, "hello", {}, "en", tx)
    with pytest.raises(ValidationFailed, match="50"):
        await core.templates.render(PROJECT, "hello", {"name": "x" * 60}, "en", tx)
    with pytest.raises(NotFound):
        await core.templates.render(PROJECT, "bye", {}, "en", tx)


async def test_a_preview_tells_which_channels_refuse_it_and_what_nobody_uses(
    core: MemoryCore,
) -> None:
    core.recording("messenger_b").capabilities = Capabilities(max_text_length=5)
    async with core.db.transaction() as tx:
        await core.templates.create(tx, PROJECT, body())
    values = PreviewTemplateBody(variables={"name": "Ann", "nmae": "x"})
    shown = await core.templates.preview(PROJECT, "hello", values)

    assert [message.text for message in shown.data] == ["Hi Ann!", "Привет, Ann!"]
    assert {each.channel for message in shown.data for each in message.problems} == {"messenger_b"}
    assert shown.unused == ["nmae"]


def test_a_variable_without_a_value_is_tried_out_by_its_name(core: MemoryCore) -> None:
    shown = core.templates.try_out(TemplateContent(text=GREETING), {}, "en")

    assert shown.text == "Hi name!"


# ---- what forms offer ---------------------------------------------------------------------------


async def page_of(core: MemoryCore, tx: Tx, lang: str) -> PageContext:
    return PageContext(
        viewer=Viewer("acc_1", "Ann", "ann@shop.example", is_operator=False),
        project=await core.projects.get(tx, PROJECT),
        role="admin",
        member=None,
        plan=None,
        lang=lang,
        languages=("en", "ru"),
        timezone=ZoneInfo("UTC"),
        clock=core.clock,
        _=core.texts.into(lang),
        params={},
        query={},
        form=PostedForm({}),
        root="/dashboard",
        ip="",
        optional_tx=tx,
    )


async def test_a_form_offers_what_the_project_has_in_the_readers_words(
    core: MemoryCore, tx: Tx
) -> None:
    title = {"en": "News", "ru": "Новости"}
    await core.permissions.create(
        tx, PROJECT, CreatePermissionBody.model_validate({"key": "news", "title": title})
    )
    await core.templates.create(tx, PROJECT, body())
    offers = await core.get(MessageChoices).of(await page_of(core, tx, "ru"))

    assert offers["permissions"] == [("news", "Новости")]
    assert offers["templates"] == [("hello", "hello")]
    assert offers["channels"] == ["messenger_a", "messenger_b"]


async def test_a_written_message_is_shown_by_language_and_a_wrong_one_says_why(
    core: MemoryCore, tx: Tx
) -> None:
    previews, page = core.get(MessagePreviews), await page_of(core, tx, "en")

    shown = await previews.tried(page, {"text": {"en": "Hi", "ru": "Привет"}}, ["messenger_b"])
    alike = await previews.tried(page, {"text": "Hi {{ first_name }}"})
    wrong = await previews.tried(page, {"text": "Hi {{ attributes.city }}"})

    assert [
        (langs, [(preview.channels, preview.spans) for preview in each])
        for langs, each in shown.samples
    ] == [
        (("en",), [(("messenger_b",), (Span("Hi"),))]),
        (("ru",), [(("messenger_b",), (Span("Привет"),))]),
    ]
    assert [(langs, each[0].spans) for langs, each in alike.samples] == [
        (("en", "ru"), (Span("Hi Alex"),))
    ]
    assert shown.refused is None
    assert not wrong.samples
    assert wrong.refused is not None
    assert wrong.refused.status == 400


async def test_of_many_tags_the_newest_are_offered_by_name(core: MemoryCore, tx: Tx) -> None:
    await core.tags.ensure(tx, PROJECT, ["old"])
    core.clock.advance(1)
    await core.tags.ensure(tx, PROJECT, [f"tag{number:03}" for number in range(100)])
    offers = await core.get(MessageChoices).of(await page_of(core, tx, "en"))

    assert "old" not in offers["tags"]
    assert offers["tags"][:2] == ["tag000", "tag001"]
