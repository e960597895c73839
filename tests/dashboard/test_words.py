"""What pages call things that are stored by a code or in English."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from msgsvc_core.dashboard.failures import failure_in_words
from msgsvc_core.events.contract import Event
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.service import Service
from msgsvc_dashboard.people.words import event_detail
from msgsvc_dashboard.team.actions import action_title
from msgsvc_dashboard.team.subjects import AREAS
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.resources import MiniAppPlugin
from tests.dashboard.walking import SETTINGS, pages_of

ROOT = Path(__file__).parents[2]
FOLDERS = [
    ("msgsvc_core", ROOT / "msgsvc_core/locale"),
    *((path.name, path / "locale") for path in ROOT.glob("plugins/areas/*/msgsvc_*")),
]


def into(lang: str, package: str) -> Translate:
    return Texts(FOLDERS, "en").into(lang, package)


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


async def test_each_change_of_the_audit_log_has_a_title(service: Service) -> None:
    changes = {
        page.name for page in pages_of(service) if page.method == "POST" and not page.read_only
    }
    changes |= {f"{each.area}.{each.name}" for each in service.endpoints if each.audited}
    english, russian = (into(lang, "msgsvc_dashboard") for lang in ("en", "ru"))

    assert "webhooks.create_webhook" in changes
    assert sorted(name for name in changes if not action_title(english, name)) == []
    # But for those of the operator's pages and of sandbox messengers, which no project's log has.
    filtered = {area for areas in AREAS.values() for area in areas}
    assert {name.partition(".")[0] for name in changes} - filtered == {"operator"}
    assert action_title(russian, "oidc.create_oidc_client") == "Клиент OpenID создан"
    assert action_title(russian, "survey.add") == ""


async def test_each_area_has_an_icon_of_its_own_in_a_menu(service: Service) -> None:
    # An operator has the pages of the installation below those of the project, or of the account.
    of_account = {"account:self": True, "installation:operate": None}
    named: dict[tuple[str, bool], set[str]] = defaultdict(set)
    for page in pages_of(service):
        if page.nav is not None:
            is_of_account = of_account.get(page.access, False)
            for menu in (True, False) if is_of_account is None else (is_of_account,):
                named[page.nav.icon, menu].add(page.area)

    assert {icon: areas for icon, areas in named.items() if len(areas) > 1} == {}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("ticket.status_changed", {"status": "open", "to": "open"}, "Открыто"),
        ("subscription.created", {"source": "deep_link"}, "Ссылка на подписку"),
        ("subscription.deleted", {"source": "deep_link", "reason": "erased"}, "Данные удалены"),
        ("scheduled.skipped", {"reason": "missed"}, "Время упущено"),
        ("delivery.failed", {"reason": "chat_not_found"}, "Такого чата больше нет"),
        ("event.tracked", {"name": "cart.abandoned", "status": "open"}, "cart.abandoned · open"),
    ],
)
def test_an_event_is_told_in_the_readers_language(
    name: str, data: Mapping[str, str], told: str
) -> None:
    event = Event(
        event_id="evt_1", project_id="prj_1", name=name, data=dict(data), occurred_at_ms=0
    )

    assert event_detail(into("ru", "msgsvc_dashboard"), event) == told


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("could not connect: Connection refused", "не удалось подключиться: соединение отклонено"),
        ("could not connect: Odd reason", "не удалось подключиться: Odd reason"),
        ("no complete answer within 10 s", "нет полного ответа за 10 с"),
        ("the address 10.0.0.7 is not public", "адрес 10.0.0.7 не публичный"),
        ("the answer is no valid HTTP (bad chunk)", "ответ не соответствует HTTP (bad chunk)"),
        ("the moon is full", "the moon is full"),
    ],
)
def test_a_recorded_failure_is_in_the_readers_language(recorded: str, said: str) -> None:
    assert failure_in_words(into("ru", "msgsvc_core"), recorded) == said
    assert failure_in_words(into("en", "msgsvc_core"), recorded) == recorded


def test_a_plugin_adds_failures_of_its_own() -> None:
    said = failure_in_words(
        into("ru", "msgsvc_oidc"), "the client answered 500", ("the client answered {status}",)
    )

    assert said == "клиент ответил 500"
