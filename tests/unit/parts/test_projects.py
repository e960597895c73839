"""Projects, their keys and what is counted of a service: rules built from fakes."""

from typing import Any

import pytest

from msgsvc_core.db import Row, Tx
from msgsvc_core.kernel.errors import InvalidApiKey, NotFound, ValidationFailed
from msgsvc_core.projects.models import EXPIRES_SOON_MS, ApiKey, ListedKey, ProjectBody
from msgsvc_core.projects.service import KNOWN_FOR_MS, Projects
from msgsvc_core.security.api_keys import digest, new_api_key
from msgsvc_core.telemetry import Metrics
from msgsvc_core.telemetry.database_metrics import DatabaseMetrics
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fakes import PROJECT, FakeDatabase, FakeTx
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.rows import NOW_MS

SECRET = new_api_key().secret

#: The row of the project.
SHOP: Row = {
    "project_id": PROJECT,
    "name": "Shop",
    "status": "active",
    "created_at_ms": NOW_MS,
    "branding": None,
    "link_tracking": False,
}


def known(**fields: Any) -> Answer:
    """The row of the key, and of its project."""
    project = {
        "project_id": PROJECT,
        "name": "Shop",
        "status": "active",
        "created_at_ms": NOW_MS,
        "branding": None,
        "link_tracking": False,
    }
    key = {"key_id": "key_1", "key_name": "site", "prefix": "msk_1", "scopes": '["*"]'}
    key["expires_at_ms"] = None
    return [{"digest": digest(SECRET), **project, **key, **fields}]


async def test_a_key_is_looked_for_once_a_second() -> None:
    db, clock = FakeDatabase(answers=[known(), known()]), FakeClock()
    projects = Projects(db, clock)
    for waits_s in (0, KNOWN_FOR_MS / 1000 - 0.001, 0.001):
        clock.advance(waits_s)
        await projects.authenticate(SECRET)

    assert len(db.statements) == 2


async def test_a_key_that_is_revoked_here_is_not_known_any_more() -> None:
    db = FakeDatabase(answers=[known(), 1, []])
    projects = Projects(db, FakeClock())
    await projects.authenticate(SECRET)
    await projects.revoke_key(PROJECT, "key_1")

    with pytest.raises(InvalidApiKey):
        await projects.authenticate(SECRET)


async def test_a_key_that_is_known_is_refused_from_its_expiry_on_without_a_look() -> None:
    clock = FakeClock()
    db = FakeDatabase(answers=[known(expires_at_ms=clock.now_ms() + KNOWN_FOR_MS // 2)])
    projects = Projects(db, clock)
    await projects.authenticate(SECRET)
    clock.advance(KNOWN_FOR_MS / 2000 - 0.001)
    await projects.authenticate(SECRET)
    clock.advance(0.001)

    with pytest.raises(InvalidApiKey, match="expired at 2026-"):
        await projects.authenticate(SECRET)
    assert len(db.statements) == 1


async def test_an_expired_key_leaves_no_use() -> None:
    clock = FakeClock()
    db = FakeDatabase(answers=[known(expires_at_ms=clock.now_ms())])
    projects = Projects(db, clock)
    with pytest.raises(InvalidApiKey):
        await projects.authenticate(SECRET)
    await projects.key_uses.write()

    assert len(db.statements) == 1


async def test_a_new_key_expires_in_the_future_or_never() -> None:
    clock = FakeClock()
    for ahead_ms in (0, -1):
        with pytest.raises(ValidationFailed, match="expires_at: must be in the future"):
            await Projects(FakeDatabase(), clock).add_key(
                FakeTx(), PROJECT, "site", expires_at_ms=clock.now_ms() + ahead_ms
            )


def test_a_key_is_pointed_out_in_the_two_weeks_before_it_expires() -> None:
    def listed(expires_at_ms: int | None, revoked_at_ms: int | None = None) -> ListedKey:
        key = ApiKey("key_1", PROJECT, "site", "msk_1", ("*",), expires_at_ms)
        return ListedKey(key, NOW_MS, None, revoked_at_ms)

    ends = NOW_MS + EXPIRES_SOON_MS
    soon = [listed(at).expires_soon(NOW_MS) for at in (None, ends + 1, ends, NOW_MS + 1, NOW_MS)]

    assert soon == [False, False, True, True, False]
    assert not listed(ends, revoked_at_ms=NOW_MS).expires_soon(NOW_MS)


async def test_what_has_not_the_shape_of_a_key_costs_the_database_nothing() -> None:
    db = FakeDatabase()

    with pytest.raises(InvalidApiKey):
        await Projects(db, FakeClock()).authenticate("msk_short")
    assert db.statements == []


async def test_the_use_of_a_key_is_noted_unless_its_project_is_disabled() -> None:
    for status, statements in (("active", 2), ("disabled", 1)):
        db = FakeDatabase(answers=[known(status=status), 1])
        projects = Projects(db, FakeClock())
        project, _ = await projects.authenticate(SECRET)
        await projects.key_uses.write()

        assert (project.status, len(db.statements)) == (status, statements)


@pytest.mark.parametrize("name", ["", " Shop", "Sh\nop", "x" * 65, "Shop\u202e", "\u200b"])
async def test_a_name_that_could_say_something_else_in_a_message_is_refused(name: str) -> None:
    projects = Projects(FakeDatabase(), FakeClock())

    with pytest.raises(ValidationFailed, match="name"):
        await projects.create(name)
    with pytest.raises(ValidationFailed, match="name"):
        await projects.create_key(PROJECT, name)


async def test_a_text_names_what_can_be_filled_in_and_the_others_stay() -> None:
    projects = Projects(FakeDatabase(), FakeClock())
    with pytest.raises(ValidationFailed, match=r"welcome\.ru: there is no 'surname'"):
        body = ProjectBody(welcome={"en": "Hi", "ru": "Привет, {{ surname }}"})
        await projects.update(FakeTx(), PROJECT, body)
    tx = FakeTx(answers=[[{"texts": '{"welcome": "Hi", "farewell": "Bye"}'}], 1])
    await projects.update(tx, PROJECT, ProjectBody(welcome="Hello, {{ first_name }}"))

    assert '"farewell":"Bye"' in tx.statements[-1][1]["texts"]
    assert "Hello" in tx.statements[-1][1]["texts"]


async def test_a_key_is_shown_once_and_only_a_project_that_is_there_has_one() -> None:
    project = SHOP
    tx = FakeTx(answers=[[project]])
    key, secret = await Projects(FakeDatabase(), FakeClock()).add_key(tx, PROJECT, "site")

    assert secret.startswith(key.prefix)
    assert secret not in str(tx.rows["core_api_keys"])
    with pytest.raises(NotFound):
        await Projects(FakeDatabase(), FakeClock()).add_key(FakeTx(answers=[[]]), "prj_9", "site")


# ---- metrics ------------------------------------------------------------------------------------


def metrics_of(lanes: list[dict[str, Any]]) -> Metrics:
    async def count_jobs(_tx: Tx, _now_ms: int) -> Any:
        return lanes

    async def count_runners(_tx: Tx, _now_ms: int) -> int:
        return 2

    async def no_redis() -> str | None:
        return None

    database = DatabaseMetrics(
        db=FakeDatabase(),
        clock=FakeClock(),
        count_jobs=count_jobs,
        count_runners=count_runners,
        lane_prefixes=lambda: ["default", "channel"],
        check_redis=no_redis,
    )
    return Metrics(channels=["messenger_a"], database=database, dialect="sqlite")


async def test_projects_own_channels_share_one_label() -> None:
    metrics = metrics_of([])
    metrics.count_deliveries(2, "messenger_a", "sent")
    for bot in ("chn_1", "chn_2"):
        metrics.count_deliveries(1, bot, "failed", "chat_not_found")
    text = (await metrics.scrape())[0].decode()
    lines = [line for line in text.splitlines() if line.startswith("msgsvc_deliveries_total")]

    assert len(lines) == 2
    assert any('channel="messenger_a"' in line and line.endswith(" 2.0") for line in lines)
    assert any('reason="chat_not_found"' in line and line.endswith(" 2.0") for line in lines)


async def test_lanes_are_counted_by_their_prefix_and_shown_empty_too() -> None:
    metrics = metrics_of(
        [
            {"lane": f"channel:{bot}", "state": "ready", "count": 2, "oldest_ms": NOW_MS - 5000}
            for bot in ("a", "b")
        ]
    )
    await metrics.scrape()

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert sample("msgsvc_jobs", lane="channel", state="ready") == 4
    assert sample("msgsvc_jobs", lane="default", state="dead") == 0
    assert sample("msgsvc_jobs_oldest_due_age_seconds", lane="channel") == 5
    assert sample("msgsvc_job_runners") == 2


async def test_two_services_count_apart() -> None:
    one, other = metrics_of([]), metrics_of([])
    one.count_events([("auth.completed", "messenger_a"), ("channel.stopped", "")])
    await other.scrape()

    labels = b'event="auth.completed"'
    assert [labels in (await each.scrape())[0] for each in (one, other)] == [True, False]
