"""The pages with a language that the setting `languages` lists beside those of the dashboard itself."""

import re
from typing import Any

import pytest

from msgsvc_broadcasts import plugin as broadcasts_plugin
from msgsvc_core.channels import ChannelUser
from msgsvc_core.messages.templates import Templates
from msgsvc_core.service import Service
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_dashboard import plugin as dashboard_plugin
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_forms import plugin as forms_plugin
from msgsvc_forms.models import CreateFormBody
from msgsvc_forms.service import Forms
from msgsvc_helpdesk import plugin as helpdesk_plugin
from msgsvc_helpdesk.canned_answers.service import CannedAnswers

PLUGINS = [
    ("broadcasts", broadcasts_plugin),
    ("dashboard", dashboard_plugin),
    ("forms", forms_plugin),
    ("helpdesk", helpdesk_plugin),
]

HELLO = {"en": "Hello", "de": "Hallo", "pt-BR": "Olá"}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, languages=("en", "ru", "de", "pt-BR"))


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


async def person(service: Service, project_id: str, name: str, lang: str) -> str:
    async with service.db.transaction() as tx:
        made = await service.subscribers.ensure(
            tx,
            project_id,
            "messenger_a",
            ChannelUser(f"user-{name}", name, None, lang),
            f"chat-{name}",
            source="api",
        )
    return made.subscriber_id


def typed(name: str, texts: dict[str, str] = HELLO) -> dict[str, str]:
    return {f"{name}-{lang}": text for lang, text in texts.items()}


def values_of(html: str) -> dict[str, str]:
    """What the boxes of a page hold."""
    found = dict(re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n?([^<]*)</textarea>', html))
    for tag in re.findall(r"<input [^>]*>", html):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and value:
            found[name[1]] = value[1]
    return found


@pytest.mark.both_databases
async def test_a_person_is_shown_kept_and_changed_in_a_listed_language(
    service: Service, owner: Visitor
) -> None:
    jonas = await person(service, owner.project_id, "Jonas", "de-DE")
    await person(service, owner.project_id, "Ann", "en")
    at = f"/subscribers/{jonas}"

    found = (await owner.get("/subscribers", lang="de")).text
    shown = (await owner.get(at)).text
    await owner.post(f"{at}/edit", {"lang": "de", "external_id": "7"})
    async with service.db.read() as tx:
        kept = await service.subscribers.get(tx, owner.project_id, jonas)
    changed = await owner.post(f"{at}/edit", {"lang": "pt-BR"})
    refused = await owner.post(f"{at}/edit", {"lang": "fr_FR"})

    assert "Jonas" in found
    assert "Ann" not in found
    assert "de-DE" in shown
    assert re.search(r'<option value="de"[^>]*selected[^>]*>Deutsch', shown)
    assert (kept.lang, kept.external_id) == ("de", "7")
    assert (changed.status_code, refused.status_code) == (303, 400)


async def test_a_language_that_is_listed_no_more_stays_when_a_person_is_changed(
    service: Service, owner: Visitor, make_service: ServiceFactory
) -> None:
    jonas = await person(service, owner.project_id, "Jonas", "de")
    await service.stop()
    again = await make_service(extra_plugins=PLUGINS, database_url=service.settings.database_url)
    later = await visitor(again, owner.project_id, "admin")

    saved = await later.post(f"/subscribers/{jonas}/edit", {"lang": "de", "external_id": "7"})
    async with again.db.read() as tx:
        kept = await again.subscribers.get(tx, owner.project_id, jonas)

    assert saved.status_code == 303
    assert (kept.lang, kept.external_id) == ("de", "7")


@pytest.mark.both_databases
async def test_templates_permissions_and_settings_keep_each_language(
    service: Service, owner: Visitor
) -> None:
    in_languages = {
        "text" if lang == "en" else f"text_{lang}": text for lang, text in HELLO.items()
    }
    labels = {f"button_{name}_1": text for name, text in in_languages.items()}
    button = {"button_url_1": "https://a.example"}
    await owner.post(
        "/new-template", {"key": "hi", "format": "plain", **in_languages, **labels, **button}
    )
    await owner.post("/permissions", {"key": "news", **typed("title"), **typed("description")})
    pages = {
        at: values_of((await owner.get(at)).text)
        for at in ("/templates/hi", "/permissions/news", "/settings")
    }
    welcome = {f"welcome_{lang}": text for lang, text in HELLO.items()}

    # Saved as they are shown, nothing is lost.
    again = {name: text for name, text in pages["/templates/hi"].items() if name != "_csrf"}
    await owner.post("/templates/hi", {**again, "format": "plain"})
    await owner.post("/permissions/news", {**typed("title"), **typed("description")})
    await owner.post("/settings", {"name": "Shop", **welcome})
    async with service.db.read() as tx:
        content = await service.get(Templates).content_of(tx, owner.project_id, "hi")
        permission = await service.get(Permissions).get(tx, owner.project_id, "news")
        texts = await service.projects.texts(tx, owner.project_id)

    assert content.text == HELLO
    assert content.buttons[0][0].text == HELLO
    assert permission.title == permission.description == HELLO
    assert texts.welcome == HELLO
    assert pages["/permissions/news"]["title-pt-BR"] == "Olá"
    assert "Deutsch" in (await owner.get("/templates/hi")).text


async def test_a_broadcast_is_written_for_who_reads_a_listed_language(
    service: Service, owner: Visitor, channel: RecordingChannel
) -> None:
    for name, lang in {"Jonas": "de", "Rui": "pt-BR", "Olga": "ru"}.items():
        await person(service, owner.project_id, name, lang)
    written: dict[str, Any] = {
        "text": "Hello",
        "text_de": "Hallo",
        "text_pt-BR": "Olá",
        "button_text_1": "Go",
        "button_text_de_1": "Los",
        "button_url_1": "https://a.example",
        "to": "some",
        "langs": ["de", "pt-BR"],
        "format": "plain",
    }

    compose = (await owner.get("/broadcasts/new")).text
    review = (await owner.post("/broadcasts/review", written)).text
    form = review.partition("Send to ")[0].rpartition("<form")[2]
    names = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    sent = {name: [text for each, text in names if each == name] for name, _ in names}
    sent.pop("_csrf")
    started = await owner.post("/broadcasts", sent)
    await settled(service)

    assert 'name="text_pt-BR"' in compose
    assert 'value="de"' in compose
    assert "Hallo" in review
    assert started.status_code == 303, started.text
    assert sorted(channel.texts) == ["Hallo", "Olá"]
    buttons = {each.message.text: each.message.buttons[0][0].text for each in channel.sent}
    assert buttons == {"Hallo": "Los", "Olá": "Go"}


async def test_a_canned_answer_keeps_each_language(service: Service, owner: Visitor) -> None:
    texts = {f"text_{lang}": text for lang, text in HELLO.items()}
    await owner.post("/new-canned-answer", {"key": "hi", "title": "Hi", **texts})

    shown = values_of((await owner.get("/canned-answers/hi")).text)
    await owner.post("/canned-answers/hi", {"title": "Hi!", **texts})
    answers = service.get(CannedAnswers)
    async with service.db.read() as tx:
        kept = answers.shown(await answers.get(tx, owner.project_id, "hi"))

    assert shown["text_de"] == "Hallo"
    assert (kept.title, kept.text) == ("Hi!", HELLO)


async def test_the_builder_loses_no_text_that_it_has_no_box_for(
    service: Service, owner: Visitor
) -> None:
    field = {"key": "name", "type": "text", "label": "Name"}
    body = CreateFormBody.model_validate({"slug": "visit", "title": HELLO, "fields": [field]})
    async with service.db.transaction() as tx:
        form = await service.get(Forms).create(tx, owner.project_id, body)
    at = f"/forms/{form.form_id}/edit"

    page = values_of((await owner.get(at)).text)
    refused = await owner.post(at, {name: text for name, text in page.items() if name != "_csrf"})
    async with service.db.read() as tx:
        kept = await service.get(Forms).get(tx, owner.project_id, form.form_id)

    assert refused.status_code == 409
    assert "de, pt-BR" in refused.text
    assert kept.definition.title == HELLO
