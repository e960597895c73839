"""Templates, and what pages offer of them: rules built from fakes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.spans import Span
from msgsvc_core.dashboard.access import Viewer
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.dashboard.previewing import MessagePreviews
from msgsvc_core.dashboard.writing import MessageChoices
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    PreviewBody,
    StoredTemplate,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTags, FakeTx
from tests.unit.parts.rows import NOW_MS, row_of

GREETING = {"en": "Hi {{ name }}!", "ru": "Привет, {{ name }}!"}


def templates_of(core: FakeContext, *, most: int = 2) -> Templates:
    return Templates(
        clock=core.clock,
        db=core.db,
        channels=core.channels,
        limits=MessageLimits.of(LimitSettings(text_length=50)),
        languages=("en", "ru"),
        default_lang="en",
        most=most,
    )


def kept(text: str | Mapping[str, str] = GREETING, **fields: Any) -> dict[str, Any]:
    """The row of the template `hello`."""
    content = TemplateContent.model_validate({"text": text, **fields}).to_column()
    return row_of(StoredTemplate(PROJECT, "hello", "tpl_1", content, NOW_MS, NOW_MS))


def body(text: str | Mapping[str, str] = GREETING) -> CreateTemplateBody:
    return CreateTemplateBody.model_validate({"key": "hello", "text": text})


@pytest.mark.parametrize(
    ("known", "inserted", "why"), [(1, 0, "'hello' already"), (2, 1, "at most 2 templates")]
)
async def test_a_key_is_used_once_and_a_project_has_so_many_templates(
    known: int, inserted: int, why: str
) -> None:
    tx = FakeTx(answers=[[{"n": known}], inserted])

    with pytest.raises(Conflict, match=why):
        await templates_of(plugin_context()).create(tx, PROJECT, body())


async def test_what_could_be_sent_in_no_language_is_not_kept() -> None:
    templates, tx = templates_of(plugin_context()), FakeTx()
    with pytest.raises(ValidationFailed, match="at most 50"):
        await templates.create(tx, PROJECT, body({"en": "Hi", "ru": "х" * 51}))
    with pytest.raises(ValidationFailed):
        await templates.create(tx, PROJECT, body("Hi {{ name"))

    assert tx.statements == []


async def test_a_change_keeps_what_it_does_not_name() -> None:
    tx = FakeTx(answers=[[kept(format="markdown")], 1])
    changed = await templates_of(plugin_context()).update(
        tx, PROJECT, "hello", UpdateTemplateBody(text="Bye")
    )

    shown = TemplateContent.model_validate_json(changed.content)
    assert (shown.text, shown.format) == ("Bye", "markdown")


async def test_a_template_is_rendered_in_the_readers_language_or_the_default_one() -> None:
    templates = templates_of(plugin_context())
    texts = [
        (
            await templates.render(PROJECT, "hello", {"name": 7}, lang, FakeTx(answers=[[kept()]]))
        ).text
        for lang in ("ru", "fr")
    ]

    assert texts == ["Привет, 7!", "Hi 7!"]


async def test_a_variable_that_is_missing_or_makes_it_too_long_is_refused() -> None:
    templates = templates_of(plugin_context())

    with pytest.raises(ValidationFailed, match=r"variables\.name: is required"):
        await templates.render(PROJECT, "hello", {}, "en", FakeTx(answers=[[kept()]]))
    with pytest.raises(ValidationFailed, match="50"):
        await templates.render(
            PROJECT, "hello", {"name": "x" * 60}, "en", FakeTx(answers=[[kept()]])
        )
    with pytest.raises(NotFound):
        await templates.render(PROJECT, "bye", {}, "en", FakeTx(answers=[[]]))


async def test_a_preview_tells_which_channels_refuse_it_and_what_nobody_uses() -> None:
    core = plugin_context()
    core.channels.recording("messenger_b").capabilities = Capabilities(max_text_length=5)
    core.db.answers.append([kept()])
    values = PreviewBody(variables={"name": "Ann", "nmae": "x"})
    shown = await templates_of(core).preview(PROJECT, "hello", values)

    assert [message.text for message in shown.data] == ["Hi Ann!", "Привет, Ann!"]
    assert {each.channel for message in shown.data for each in message.problems} == {"messenger_b"}
    assert shown.unused == ["nmae"]


def test_a_variable_without_a_value_is_tried_out_by_its_name() -> None:
    shown = templates_of(plugin_context()).try_out(TemplateContent(text=GREETING), {}, "en")

    assert shown.text == "Hi name!"


# ---- what forms offer ---------------------------------------------------------------------------


async def page_of(core: FakeContext, lang: str) -> PageContext:
    return PageContext(
        viewer=Viewer("acc_1", "Ann", "ann@shop.example", is_operator=False),
        project=await core.projects.get(FakeTx(), PROJECT),
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
        optional_tx=FakeTx(),
    )


def choices_of(core: FakeContext) -> MessageChoices:
    return MessageChoices(
        routes=core.routes,
        tags=core.tags,
        templates=core.templates,
        permissions=core.permissions,
        channels=core.channels,
        max_templates=10,
        default_lang="en",
    )


async def test_a_form_offers_what_the_project_has_in_the_readers_words() -> None:
    core, tx = plugin_context(), FakeTx()
    title = {"en": "News", "ru": "Новости"}
    await core.permissions.create(
        tx, PROJECT, CreatePermissionBody.model_validate({"key": "news", "title": title})
    )
    await core.templates.create(tx, PROJECT, body())
    offers = await choices_of(core).of(await page_of(core, "ru"))

    assert offers["permissions"] == [("news", "Новости")]
    assert offers["templates"] == [("hello", "hello")]
    assert offers["channels"] == ["messenger_a", "messenger_b"]


async def test_a_written_message_is_shown_by_language_and_a_wrong_one_says_why() -> None:
    core = plugin_context()
    previews = MessagePreviews(mailings=core.mailings, messages=core.messages)
    page = await page_of(core, "en")

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


async def test_of_many_tags_the_newest_are_offered_by_name() -> None:
    core, tx = plugin_context(), FakeTx()
    tags = FakeTags(clock=core.clock, max_tags=200)
    await tags.ensure(tx, PROJECT, ["old"])
    core.clock.advance(1)
    await tags.ensure(tx, PROJECT, [f"tag{number:03}" for number in range(100)])
    offers = await choices_of(replace(core, tags=tags)).of(await page_of(core, "en"))

    assert "old" not in offers["tags"]
    assert offers["tags"][:2] == ["tag000", "tag001"]
