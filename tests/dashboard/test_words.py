"""What pages call things that are stored by a code or in English."""

import errno
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.http_client import (
    CallError,
    CallTimeout,
    InvalidResponse,
    NotConnected,
    explain_call,
)
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.i18n import Texts, Translate, explained
from msgsvc_core.kernel.stored_findings import finding_to_column, read_finding
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import SOURCE_TITLES, Source
from msgsvc_dashboard.people.labels import event_detail
from msgsvc_dashboard.team.actions import ActionTitles
from msgsvc_dashboard.team.subjects import AuditSubjects
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_helpdesk.events import HELPDESK_EVENTS
from msgsvc_oidc.backchannel_logout.models import LogoutDelivery
from msgsvc_oidc.dashboard.labels import failure as logout_failure
from msgsvc_webhooks.dashboard.labels import failure as attempt_failure
from msgsvc_webhooks.models import Attempt
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


async def test_each_change_of_the_audit_log_has_a_title_by_its_owner(service: Service) -> None:
    titles = service.get(ActionTitles)
    changes = {
        page.name for page in pages_of(service) if page.method == "POST" and not page.read_only
    }
    changes |= {f"{each.area}.{each.name}" for each in service.endpoints if each.audited}
    english, russian = (service.texts.into(lang, "msgsvc_dashboard") for lang in ("en", "ru"))

    assert "webhooks.create_webhook" in changes
    assert sorted(name for name in changes if not titles.title(english, name)) == []
    assert titles.title(russian, "oidc.create_oidc_client") == "Клиент OpenID создан"
    assert titles.title(russian, "key.revoke") == "Ключ API отозван"
    assert titles.title(russian, "survey.add") == ""


async def test_the_log_is_filtered_by_each_area_that_a_projects_log_has(service: Service) -> None:
    subjects = service.get(AuditSubjects)
    english = service.texts.into("en", "msgsvc_dashboard")
    filtered = {area for name in subjects.areas(english) for area in subjects.actions_of(name)}
    changing = {page.area for page in pages_of(service) if page.method == "POST"}
    changing |= {each.area for each in service.endpoints if each.audited}

    # But for those of the operator's pages and of sandbox messengers, which no project's log has.
    assert changing - filtered == {"operator"}
    assert subjects.actions_of("broadcasts") == ("broadcasts",)
    assert subjects.actions_of("drip") == ("drip", "drips")
    assert subjects.areas(english)["helpdesk"] == "Tickets"


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
        (
            "ticket.replied",
            {"status": "pending", "text": "Hi" * 150},
            f"{'Hi' * 100} · Ждёт клиента",
        ),
        ("ticket.closed", {}, ""),
        ("ticket.csat_received", {"status": "closed", "score": "4", "comment": "Ok"}, "4/5 · Ok"),
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

    async def nobody(_tx: Tx, _events: Sequence[Event]) -> None:
        pass

    events = Events(clock=FakeClock(), specs=HELPDESK_EVENTS, observe=nobody)

    assert event_detail(into("ru", "msgsvc_dashboard"), events, event) == told


def test_every_source_of_a_subscription_has_a_title() -> None:
    assert SOURCE_TITLES.keys() == set(get_args(Source))


def recorded(error: CallError | ForbiddenTarget) -> Finding:
    """What is recorded of a call's failure, as it is read again."""
    found = read_finding(finding_to_column(explain_call(error, 10).why))
    assert found is not None
    return found


def refused(cause: OSError | None) -> Finding:
    return recorded(NotConnected("example.org", 443, cause))


def forbidden(url: str) -> ForbiddenTarget:
    with pytest.raises(ForbiddenTarget) as refusal:
        OutboundGuard().check_url(url)
    return refusal.value


@pytest.mark.parametrize(
    ("failure", "english", "russian"),
    [
        (
            refused(ConnectionRefusedError(errno.ECONNREFUSED, "")),
            "could not connect: Connection refused",
            "не удалось подключиться: соединение отклонено",
        ),
        (
            refused(OSError(errno.EPROTO, "")),
            "could not connect: Protocol error",
            "не удалось подключиться: Protocol error",
        ),
        (
            refused(None),
            "could not connect: no reason given",
            "не удалось подключиться: причина не указана",
        ),
        (
            recorded(CallTimeout(sent=True)),
            "no complete answer within 10 s",
            "нет полного ответа за 10 с",
        ),
        (
            recorded(forbidden("https://10.0.0.7/")),
            "the address 10.0.0.7 is not public",
            "адрес 10.0.0.7 не публичный",
        ),
        (
            recorded(InvalidResponse("bad {chunk}")),
            "the answer is no valid HTTP (bad {chunk})",
            "ответ не соответствует HTTP (bad {chunk})",
        ),
        (
            Finding("the client answered {status}", {"status": 500}, package="msgsvc_oidc"),
            "the client answered 500",
            "клиент ответил 500",
        ),
        (Finding("the moon is full"), "the moon is full", "the moon is full"),
    ],
)
def test_a_recorded_failure_is_in_the_readers_language(
    failure: Finding, english: str, russian: str
) -> None:
    assert explained([failure], into("ru", "msgsvc_webhooks")) == russian
    assert explained([failure], into("en", "msgsvc_webhooks")) == english == failure.reason


def test_what_an_earlier_release_recorded_is_shown_as_it_is() -> None:
    error = "could not connect: Connection refused"
    logout = LogoutDelivery(
        project_id="prj_1",
        delivery_id="old_1",
        client_id="app_1",
        subject="",
        session_id=None,
        status="failed",
        attempts=1,
        status_code=None,
        error=error,
        failure=None,
        created_at_ms=0,
        next_attempt_at_ms=None,
    )

    assert attempt_failure(into("ru", "msgsvc_webhooks"), Attempt(0, 1, error=error)) == error
    assert logout_failure(into("ru", "msgsvc_oidc"), logout) == error
