"""Pages of keys, channels, settings and jobs."""

import re
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    Channel,
    ChannelContext,
    ChannelIdentity,
    ChannelKind,
    ChatColours,
    DeliveryError,
    MessengerLook,
    Polled,
    Reason,
)
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.config.sections import Section
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS, from_rfc3339, to_rfc3339
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit import FakeClock, RecordingChannel, until
from msgsvc_devkit.dashboard import stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"


async def test_a_key_is_made_shown_once_and_revoked(make_service: ServiceFactory) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)

    made = await owner.post("/keys", {"name": HOSTILE, "which": "some", "areas": ["messages"]})
    found = re.search(r"msk_\w{43}", made.text)
    assert found is not None
    listed = await owner.get("/keys")
    key_id = re.search(r"/keys/(key_\w+)/revoke", listed.text)
    assert key_id is not None
    calls = {"headers": {"Authorization": f"Bearer {found[0]}"}}
    inside = await owner.client.get("/v1/messages", **calls)
    outside = await owner.client.get("/v1/project", **calls)
    revoked = await owner.post(f"/keys/{key_id[1]}/revoke")
    after = await owner.client.get("/v1/messages", **calls)

    assert found[0] not in listed.text
    assert "<script>alert" not in made.text + listed.text
    assert (inside.status_code, outside.status_code) == (200, 403)
    assert revoked.status_code == 303
    assert after.status_code == 401


async def test_a_key_expires_when_its_maker_said_and_is_pointed_out_before(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    day = to_rfc3339(clock.now_ms() + DAY_MS)[:10]
    given = [{}, {"expires": "never"}, {"expires": "90"}, {"expires": "date", "expires_at": day}]
    for name, fields in enumerate(given):
        assert (await owner.post("/keys", {"name": str(name), **fields})).status_code == 200
    refused = [
        await owner.post("/keys", {"name": "no", "expires": "date", "expires_at": wrong})
        for wrong in ("", "tomorrow", "2020-01-01", "2500-01-01", "9999-12-31")
    ]
    keys = await service.projects.list_keys(project.project_id)
    listed = await owner.get("/keys")
    overview = await owner.get("")
    clock.advance(2 * 24 * 3600)
    later = await owner.get("/keys")

    ends = [each.key.expires_at_ms for each in keys]
    # To the end of the day, by the clock of the account: UTC.
    end_of_day = from_rfc3339(f"{day}T00:00:00Z") + DAY_MS
    assert ends == [None, None, keys[2].created_at_ms + 90 * DAY_MS, end_of_day]
    assert [each.status_code for each in refused] == [400] * 5
    assert "tomorrow" in refused[1].text
    assert "The API key 3 expires soon." in overview.text
    assert listed.text.count("Expires soon") == 1
    assert (later.text.count("Expires soon"), later.text.count(">Expired<")) == (0, 1)


async def test_a_new_key_comes_with_calls_that_it_may_make(make_service: ServiceFactory) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    form = await owner.get("/keys/new")
    made = {
        which: (await owner.post("/keys", {"name": which, "which": which})).text
        for which in ("all", "read", "send")
    }
    channels = await owner.post("/keys", {"name": "c", "which": "some", "areas": ["channels"]})

    assert "The project&#39;s team." in form.text
    # Nothing of the sandbox or of sign-in is loaded here.
    assert 'value="sign_in"' not in form.text
    for text, call in (
        ("all", "project.get()"),
        ("read", "project.get()"),
        ("send", "messages.send("),
    ):
        assert call in made[text].replace("&#34;", '"')
        assert f"{service.settings.base_url}/v1/" in made[text]
        assert "msgsvc.example" not in made[text]
    assert "client." not in channels.text
    listed = await owner.get("/keys")
    assert "read only" in listed.text


async def test_scopes_are_described_in_the_readers_language(make_service: ServiceFactory) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    owner.client.headers["Accept-Language"] = "ru"
    form = await owner.get("/keys/new")
    described = re.findall(r'<p class="hint" id="h-areas-(\w+)">([^<]*)</p>', form.text)

    assert {"messages", "subscribers", "project"} <= {area for area, _ in described}
    assert [area for area, text in described if not re.search("[а-я]", text)] == []


async def test_a_name_that_is_refused_stays_in_the_form(make_service: ServiceFactory) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)

    refused = await owner.post("/keys", {"name": "n" * 65, "which": "all"})

    assert refused.status_code == 400
    assert "n" * 65 in refused.text
    assert 'role="alert"' in refused.text


async def test_a_bot_is_connected_changed_checked_and_removed(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)

    asked = await owner.get("/channels/new", kind="recording")
    refused = await owner.post("/channels/new", {"plugin": "recording", "name": "Not a name"})
    made = await owner.post("/channels/new", {"plugin": "recording", "name": "our_bot"})
    shown = await owner.get("/channels/our_bot")
    changed = await owner.post("/channels/our_bot", {})
    checked = await owner.post("/channels/our_bot/check")
    removed = await owner.post("/channels/our_bot/delete")
    listed = await owner.get("/channels")

    assert asked.status_code == 200
    assert refused.status_code == 400
    assert "Not a name" in refused.text
    assert made.headers["location"].endswith("/channels/our_bot")
    assert "Working" in shown.text
    assert [each.status_code for each in (changed, checked, removed)] == [303] * 3
    assert "our_bot" not in listed.text
    assert "messenger_a" in listed.text


class DrawnKind:
    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(
            _context: ChannelContext, identity: ChannelIdentity, _settings: Section
        ) -> Channel:
            return RecordingChannel(identity)

        light = ChatColours(ground="#dfe7ee", bubble="#ffffff", text="#16202a", link="#1d5f99")
        dark = ChatColours("#10161c", "#1d2730", "#eef2f5", "#8cc4f0", "#3a4c5c", "#ffffff")
        styled = {
            "button_primary": "#1d6fb8",
            "button_success": "#23783c",
            "button_danger": "#c2352b",
            "button_styled_text": "#ffffff",
        }
        light, dark = replace(light, **styled), replace(dark, **styled)
        look = MessengerLook(light, dark, buttons="inside")
        return [
            ChannelKind("drawn", Section, create, title="Pigeon", mark="M1 2h3z", look=look),
            ChannelKind("plain", Section, create),
        ]


async def test_messengers_are_shown_by_their_names_and_drawings(
    make_service: ServiceFactory,
) -> None:
    plugins = [*WITH_DASHBOARD["extra_plugins"], ("drawn", DrawnKind())]
    service = await make_service(extra_plugins=plugins)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    await owner.post("/channels/new", {"plugin": "drawn", "name": "our_bot"})
    offered = (await owner.get("/channels/new")).text
    listed = (await owner.get("/channels")).text

    for page in (offered, listed):
        assert '<path fill-rule="evenodd" d="M1 2h3z"/></svg>Pigeon' in page


async def test_a_preview_has_the_colours_of_its_messenger(make_service: ServiceFactory) -> None:
    plugins = [*WITH_DASHBOARD["extra_plugins"], ("drawn", DrawnKind())]
    channels = {"our_bot": {"plugin": "drawn"}, "other_bot": {"plugin": "plain"}}
    service = await make_service(extra_plugins=plugins, channels=channels)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    written = {"text": "Hi", "button_text_1": "Yes", "button_data_1": "yes"}
    written["button_style_1"] = "success"

    shown = (await owner.post("/template-preview", written)).text
    first, second = shown.partition('id="preview"')[2].split("<figure")[1:]
    styles = re.findall(r'href="([^"]+/_looks/[^"]+)"', shown)
    css = await owner.client.get(styles[0])
    unknown = await owner.client.get("/dashboard/_looks/look-0.css")
    look = re.search(r'class="chat (look-\w+)"', first)

    assert "Pigeon" in first
    assert look is not None
    # Inside the message, and below it.
    assert first.index("bubble-row") < first.index("</div>\n    </div>\n    </div>")
    assert 'class="chat "' in second
    assert len(styles) == 1
    assert unknown.status_code == 404
    assert css.headers["content-type"].startswith("text/css")
    assert "immutable" in css.headers["cache-control"]
    assert css.text.count("{") == 1
    assert f".{look[1]} {{" in css.text
    assert "--chat-bubble: light-dark(#ffffff, #1d2730);" in css.text
    assert "--chat-button: light-dark(#ffffff, #3a4c5c);" in css.text
    assert "--chat-button-text: light-dark(#1d5f99, #ffffff);" in css.text
    assert "--chat-button-success: light-dark(#23783c, #23783c);" in css.text
    assert 'class="bubble-button success"' in first


async def test_the_project_is_renamed_and_given_words(make_service: ServiceFactory) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    words = {"welcome_en": "Hello {{ first_name }}", "welcome_ru": "Привет"}

    refused = await owner.post("/settings", {"name": "Shop", "welcome_en": "{{ nobody }}"})
    saved = await owner.post("/settings", {"name": HOSTILE[:60], **words})
    async with service.db.read() as tx:
        texts = await service.projects.texts(tx, project.project_id)
    shown = await owner.get("/settings")

    assert refused.status_code == 400
    assert "{{ nobody }}" in refused.text
    assert saved.status_code == 303
    assert texts.welcome == {"en": "Hello {{ first_name }}", "ru": "Привет"}
    assert texts.farewell is None
    assert "<script>alert" not in shown.text


@pytest.mark.both_databases
async def test_the_operator_alone_runs_dead_letters_again(make_service: ServiceFactory) -> None:
    service = await make_service(jobs={"runner": "none"}, **WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    operator = await visitor(service, project.project_id, "viewer")
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("batch.complete", {"token": "hush"}, lane="default"))
        await tx.execute("UPDATE core_jobs SET state = 'dead', last_error = :why", {"why": HOSTILE})
        await tx.execute(
            "UPDATE dashboard_accounts SET is_operator = TRUE WHERE account_id = :account_id",
            {"account_id": operator.account_id},
        )

    hidden = await owner.get("/dashboard/operator/jobs")
    listed = await operator.get("/dashboard/operator/jobs")
    path = re.search(r'href="(/dashboard/operator/jobs/job_\w+)"', listed.text)
    assert path is not None
    shown = await operator.get(path[1])
    again = await operator.post(f"{path[1]}/retry")
    waiting = await operator.get("/dashboard/operator/jobs", state="ready")
    discarded = await operator.post(f"{path[1]}/discard")

    assert hidden.status_code == 403
    assert "hush" not in shown.text
    assert "<script>alert" not in listed.text + shown.text
    assert again.status_code == 303
    assert "batch.complete" in waiting.text
    assert discarded.status_code == 303
    assert (await operator.get(path[1])).status_code == 404


async def _add_job(service: Service, name: str, state: str, payload: dict[str, Any]) -> str:
    """The path of its page."""
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob(name, payload))
        await tx.execute("UPDATE core_jobs SET state = :state", {"state": state})
        return f"/dashboard/operator/jobs/{await tx.fetch_val('SELECT job_id FROM core_jobs')}"


@pytest.mark.parametrize(
    ("name", "payload", "lang", "why"),
    [
        ("channel.call", {}, "en", "docs/guides/scaling-out.md says what to do instead"),
        ("channel.call", {}, "ru", "повторный запуск ничего не даст"),
        ("message.deliver", {"message_id": "m"}, "en", "its message no longer exists"),
        ("message.deliver", {"message_id": "m"}, "ru", "Его сообщения больше нет"),
        ("of_no_plugin", {}, "ru", "Его плагин не загружен"),
    ],
)
async def test_the_page_of_a_job_says_why_it_is_not_run_again(
    make_service: ServiceFactory, name: str, payload: dict[str, Any], lang: str, why: str
) -> None:
    service = await make_service(jobs={"runner": "none"}, **WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    operator = await stranger(service, project.project_id, is_operator=True)
    path = await _add_job(service, name, "dead", payload)
    operator.client.headers["Accept-Language"] = lang

    refused = await operator.post(f"{path}/retry")
    dead = await operator.get("/dashboard/operator/jobs", state="dead")

    assert refused.status_code == 409
    assert why in refused.text
    assert f'action="{path}/retry"' in refused.text
    assert name in dead.text


async def test_the_page_of_a_running_job_says_that_it_is_not_discarded(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(jobs={"runner": "none"}, **WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    operator = await stranger(service, project.project_id, is_operator=True)
    path = await _add_job(service, "batch.complete", "running", {})

    refused = await operator.post(f"{path}/discard")

    assert refused.status_code == 409
    assert "it is running" in refused.text


async def test_a_viewer_changes_nothing_and_an_agent_sees_none_of_it(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    viewer = await visitor(service, project.project_id, "viewer")
    agent = await visitor(service, project.project_id, "agent")
    paths = ("/keys", "/channels", "/settings")

    looked: list[httpx2.Response] = [await viewer.get(path) for path in paths]
    refused = [await viewer.post(path, {"name": "x"}) for path in ("/keys", "/settings")]
    hidden = [await agent.get(path) for path in paths]

    assert [each.status_code for each in looked] == [200] * 3
    assert not any('<form method="post"' in each.text.split("<main")[1] for each in looked)
    assert [each.status_code for each in [*refused, *hidden]] == [403] * 5


class DeafChannel(RecordingChannel):
    """Another program takes its updates."""

    receiving = "poll"

    async def poll_updates(self, cursor: str | None) -> Polled:
        raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "Conflict: <another> program")


class DeafKind:
    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(
            _context: ChannelContext, identity: ChannelIdentity, _settings: Section
        ) -> Channel:
            return DeafChannel(identity)

        return [ChannelKind("deaf", Section, create, frozenset())]


@pytest.mark.parametrize(
    ("lang", "word", "sentence"),
    [
        (
            "en",
            "Not receiving",
            "the bot has received no messages: Conflict: &lt;another&gt; program",
        ),
        ("ru", "Ничего не получает", "бот ничего не получает: Conflict: &lt;another&gt; program"),
    ],
)
async def test_a_bot_that_receives_nothing_says_so_on_its_pages(
    make_service: ServiceFactory, lang: str, word: str, sentence: str
) -> None:
    service = await make_service(
        extra_plugins=[("dashboard", plugin), ("deaf", DeafKind())],
        channels={"messenger_a": {"plugin": "deaf"}},
        jobs={"reception_failing_s": 0, "sweep_s": 0.05},
        own_channels={"follow_s": 0.02},
    )
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    owner.client.headers["Accept-Language"] = lang
    await owner.post("/channels/new", {"plugin": "deaf", "name": "our_bot"})

    async def both_interrupted() -> bool:
        async with service.db.read() as tx:
            found = await service.get(ChannelStates).troubled(tx)
        return len(found) == 2

    await until(both_interrupted)
    listed = await owner.get("/channels")
    shown = await owner.get("/channels/our_bot")
    checked = await owner.post("/channels/our_bot/check")

    assert listed.text.count(word) == 2
    assert sentence in shown.text
    assert checked.status_code == 303


@pytest.mark.parametrize(
    ("lang", "word", "sentence", "problem"),
    [
        ("en", "Paused", "The messenger asked the bot to wait until", "our_bot is paused"),
        ("ru", "На паузе", "Мессенджер попросил бота подождать до", "our_bot: пауза"),
    ],
)
async def test_a_bot_that_is_asked_to_wait_says_so_on_its_pages(
    make_service: ServiceFactory, lang: str, word: str, sentence: str, problem: str
) -> None:
    service = await make_service(
        extra_plugins=[("dashboard", plugin)], channels={"messenger_a": {"plugin": "recording"}}
    )
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    owner.client.headers["Accept-Language"] = lang
    await owner.post("/channels/new", {"plugin": "recording", "name": "our_bot"})
    [own] = [
        each
        for each in service.channels.list_for_project(project.project_id)
        if each.name == "our_bot"
    ]
    async with service.db.transaction() as tx:
        for key in (own.key, "messenger_a"):
            await service.get(ChannelStates).pause(tx, key, service.clock.now_ms() + 300_000)
    listed = await owner.get("/channels")
    shown = await owner.get("/channels/our_bot")
    overview = await owner.get("")

    # The project's own bot, and the shared one.
    assert listed.text.count(word) == 2
    assert sentence in shown.text
    assert problem in overview.text
