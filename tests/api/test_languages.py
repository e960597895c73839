"""Languages beyond those that the service speaks: listed in the settings, kept, and written in."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_broadcasts import plugin as broadcasts_plugin
from msgsvc_core.channels import Capabilities, ChannelUser
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.service import Service
from msgsvc_core.subscribers.languages import EVERY_S, LanguageMapping
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_drip import plugin as drip_plugin
from msgsvc_forms import plugin as forms_plugin
from msgsvc_forms.models import NewSubmission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from msgsvc_otp import plugin as otp_plugin
from msgsvc_scheduling import plugin as scheduling_plugin
from tests.api.conftest import CheckError
from tests.api.conversation.people import Talker
from tests.api.subscribing import Subscribe, subscribing

LISTED = ("en", "ru", "de", "pt-BR")

PLUGINS = [
    ("broadcasts", broadcasts_plugin),
    ("drip", drip_plugin),
    ("forms", forms_plugin),
    ("otp", otp_plugin),
    ("scheduling", scheduling_plugin),
]

DAY_MS = 24 * 3600 * 1000

#: What a project says in three languages.
SALE = {"en": "Sale", "ru": "Скидки", "de": "Rabatt"}

FORM = {"slug": "visit", "title": SALE, "fields": [{"key": "n", "type": "text", "label": SALE}]}

DRIP = {
    "name": "Welcome",
    "trigger": {"on": "manual"},
    "steps": [{"delay": {"days": 1}, "message": {"text": SALE}, "when": {"lang": "de"}}],
}

#: Requests that name a language, at each place that takes one.
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/templates", {"key": "sale", "text": SALE}),
    ("POST", "/v1/permissions", {"key": "sale", "title": SALE}),
    ("PATCH", "/v1/project", {"welcome": SALE}),
    ("POST", "/v1/forms", FORM),
    ("POST", "/v1/broadcast", {"text": SALE, "audience": {"langs": ["de"]}}),
    ("POST", "/v1/drips", DRIP),
    ("GET", "/v1/subscribers?lang=de", {}),
]

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, languages=LISTED)


async def shown(client: httpx2.AsyncClient, subscriber_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/subscribers/{subscriber_id}")
    return dict(answer.json())


async def call(client: httpx2.AsyncClient, method: str, path: str, body: Any) -> httpx2.Response:
    return await client.request(method, path, json=body or None)


@pytest.mark.shared_service
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=lambda part: str(part)[:20])
async def test_a_language_is_refused_until_it_is_listed(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    check_error: CheckError,
    method: str,
    path: str,
    body: dict[str, Any],
) -> None:
    letter = await make_service(extra_plugins=PLUGINS)
    listed = await make_service(extra_plugins=PLUGINS, languages=LISTED)

    refused = await call((await make_tenant(letter)).client, method, path, body)
    taken = await call((await make_tenant(listed)).client, method, path, body)

    error = check_error(refused, 400, "validation_failed")["error"]
    assert "setting languages" in error
    assert taken.is_success, taken.text


@pytest.mark.both_databases
async def test_a_person_is_kept_in_a_language_that_is_listed(
    client: httpx2.AsyncClient, subscribe: Subscribe, ann: str, check_error: CheckError
) -> None:
    reported = {"Jonas": "de-AT", "Rui": "pt_br", "Zoé": "fr", "Olga": "ru-RU", "Ana": "pt"}
    people = [
        await shown(client, await subscribe(name, lang=lang)) for name, lang in reported.items()
    ]
    found = {one["first_name"]: (one["locale"], one["lang"]) for one in people}

    changed = await client.patch(f"/v1/subscribers/{ann}", json={"lang": "pt-ao"})
    refused = await client.patch(f"/v1/subscribers/{ann}", json={"lang": "portuguese brazil"})
    listed = await client.get("/v1/subscribers?lang=pt-BR")
    exported = await client.get("/v1/subscribers/export?lang=de")

    assert found == {
        "Jonas": ("de-AT", "de"),
        "Rui": ("pt-BR", "pt-BR"),
        "Zoé": ("fr", "en"),
        "Olga": ("ru-RU", "ru"),
        "Ana": ("pt", "pt-BR"),
    }
    assert (changed.json()["locale"], changed.json()["lang"]) == ("pt-AO", "pt-BR")
    assert "must be a language tag" in check_error(refused, 400, "validation_failed")["error"]
    assert {one["first_name"] for one in listed.json()["data"]} == {"Ann", "Rui", "Ana"}
    assert "Jonas,jonas,de,de-AT," in exported.text
    assert "Olga" not in exported.text


@pytest.mark.both_databases
async def test_people_get_a_language_that_the_operator_adds_if_their_tag_prefers_it(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock
) -> None:
    before = await make_service()
    tenant = await make_tenant(before)
    subscribe = subscribing(before, tenant)
    for name, lang in {"Jonas": "de-AT", "Rui": "pt", "Zoé": "fr", "Olga": "ru"}.items():
        await subscribe(name, lang=lang)
    heidi = Talker(before, ChannelUser("h", "Heidi", None, "de"))
    await heidi.subscribe(tenant)
    await heidi.write("/lang en")
    greta = await subscribe("Greta", lang="de")
    await tenant.client.patch(f"/v1/subscribers/{greta}", json={"lang": "ru"})
    old = await subscribe("Old", lang="de")
    async with before.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_subscribers SET locale = NULL WHERE subscriber_id = :id", {"id": old}
        )

    await LanguageMapping(languages=LISTED).map(JobInTest(before.db), [])

    found = (await tenant.client.get("/v1/subscribers")).json()["data"]
    assert {one["first_name"]: (one["locale"], one["lang"]) for one in found} == {
        "Jonas": ("de-AT", "de"),
        "Rui": ("pt", "pt-BR"),
        "Zoé": ("fr", "en"),
        "Olga": ("ru", "ru"),
        "Heidi": ("en", "en"),
        "Greta": ("ru", "ru"),
        "Old": (None, "en"),
    }
    # A language that is taken away stays with its people.
    await LanguageMapping(languages=("en", "ru")).map(JobInTest(before.db), [])
    found = (await tenant.client.get("/v1/subscribers")).json()["data"]
    assert {"de", "pt-BR"} < {one["lang"] for one in found}


async def test_the_job_of_a_service_maps_languages_after_a_restart(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock
) -> None:
    before = await make_service()
    tenant = await make_tenant(before)
    await subscribing(before, tenant)("Jonas", lang="de-AT")
    await before.stop()

    after = await make_service(languages=LISTED, database_url=before.settings.database_url)
    clock.advance(EVERY_S + 1)
    await settled(after)

    async with after.db.read() as tx:
        assert await tx.fetch_val("SELECT lang FROM core_subscribers") == "de"


async def test_everybody_is_sent_the_text_of_their_language(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    await client.post("/v1/templates", json={"key": "sale", "text": SALE})
    got = {}
    for name, lang in {"Jonas": "de", "Rui": "pt-BR", "Olga": "ru"}.items():
        person = await subscribe(name, lang=lang)
        await client.post("/v1/send", json={"subscriber_id": person, "template": "sale"})
        await settled(service)
        got[name] = channel.texts[-1]

    assert got == {"Jonas": "Rabatt", "Rui": "Sale", "Olga": "Скидки"}


async def test_a_template_is_previewed_in_each_language(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/templates", json={"key": "sale", "text": SALE})

    answer = await client.post("/v1/templates/sale/preview", json={})

    texts = {one["lang"]: one["text"] for one in answer.json()["data"]}
    assert texts == {**SALE, "pt-BR": "Sale"}


async def test_a_broadcast_reaches_who_reads_a_language_in_it(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    for name, lang in {"Jonas": "de", "Olga": "ru"}.items():
        await subscribe(name, lang=lang)
    before = len(channel.sent)
    body = {"text": SALE, "audience": {"langs": ["de", "pt-BR"]}}

    job = (await client.post("/v1/broadcast", json=body)).json()
    await settled(service)

    assert job["total"] == 1
    assert channel.texts[before:] == ["Rabatt"]


async def test_what_is_scheduled_is_written_in_each_language(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await subscribe("Jonas", lang="de")
    before = len(channel.sent)
    body = {
        "send_at": to_rfc3339(clock.now_ms() + DAY_MS),
        "audience": {"langs": ["de"]},
        "text": SALE,
    }
    made = (await client.post("/v1/scheduled", json=body)).json()

    changed = await client.patch(
        f"/v1/scheduled/{made['scheduled_id']}", json={"text": {**SALE, "de": "Alles halb"}}
    )
    clock.advance(DAY_MS / 1000 + 60)
    await settled(service)

    assert changed.status_code == 200, changed.text
    assert channel.texts[before:] == ["Alles halb"]


async def test_a_one_time_code_comes_in_the_language_asked_for(
    service: Service, client: httpx2.AsyncClient, ann: str, channel: RecordingChannel
) -> None:
    texts = {"en": "Code {{ code }}", "de": "Kennzahl {{ code }}"}
    await client.post("/v1/templates", json={"key": "otp", "text": texts})

    answer = await client.post("/v1/otp/send", json={"subscriber_id": ann, "lang": "de"})
    await settled(service)

    assert answer.status_code == 202, answer.text
    assert channel.texts[-1].startswith("Kennzahl ")


async def test_a_code_to_a_new_address_keeps_the_tag_of_the_request(
    client: httpx2.AsyncClient, channel: RecordingChannel, check_error: CheckError
) -> None:
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    body = {"channel": "messenger_a", "address": "ann@example.com"}

    sent = await client.post("/v1/otp/send", json={**body, "lang": "de-at"})
    refused = await client.post("/v1/otp/send", json={**body, "lang": "de_AT"})

    assert sent.status_code == 202, sent.text
    assert "must be a language tag" in check_error(refused, 400, "validation_failed")["error"]
    (ann,) = (await client.get("/v1/subscribers")).json()["data"]
    assert (ann["locale"], ann["lang"]) == ("de-AT", "de")


async def test_a_form_is_shown_in_a_listed_language(
    service: Service, client: httpx2.AsyncClient
) -> None:
    form_id = (await client.post("/v1/forms", json=FORM)).json()["form_id"]

    page = (await client.get(f"/f/{form_id}", headers={"Accept-Language": "de-CH"})).text

    assert "Rabatt" in page
    assert 'lang="de"' in page
    assert "português (Brasil)" in page.replace("Português", "português")


async def test_answers_to_a_form_reach_each_in_their_language(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    subscribe: Subscribe,
    channel: RecordingChannel,
) -> None:
    for name, lang in {"Jonas": "de", "Rui": "pt-BR"}.items():
        person = await subscribe(name, lang=lang)
        await client.patch(f"/v1/subscribers/{person}", json={"tags": ["team"]})
    heads = {"en": "New", "de": "Neu", "pt-BR": "Novo"}
    to_tag = {"to": {"kind": "tag", "tag": "team", "text": heads}}
    form_id = (await client.post("/v1/forms", json={**FORM, "rules": [to_tag]})).json()["form_id"]
    before, forms = len(channel.sent), service.get(Forms)

    async with service.db.transaction() as tx:
        form = await forms.get(tx, tenant.project.project_id, form_id)
        await service.get(Submissions).submit(tx, NewSubmission(form, "web", {"n": "x"}, "en"))
    await settled(service)

    assert sorted(text.split("\n")[0] for text in channel.texts[before:]) == ["Neu", "Novo"]


async def test_people_choose_a_listed_language_in_the_chat(
    service: Service, tenant: Tenant
) -> None:
    ann = Talker(service, ChannelUser("a", "Ann", None, "en"))
    await ann.subscribe(tenant)
    await ann.write("/lang")
    offered = ann.labels

    await ann.press("Deutsch")

    found = (await tenant.client.get("/v1/subscribers")).json()["data"]
    assert offered == ["✓ English", "Русский", "Deutsch", "Português (Brasil)"]
    assert [one["lang"] for one in found] == ["de"]


async def test_what_the_service_says_falls_back_to_the_default_language(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    said = {}
    for default in ("en", "ru"):
        service = await make_service(languages=LISTED, default_lang=default)
        jonas = Talker(service, ChannelUser("j", "Jonas", None, "de"))
        said[default] = await jonas.subscribe(await make_tenant(service))

    assert said == {
        "en": "You are subscribed to notifications from Shop.",
        "ru": "Вы подписаны на уведомления от «Shop».",
    }


async def test_a_deployer_brings_the_services_texts_in_a_language(
    make_service: ServiceFactory, make_tenant: MakeTenant, tmp_path: Path
) -> None:
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "msgsvc_core.po").write_text(
        'msgid "In which language would you like to get messages?"\n'
        'msgstr "In welcher Sprache sollen wir schreiben?"\n',
        encoding="utf-8",
    )
    service = await make_service(languages=LISTED, locale_dir=str(tmp_path))
    jonas = Talker(service, ChannelUser("j", "Jonas", None, "de"))

    asked = await jonas.write("/lang")
    subscribed = await jonas.subscribe(await make_tenant(service))

    assert asked == "In welcher Sprache sollen wir schreiben?"
    assert subscribed == "You are subscribed to notifications from Shop."
    assert service.texts.spoken == ("en", "ru", "de")


async def test_what_is_in_a_language_that_is_listed_no_more_is_read_and_falls_back(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    tenant: Tenant,
) -> None:
    jonas = await subscribe("Jonas", lang="de")
    await client.post(
        "/v1/templates", json={"key": "sale", "text": {"de": "Rabatt", "ru": "Скидки"}}
    )
    await client.post("/v1/forms", json=FORM)
    await service.stop()
    again = await make_service(
        extra_plugins=PLUGINS, database_url=service.settings.database_url, default_lang="ru"
    )
    headers = {"Authorization": f"Bearer {tenant.key}"}
    transport = httpx2.ASGITransport(app=again.app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://msgsvc.test", headers=headers
    ) as caller:
        person = await shown(caller, jonas)
        kept = (await caller.get("/v1/templates/sale")).json()
        changed = await caller.patch("/v1/templates/sale", json={"format": "html"})
        forms = (await caller.get("/v1/forms")).json()["data"]
        preview = (await caller.post("/v1/templates/sale/preview", json={})).json()["data"]

    assert person["lang"] == "de"
    assert kept["text"] == {"de": "Rabatt", "ru": "Скидки"}
    assert changed.status_code == 200, changed.text
    assert forms[0]["title"] == SALE
    assert {one["lang"]: one["text"] for one in preview} == {"en": "Скидки", "ru": "Скидки"}


async def test_the_description_says_that_a_language_is_any_string(service: Service) -> None:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app), base_url="http://msgsvc.test"
    ) as client:
        document = (await client.get("/openapi.json")).json()

    models = document["components"]["schemas"]
    for name, field in (("Subscriber", "lang"), ("When", "lang"), ("PreviewTemplateBody", "lang")):
        schema = models[name]["properties"][field]
        [described] = [each for each in schema.get("anyOf", [schema]) if each["type"] != "null"]
        assert (described["type"], "enum" in described) == ("string", False), name


def test_a_menu_has_what_the_service_speaks_and_the_default(service: Service) -> None:
    about = [set(command.about) for command in service.inbound.menu()]

    assert about
    assert all(langs == {"en", "ru"} for langs in about)
