"""Every model of a message's content has each of its fields."""

from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import BaseModel

from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage, ReplyTarget
from msgsvc_core.mailings.models import MailingMessage, MailingMessageAnswer
from msgsvc_core.messages.answers import MessageAnswer
from msgsvc_core.messages.bodies import EditMessageBody, SendBody
from msgsvc_core.messages.content import Content, ContentChanges, MessageContent
from msgsvc_core.messages.templates.models import (
    PreviewMessage,
    StoredTemplate,
    TemplateAnswer,
    TemplateContent,
    UpdateTemplateBody,
)
from tests.unit.parts.rows import a_message

#: A value of each field, in JSON, which is not its default.
CONTENT: dict[str, Any] = {
    "text": "Hi",
    "format": "markdown",
    "media": {"type": "image", "url": "https://a.example/1.png", "filename": "1.png"},
    "buttons": [[{"text": "Yes", "url": None, "data": "yes", "style": "danger"}]],
}
OUTGOING = OutgoingMessage(
    "Hi",
    format="markdown",
    media=Media("image", "https://a.example/1.png", "1.png"),
    buttons=((Button("Yes", data="yes", style="danger"),),),
)

MODELS: tuple[type[BaseModel], ...] = (
    Content,
    ContentChanges,
    EditMessageBody,
    MailingMessage,
    MailingMessageAnswer,
    MessageAnswer,
    PreviewMessage,
    SendBody,
    TemplateAnswer,
    TemplateContent,
    UpdateTemplateBody,
)


def test_every_field_has_a_value_here() -> None:
    assert CONTENT.keys() == MessageContent.model_fields.keys()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_of_content_has_the_fields_of_all(model: type[BaseModel]) -> None:
    assert MessageContent.model_fields.keys() - model.model_fields.keys() == set()


def test_a_channel_gets_what_was_given() -> None:
    assert Content.model_validate(CONTENT).to_message() == OUTGOING
    assert MessageContent.model_fields.keys() <= {each.name for each in fields(OutgoingMessage)}


@pytest.mark.parametrize("name", CONTENT)
def test_an_edit_changes_the_field_and_nothing_else(name: str) -> None:
    before = OutgoingMessage("Before", silent=True)

    after = EditMessageBody.model_validate({name: CONTENT[name]}).changed(before)

    assert after == replace(before, **{name: getattr(OUTGOING, name)})


def test_answers_show_what_was_sent() -> None:
    preview = PreviewMessage.of("en", OUTGOING, [])
    template = TemplateAnswer.of(
        StoredTemplate("prj_1", "k", "tpl_1", "", 1, 1),
        TemplateContent.model_validate(CONTENT),
        [],
        [],
    )
    message = MessageAnswer.of(a_message(content=OUTGOING))

    for answer in (message, preview, template):
        assert answer.model_dump(include=set(CONTENT)) == CONTENT


def test_a_stored_message_is_read_as_it_was() -> None:
    """What is set for each call is not stored."""
    per_call = {"key", "unsubscribe_url"}
    message = replace(
        OUTGOING,
        silent=True,
        key="k",
        unsubscribe_url="https://a.example/u",
        project_id="prj_1",
        thread="7",
        recipient_only=True,
        in_reply_to=ReplyTarget("Order 1207", ("m1", "m2")),
        by_person=True,
    )
    without = [each.name for each in fields(message) if getattr(message, each.name) == each.default]
    assert without == [], "give each field a value that is not its default"

    read = OutgoingMessage.from_payload(message.to_payload())

    stored = {each.name for each in fields(OutgoingMessage)} - per_call
    assert [getattr(read, name) for name in stored] == [getattr(message, name) for name in stored]
    assert (read.key, read.unsubscribe_url) == ("", None)
