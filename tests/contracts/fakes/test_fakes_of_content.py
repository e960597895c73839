"""Messages, templates, mailings and files: what the real parts do, the fakes do."""

import io
from typing import Any

import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.mailings.models import (
    Audience,
    AudienceBreakdown,
    MailingMessage,
    NewMailing,
)
from msgsvc_core.messages.bodies import EditBody, MessageQuery, SendBody
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    PreviewBody,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import FakeClock


@pytest.fixture
async def anna(core: PluginContext, tx: Tx, project_id: str) -> Subscriber:
    """A subscriber of the project, who carries the tag `vip`."""
    await core.tags.ensure(tx, project_id, ["vip", "new"])
    return await core.subscribers.ensure(
        tx,
        project_id,
        "messenger_a",
        ChannelUser("77", "Anna", None, "en"),
        "c1",
        source="api",
        tags=["vip"],
        external_id="e1",
    )


async def test_a_message_is_queued_found_and_listed(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber, clock: FakeClock
) -> None:
    body = SendBody(external_id="e1", text="Hello", metadata={"n": 1}, expires_in=60)
    first = await core.messages.queue(tx, project_id, body)
    clock.advance(1)
    second = await core.messages.queue(
        tx, project_id, SendBody(subscriber_id=anna.subscriber_id, text="Again")
    )
    page = await core.messages.page(tx, project_id, MessageQuery(channel="messenger_a"))

    assert (first.status, first.bot, first.metadata) == ("queued", "messenger_a", {"n": 1})
    assert first.expires_at_ms == first.created_at_ms + 60_000
    assert [each.message_id for each in page] == [second.message_id, first.message_id]
    assert await core.messages.find(tx, project_id, first.message_id) == first
    found = await core.messages.get_many(tx, project_id, [first.message_id, "msg_unknown"])
    assert found == {first.message_id: first}
    assert await core.messages.find_by_ref(tx, "messenger_a", "c1", "77", "m1") is None
    with pytest.raises(NotFound):
        await core.messages.find(tx, "prj_other", first.message_id)
    moments, _ = await core.messages.history(tx, project_id, anna.subscriber_id, PageQuery())
    assert [each.message.content.text for each in moments if each.message] == ["Again", "Hello"]


async def test_a_message_in_a_batch_of_writes_is_there_with_it(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber
) -> None:
    unit = WriteBatch()
    body = SendBody(subscriber_id=anna.subscriber_id, text="Hello")
    message = await core.messages.add(unit, project_id, body, tx)
    await tx.write(unit)

    assert (await core.messages.find(tx, project_id, message.message_id)).content.text == "Hello"


async def test_what_can_not_be_sent_is_refused(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber
) -> None:
    for fields in (
        {"text": "x" * 5000},
        {"text": "Hello", "permission": "unknown"},
        {"text": "Hello", "metadata": {"text": "x" * 5000}},
    ):
        body = SendBody(subscriber_id=anna.subscriber_id, **fields)
        with pytest.raises(ValidationFailed):
            await core.messages.queue(tx, project_id, body)
    with pytest.raises(NotFound):
        await core.messages.queue(tx, project_id, SendBody(external_id="e1", template="unknown"))
    with pytest.raises(ValidationFailed):
        core.messages.check_size(OutgoingMessage("x" * 5000))
    assert await core.messages.page(tx, project_id, MessageQuery()) == []


async def test_a_queued_message_is_edited_and_deleted_at_once(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber
) -> None:
    body = SendBody(subscriber_id=anna.subscriber_id, text="Hello")
    message_id = (await core.messages.queue(tx, project_id, body)).message_id
    changes = core.messages.changes
    edited = await changes.edit(tx, project_id, message_id, EditBody(text="Goodbye"))
    same = await changes.edit(tx, project_id, message_id, EditBody(text="Goodbye"))
    deleted = await changes.delete(tx, project_id, message_id)
    again = await changes.delete(tx, project_id, message_id)

    assert (edited.content.text, edited.status) == ("Goodbye", "queued")
    assert same == edited
    assert (deleted.status, deleted.error) == ("skipped", "deleted")
    assert deleted.deleted_at_ms is not None
    assert again == deleted
    with pytest.raises(Conflict):
        await changes.edit(tx, project_id, message_id, EditBody(text="Hello"))
    assert not await changes.skip(tx, deleted)
    assert await changes.blank(tx, project_id, [message_id, "msg_unknown"]) == 0
    assert (await core.messages.find(tx, project_id, message_id)).content.text == ""
    assert await changes.of_mailing(tx, project_id, "job_1", "", 10) == []


async def test_templates_are_kept_changed_and_rendered(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber, clock: FakeClock
) -> None:
    templates = core.templates
    body = CreateTemplateBody(key="hi", text={"en": "Hi {{ name }}", "ru": "Привет, {{ name }}"})
    await templates.create(tx, project_id, body)
    clock.advance(1)
    await templates.create(tx, project_id, CreateTemplateBody(key="bye", text="Bye"))
    with pytest.raises(Conflict):
        await templates.create(tx, project_id, body)

    assert (await templates.render(project_id, "hi", {"name": "Anna"}, "ru", tx)).text == (
        "Привет, Anna"
    )
    with pytest.raises(ValidationFailed, match="variables"):
        await templates.render(project_id, "hi", {}, "ru", tx)
    sent = await core.messages.queue(
        tx,
        project_id,
        SendBody(subscriber_id=anna.subscriber_id, template="hi", variables={"name": "Anna"}),
    )
    assert sent.content.text == "Hi Anna"
    changed = await templates.update(tx, project_id, "hi", UpdateTemplateBody(text="Hello"))
    assert changed.updated_at_ms == changed.created_at_ms + 1000
    assert (await templates.content_of(tx, project_id, "hi")).text == "Hello"
    page = await templates.page(tx, project_id, None, 10)
    assert [each.key for each in page] == ["bye", "hi"]
    assert [each.key for each in await templates.page(tx, project_id, page[0].template_id, 10)] == [
        "hi"
    ]
    assert templates.answers([changed])[0].key == "hi"
    content = TemplateContent(text="{{ a }} {{ b }}")
    assert templates.variables_of(content) == ["a", "b"]
    assert templates.try_out(content, {"a": "1"}, "en").text == "1 b"
    await templates.delete(tx, project_id, "hi")
    for missing in (
        templates.find(tx, project_id, "hi"),
        templates.update(tx, project_id, "hi", UpdateTemplateBody(text="x")),
        templates.delete(tx, project_id, "hi"),
        templates.render(project_id, "hi", {}, "en", tx),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_a_preview_shows_each_language(core: PluginContext) -> None:
    project = await core.projects.create("Shop")
    async with core.db.transaction() as tx:
        body = CreateTemplateBody(key="hi", text={"en": "Hi {{ name }}", "ru": "Эй {{ name }}"})
        await core.templates.create(tx, project.project_id, body)
    preview = await core.templates.preview(
        project.project_id, "hi", PreviewBody(variables={"name": "Anna", "other": "x"})
    )

    assert {each.lang: each.text for each in preview.data} == {"en": "Hi Anna", "ru": "Эй Anna"}
    assert preview.unused == ["other"]


def mailing(**fields: Any) -> NewMailing:
    audience: Audience = fields.pop("audience", Audience(all=True))
    return NewMailing("broadcasts", MailingMessage(text="Sale"), audience, **fields)


async def test_a_mailing_is_started_paused_and_cancelled(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber, clock: FakeClock
) -> None:
    started = await core.mailings.start(tx, project_id, mailing(job_id="job_1"))
    paused = await core.mailings.pause(tx, project_id, "job_1")
    resumed = await core.mailings.resume(tx, project_id, "job_1")
    with pytest.raises(Conflict):
        await core.mailings.resume(tx, project_id, "job_1")
    cancelled = await core.mailings.cancel(tx, project_id, "job_1")
    with pytest.raises(Conflict):
        await core.mailings.cancel(tx, project_id, "job_1")

    assert (started.status, started.total, started.charged) == ("scheduled", 1, 1)
    assert [paused.status, resumed.status, cancelled.status] == ["paused", "scheduled", "cancelled"]
    assert (cancelled.finished_at_ms, cancelled.skipped) == (clock.now_ms(), 1)
    assert await core.mailings.finish(tx, project_id, "job_1", "cancelled") is None
    assert await core.mailings.find(tx, project_id, "job_1") == cancelled
    assert await core.mailings.find_any(tx, "job_1") == cancelled
    assert await core.mailings.list_any(tx, ended=False, limit=10) == []
    assert await core.mailings.list_any(tx, ended=True, limit=10) == [cancelled]
    page = core.mailings.page
    assert await page(tx, project_id, "broadcasts", None, None, 10) == [cancelled]
    assert await page(tx, project_id, "schedules", None, None, 10) == []
    assert await page(tx, project_id, "broadcasts", "paused", None, 10) == []
    assert await core.mailings.recipients(tx, cancelled, None, None, 10, "bot_banned") == []
    assert await core.mailings.recipients(tx, cancelled, None, None, 10) == []
    assert await core.mailings.reasons(tx, cancelled) == []
    assert core.mailings.recipients_until_ms(cancelled) is not None
    progress = await core.mailings.progress(tx, project_id, ["job_1", None, "job_unknown"])
    assert {job_id: each.status for job_id, each in progress.items()} == {"job_1": "cancelled"}
    assert not await core.mailings.was_resent(tx, cancelled)
    with pytest.raises(Conflict, match="unknown outcome"):
        await core.mailings.resend_unknown(tx, project_id, "job_1")
    for missing in (
        core.mailings.find(tx, "prj_other", "job_1"),
        core.mailings.find_any(tx, "job_unknown"),
        core.mailings.pause(tx, project_id, "job_unknown"),
        core.mailings.resend_unknown(tx, project_id, "job_unknown"),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_an_audience_is_those_who_meet_every_filter(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber
) -> None:
    await core.permissions.create(tx, project_id, CreatePermissionBody(key="news", title="News"))
    boris = await core.subscribers.ensure(
        tx, project_id, "messenger_b", ChannelUser("78", "Boris", None, "ru"), "c2", source="api"
    )

    async def reach(**filters: object) -> int:
        asked = Audience.model_validate(filters)
        return (await core.mailings.break_down(tx, project_id, asked)).reached

    assert await reach(all=True) == 2
    assert await reach(tags_any=["vip", "new"]) == 1
    assert await reach(tags_all=["vip", "new"]) == 0
    assert await reach(tags_none=["vip"]) == 1
    assert await reach(langs=["ru"]) == 1
    assert await reach(channels=["messenger_a"], langs=["ru"]) == 0
    assert await reach(permission="news") == 0
    for unknown in ({"tags_any": ["x"]}, {"permission": "x"}, {"channels": ["pigeon"]}):
        with pytest.raises(ValidationFailed):
            await reach(**unknown)
    on_a = Audience(channels=["messenger_a"])
    found = await core.mailings.break_down(tx, project_id, on_a, "news")
    assert found == AudienceBreakdown(0, {"channel": 1, "permission": 1})
    await core.subscribers.unsubscribe(tx, project_id, boris.subscriber_id, reason="api")
    ids = [anna.subscriber_id, boris.subscriber_id, "sub_unknown"]
    found = await core.mailings.break_down(tx, project_id, on_a)
    assert found == AudienceBreakdown(1, {"unsubscribed": 1})
    counted = await core.mailings.count(
        tx, project_id, mailing(audience=Audience(subscriber_ids=ids))
    )
    assert (counted.counts, counted.unreachable) == ({"messenger_a": 1}, 2)
    assert await core.mailings.cost(tx, project_id, 5) == 0


async def test_what_a_mailing_can_not_say_is_refused(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber, clock: FakeClock
) -> None:
    everybody = Audience(all=True)
    for message in (
        MailingMessage(text="{{ unknown }}"),
        MailingMessage(text="x" * 5000),
        MailingMessage(text="Hi", permission="unknown"),
    ):
        with pytest.raises(ValidationFailed):
            await core.mailings.start(tx, project_id, NewMailing("broadcasts", message, everybody))
    with pytest.raises(ValidationFailed, match="past"):
        await core.mailings.start(tx, project_id, mailing(send_at_ms=clock.now_ms() - 1))
    samples = await core.mailings.samples(
        tx, project_id, MailingMessage(text="Hi {{ first_name }}")
    )
    assert [each.message.text for each in samples] == ["Hi Alex"]
    shown = await core.mailings.message_for(
        tx,
        project_id,
        MailingMessage(text="Hi {{ first_name }}"),
        anna,
        core.subscribers.preferences,
    )
    assert shown.text == "Hi Anna"


async def test_the_values_of_a_mailing_are_forgotten(
    core: PluginContext, tx: Tx, project_id: str, anna: Subscriber
) -> None:
    message = MailingMessage(text="Hi {{ name }}", variables={"name": "secret"})
    new = NewMailing("broadcasts", message, Audience(all=True), job_id="job_1")
    await core.mailings.start(tx, project_id, new)
    await core.mailings.forget_variables(tx, project_id, "job_1")
    await core.mailings.forget_variables(tx, project_id, "job_unknown")
    after = await core.mailings.find(tx, project_id, "job_1")

    assert after.status == "cancelled"
    assert "secret" not in after.content


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


async def test_a_file_is_stored_as_what_it_is(core: PluginContext, tx: Tx, project_id: str) -> None:
    file = await core.files.add(tx, project_id, filename="cat", content=io.BytesIO(PNG))
    assert (file.type, file.filename, file.size) == ("image", "cat.png", len(PNG))
    assert await core.files.get(tx, project_id, file.file_id) == file
    found = await core.files.get_many(tx, project_id, ["fil_unknown", file.file_id, file.file_id])
    assert found == [file]
    await core.files.retain(tx, project_id, [file.file_id])
    assert core.files.is_own_address(core.files.media(file).url)
    with pytest.raises(ValidationFailed):
        await core.files.add(tx, project_id, filename="x", content=io.BytesIO(b""))
    await core.files.remove(tx, project_id, [file.file_id])
    with pytest.raises(NotFound):
        await core.files.get(tx, project_id, file.file_id)


async def test_a_file_is_read_again_at_its_address(core: PluginContext) -> None:
    project = await core.projects.create("Shop")
    async with core.db.transaction() as tx:
        file = await core.files.add(
            tx, project.project_id, filename="cat.png", content=io.BytesIO(PNG)
        )
    url, _ = core.files.address(file)

    assert await core.files.at_address(url) == file
    assert await core.files.at_address("http://elsewhere.example/files/x/y") is None
    assert b"".join([chunk async for chunk in core.files.content(file)]) == PNG
    assert await core.files.head(file) == PNG
    async with core.media().fetch(core.files.media(file)) as fetched:
        assert (fetched.file.read(), fetched.mime_type) == (PNG, "image/png")
