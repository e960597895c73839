"""The bot's command `/apps`: what people allowed, and how they revoke it."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities, ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from msgsvc_oidc import plugin
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.consents.service import NOTIFY_PERMISSION, Consents
from plugins.areas.oidc.tests.chats import BotChat
from plugins.areas.oidc.tests.conftest import Registry, Visitor

MESSAGES = {"scopes": ["openid", "profile", "notify"]}


@pytest.fixture
def chat(service: Service) -> BotChat:
    return BotChat(service)


async def permissions_of(person: Visitor) -> tuple[str, ...]:
    async with person.service.db.read() as tx:
        found = await person.service.subscribers.get(
            tx, person.project_id, person.subscriber.subscriber_id
        )
    return found.permissions


async def agree(person: Visitor, client: dict[str, Any], scopes: tuple[str, ...]) -> None:
    """As if the person had allowed it on the page."""
    clients, consents = person.service.get(Clients), person.service.get(Consents)
    async with person.service.db.transaction() as tx:
        found = await clients.get(tx, person.project_id, client["client_id"])
        await consents.give(tx, found, person.subscriber.subscriber_id, scopes)


async def test_somebody_who_allowed_nothing_is_told_so(ann: Visitor, chat: BotChat) -> None:
    assert await chat.write("/apps") == "No app has access to your account."
    assert chat.labels == []


async def test_an_app_is_listed_with_what_it_may_and_since_when(
    ann: Visitor, chat: BotChat, register: Registry, clock: Any
) -> None:
    await ann.tokens(await register(**MESSAGES), scope="openid profile notify")

    said = await chat.write("/apps")

    assert said.splitlines()[0] == "Apps with access to your account:"
    assert said.splitlines()[2].startswith("Grafana, since 20")
    assert "• Let Shop send you messages" in said
    assert chat.labels == ["Revoke: Grafana"]


async def test_the_tokens_of_an_app_that_was_taken_back_die(
    ann: Visitor, chat: BotChat, register: Registry
) -> None:
    client = await register(scopes=["openid", "offline_access"])
    tokens = await ann.tokens(client, scope="openid offline_access")
    await chat.write("/apps")
    question = await chat.press("Revoke: Grafana")
    before = await ann.userinfo(tokens["access_token"])
    ended = await chat.press("Yes, revoke it")

    assert question.startswith("Revoke the access of Grafana?")
    assert before.status_code == 200
    assert ended == "Grafana no longer has access.\n\nNo app has access to your account."
    assert (await ann.userinfo(tokens["access_token"])).status_code == 401
    assert (await ann.refresh(client, tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_cancel_leaves_the_access(ann: Visitor, chat: BotChat, register: Registry) -> None:
    tokens = await ann.tokens(await register())
    await chat.write("/apps")
    await chat.press("Revoke: Grafana")
    await chat.press("Cancel")

    assert chat.labels == ["Revoke: Grafana"]
    assert (await ann.userinfo(tokens["access_token"])).status_code == 200


@pytest.mark.both_databases
async def test_messages_are_allowed_until_the_last_app_with_them_is_revoked(
    ann: Visitor, chat: BotChat, register: Registry
) -> None:
    for name in ("Grafana", "Wiki"):
        await ann.tokens(await register(name=name, **MESSAGES), scope="openid notify")
    await chat.write("/apps")
    await chat.press("Revoke: Grafana")
    await chat.press("Yes, revoke it")
    with_one = await permissions_of(ann)
    await chat.press("Revoke: Wiki")
    await chat.press("Yes, revoke it")

    assert with_one == (NOTIFY_PERMISSION,)
    assert await permissions_of(ann) == ()


async def test_messages_that_were_turned_off_stay_off_until_the_person_agrees_again(
    ann: Visitor, register: Registry
) -> None:
    client = await register(**MESSAGES)
    await ann.tokens(client, scope="openid notify")
    person = (ann.project_id, ann.subscriber.subscriber_id)
    async with ann.service.db.transaction() as tx:
        await ann.service.subscribers.set_permission(tx, *person, NOTIFY_PERMISSION, granted=False)
    await ann.tokens(client, scope="openid notify", prompt="none")
    silent = await permissions_of(ann)
    await ann.tokens(client, scope="openid notify", prompt="consent")

    assert silent == ()
    assert await permissions_of(ann) == (NOTIFY_PERMISSION,)


async def test_a_client_of_the_project_itself_keeps_messages_allowed(
    ann: Visitor, chat: BotChat, register: Registry
) -> None:
    """It has them by its grant, without a consent."""
    own = await register(name="Shop", first_party=True, **MESSAGES)
    other = await register(**MESSAGES)
    for client in (own, other):
        await ann.tokens(client, scope="openid notify")
    await ann.take_back(other)

    assert await permissions_of(ann) == (NOTIFY_PERMISSION,)


async def test_a_client_of_the_project_itself_turns_messages_on_once(
    ann: Visitor, register: Registry
) -> None:
    """Nobody is asked there, so what a person turned off stays off at the next sign-in."""
    own = await register(name="Shop", first_party=True, **MESSAGES)
    await ann.tokens(own, scope="openid notify")
    first = await permissions_of(ann)
    person = (ann.project_id, ann.subscriber.subscriber_id)
    async with ann.service.db.transaction() as tx:
        await ann.service.subscribers.set_permission(tx, *person, NOTIFY_PERMISSION, granted=False)
    await ann.tokens(own, scope="openid notify")

    assert first == (NOTIFY_PERMISSION,)
    assert await permissions_of(ann) == ()
    assert await ann.consents() == [("Shop", ("notify",))]


async def test_an_app_without_messages_leaves_the_permission(
    ann: Visitor, register: Registry
) -> None:
    plain, own = await register(), await register(name="Shop", first_party=True, **MESSAGES)
    for client, scope in ((plain, "openid"), (own, "openid notify")):
        await ann.tokens(client, scope=scope)
    await ann.take_back(plain)

    assert await permissions_of(ann) == (NOTIFY_PERMISSION,)


async def test_an_old_yes_does_not_end_what_was_allowed_since(
    ann: Visitor, chat: BotChat, register: Registry, clock: Any
) -> None:
    client = await register()
    await ann.tokens(client)
    await chat.write("/apps")
    await chat.press("Revoke: Grafana")
    [old_yes] = [
        button.data
        for row in chat.last.message.buttons
        for button in row
        if button.text == "Yes, revoke it"
    ]
    await chat.press("Yes, revoke it")
    clock.advance(3600)
    tokens = await ann.tokens(client)
    asked = await chat.press_data(old_yes or "")

    assert asked.startswith("Revoke the access of Grafana?")
    assert (await ann.userinfo(tokens["access_token"])).status_code == 200


async def test_the_button_of_an_app_that_is_gone_shows_the_rest(
    ann: Visitor, chat: BotChat, register: Registry
) -> None:
    client = await register()
    await ann.tokens(client)
    await chat.write("/apps")
    await ann.take_back(client)

    said = await chat.press("Revoke: Grafana")

    assert said.startswith("This app has no access any more.")


@pytest.mark.parametrize(
    "data", ["~apps:", "~apps:x", "~apps:end", "~apps:show:x", "~apps:end:app_1"]
)
async def test_data_that_no_button_has_ends_nothing(
    ann: Visitor, chat: BotChat, register: Registry, data: str
) -> None:
    tokens = await ann.tokens(await register())
    await chat.write("/apps")
    await chat.press_data(data)

    assert (await ann.userinfo(tokens["access_token"])).status_code == 200


async def test_nobody_ends_the_access_of_somebody_else(
    ann: Visitor, new_visitor: Callable[..., Awaitable[Visitor]], register: Registry
) -> None:
    await new_visitor("Boris", "1002")
    client = await register()
    tokens = await ann.tokens(client)
    boris = BotChat(ann.service, "1002", chat_id="chat-1002")
    await boris.write("/apps")
    said = await boris.press_data(f"~apps:ask:{client['client_id']}")

    assert "no access any more" in said
    assert (await ann.userinfo(tokens["access_token"])).status_code == 200


async def test_many_apps_are_on_pages(ann: Visitor, chat: BotChat, register: Registry) -> None:
    for number in range(7):
        await agree(ann, await register(name=f"App {number}"), ("openid",))
    await chat.write("/apps")
    first = chat.labels
    await chat.press("Next ›")

    assert first == [*(f"Revoke: App {number}" for number in range(5)), "Next ›"]
    assert chat.labels == ["Revoke: App 5", "Revoke: App 6", "‹ Previous"]


@pytest.mark.both_databases
async def test_a_bot_of_several_projects_names_the_project_of_each_app(
    ann: Visitor,
    chat: BotChat,
    register: Registry,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    news = await make_tenant(ann.service, "News")
    async with ann.service.db.transaction() as tx:
        other = await ann.service.subscribers.ensure(
            tx,
            news.project.project_id,
            "messenger_a",
            ChannelUser("1001", "Ann", "ann_k", "en"),
            "chat-1001",
            source="auth",
        )
    there = Visitor(ann.service, httpx2.AsyncClient(), ann.sign_ins, other, news.project.project_id)
    await agree(ann, await register(), ("openid",))
    await agree(there, await Registry(news.client)(name="Wiki"), ("openid", "notify"))
    said = await chat.write("/apps")
    await chat.press("Revoke: Wiki (News)")
    await chat.press("Yes, revoke it")

    assert "Let News send you messages" in said
    assert chat.labels == ["Revoke: Grafana (Shop)"]


async def test_without_buttons_numbers_take_an_app_back(
    ann: Visitor, chat: BotChat, register: Registry
) -> None:
    chat.channel.capabilities = Capabilities(buttons="words", edit=False)
    tokens = await ann.tokens(await register())
    listed = await chat.write("/apps")
    question = await chat.write("1")
    ended = await chat.write("1")

    assert "1 - Revoke: Grafana" in listed
    assert "1 - Yes, revoke it" in question
    assert ended.startswith("Grafana no longer has access.")
    assert (await ann.userinfo(tokens["access_token"])).status_code == 401


async def test_in_a_group_nothing_is_listed(
    ann: Visitor, chat: BotChat, register: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ann.tokens(await register())
    monkeypatch.setattr(chat.channel, "is_group", lambda chat_id: True)

    assert await chat.write("/apps") == "Write /apps to me in a private chat."


async def test_the_list_is_in_the_language_of_the_person(
    ann: Visitor, register: Registry, service: Service
) -> None:
    await ann.tokens(await register())
    chat = BotChat(service, lang="ru")

    assert (await chat.write("/apps")).startswith("Приложения с доступом к вашей учётной записи:")
    assert chat.labels == ["Отозвать: Grafana"]


async def test_the_menu_lists_the_command_only_by_the_setting(
    make_service: Callable[..., Awaitable[Service]], oidc_settings: dict[str, Any]
) -> None:
    plain = await make_service(extra_plugins=[("oidc", plugin)], oidc=oidc_settings)
    listing = await make_service(
        extra_plugins=[("oidc", plugin)], oidc={**oidc_settings, "apps_in_menu": True}
    )

    assert "apps" not in [command.name for command in plain.inbound.menu()]
    assert "apps" in [command.name for command in listing.inbound.menu()]
