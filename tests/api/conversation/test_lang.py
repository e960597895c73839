"""/lang: a person says in which language they want to be written to."""

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, shown_of

RUSSIAN = "Теперь сообщения будут приходить на русском."
ENGLISH = "You will now get messages in English."


async def test_both_languages_are_offered_by_their_own_names(ann: Talker, boris: Talker) -> None:
    assert await ann.write("/lang") == "In which language would you like to get messages?"
    assert ann.labels == ["✓ English", "Русский"]
    assert await boris.write("/lang") == "На каком языке присылать сообщения?"
    assert boris.labels == ["English", "✓ Русский"]


async def test_the_choice_holds_above_the_messengers_language(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)
    await ann.write("/lang")

    chosen = await ann.press("Русский")

    assert (chosen, ann.labels) == (RUSSIAN, [])
    assert (await ann.write("/stop")).startswith("Вы отписаны от «Shop».")


async def test_the_persons_subscribers_by_that_bot_take_it_over(
    ann: Talker, tenant: Tenant, news: Tenant
) -> None:
    await ann.subscribe(tenant)
    await ann.subscribe(news)
    elsewhere = Talker(ann.service, ann.user, "messenger_b")
    await elsewhere.subscribe(tenant)

    await ann.write("/lang ru")

    found = (await tenant.client.get("/v1/subscribers")).json()["data"]
    assert {one["channel"]: one["lang"] for one in found} == {
        "messenger_a": "ru",
        "messenger_b": "en",
    }
    assert (await shown_of(news))["lang"] == "ru"


async def test_it_is_taken_over_by_who_subscribes_in_that_chat_later(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.write("/lang ru")

    said = await ann.subscribe(tenant)

    assert (await shown_of(tenant))["lang"] == "ru"
    assert said == "Вы подписаны на уведомления от «Shop»."


async def test_it_is_nobody_elses(ann: Talker, boris: Talker, tenant: Tenant) -> None:
    await boris.subscribe(tenant)
    await boris.write("/lang en")

    assert await ann.write("/lang ru") == RUSSIAN
    assert (await shown_of(tenant))["lang"] == "en"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("text", "said"),
    [("/lang en", ENGLISH), ("/LANG Русский", RUSSIAN), ("/lang english", ENGLISH)],
)
async def test_a_language_can_be_named_at_once(boris: Talker, text: str, said: str) -> None:
    assert await boris.write(text) == said


@pytest.mark.parametrize("argument", ["de", "klingon", "ru en"])
async def test_a_language_that_there_is_not_is_asked_again(ann: Talker, argument: str) -> None:
    assert (await ann.write(f"/lang {argument}")).startswith("In which language")


async def test_a_forged_press_asks_again(ann: Talker, service: Service) -> None:
    await ann.write("/lang")

    assert (await ann.press_data("~my:lang:xx")).startswith("In which language")


@pytest.mark.usefixtures("without_buttons")
async def test_without_buttons_the_languages_are_named_with_their_commands(ann: Talker) -> None:
    assert await ann.write("/lang") == (
        "In which language would you like to get messages?\n\n"
        "/lang en – English\n/lang ru – Русский"
    )
