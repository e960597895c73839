"""Links to preferences pages, and what is behind them: rules built from fakes."""

import pytest

from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.subscribers.preferences.pages import PreferencesPages
from msgsvc_core.subscribers.preferences.service import Preferences
from msgsvc_core.subscribers.preferences_links import LinkExpired, PreferencesLinks
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx


@pytest.fixture
def core() -> FakeContext:
    return plugin_context()


def links_of(core: FakeContext) -> PreferencesLinks:
    return PreferencesLinks(
        clock=core.clock, secrets=core.secrets, base_url="https://msgsvc.test/", days=2
    )


def preferences_of(core: FakeContext) -> Preferences:
    return Preferences(
        links=links_of(core),
        projects=core.projects,
        subscribers=core.subscribers,
        permissions=core.permissions,
        channels=core.channels,
        languages=("en", "ru"),
    )


def test_a_link_names_one_person_for_its_days(core: FakeContext) -> None:
    links = links_of(core)
    token = links.url(PROJECT, "sub_1").removeprefix("https://msgsvc.test/preferences/")
    core.clock.advance(2 * 24 * 3600)

    assert links.read(token) == (PROJECT, "sub_1")
    with pytest.raises(NotFound):
        links.read(token.replace("sub_1", "sub_2"))
    core.clock.advance(24 * 3600)
    with pytest.raises(LinkExpired):
        links.read(token)


async def test_who_is_gone_has_no_page(core: FakeContext) -> None:
    token = links_of(core).url(PROJECT, "sub_gone").rpartition("/")[2]

    with pytest.raises(NotFound):
        await preferences_of(core).get(FakeTx(), token)


def test_a_page_is_opened_and_changed_at_one_address(core: FakeContext) -> None:
    pages = PreferencesPages(db=core.db, texts=core.texts, preferences=preferences_of(core))

    assert {"GET", "POST"} <= set(getattr(pages.routes()[-1], "methods", ()))
