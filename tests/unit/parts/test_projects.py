"""Projects, their keys and what is counted of a service."""

import pytest

from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.kernel.errors import InvalidApiKey, NotFound, ValidationFailed
from msgsvc_core.projects.models import EXPIRES_SOON_MS, ApiKey, ListedKey, UpdateProjectBody
from msgsvc_core.projects.service import KNOWN_FOR_MS, Projects
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import PROJECT, MemoryCore
from tests.unit.parts.rows import NOW_MS


async def create_key(core: MemoryCore, expires_in_ms: int | None = None) -> str:
    """The secret of a new key."""
    ends_ms = None if expires_in_ms is None else core.clock.now_ms() + expires_in_ms
    _, secret = await core.projects.create_key(PROJECT, "site", expires_at_ms=ends_ms)
    return secret


async def last_use_ms(core: MemoryCore) -> int | None:
    """When the only key was last used, in Unix milliseconds."""
    await core.projects.key_uses.write()
    [key] = await core.projects.list_keys(PROJECT)
    return key.last_used_at_ms


async def test_a_key_is_looked_for_once_a_second(core: MemoryCore) -> None:
    secret = await create_key(core)
    await core.projects.authenticate(secret)
    in_another_process = Projects(core.db, core.clock)
    await in_another_process.set_active(PROJECT, active=False)
    statuses = []
    for waits_s in (0, KNOWN_FOR_MS / 1000 - 0.001, 0.001):
        core.clock.advance(waits_s)
        project, _ = await core.projects.authenticate(secret)
        statuses.append(project.status)

    assert statuses == ["active", "active", "disabled"]


async def test_a_key_that_is_revoked_here_is_not_known_any_more(core: MemoryCore) -> None:
    key, secret = await core.projects.create_key(PROJECT, "site")
    await core.projects.authenticate(secret)
    await core.projects.revoke_key(PROJECT, key.key_id)

    with pytest.raises(InvalidApiKey):
        await core.projects.authenticate(secret)


async def test_a_key_that_is_known_is_refused_from_its_expiry_on(core: MemoryCore) -> None:
    secret = await create_key(core, KNOWN_FOR_MS // 2)
    await core.projects.authenticate(secret)
    core.clock.advance(KNOWN_FOR_MS / 2000 - 0.001)
    await core.projects.authenticate(secret)
    core.clock.advance(0.001)

    with pytest.raises(InvalidApiKey, match="expired at 2026-"):
        await core.projects.authenticate(secret)


async def test_an_expired_key_leaves_no_use(core: MemoryCore) -> None:
    secret = await create_key(core, 1000)
    core.clock.advance(1)
    with pytest.raises(InvalidApiKey):
        await core.projects.authenticate(secret)

    assert await last_use_ms(core) is None


async def test_a_new_key_expires_in_the_future_or_never(core: MemoryCore) -> None:
    for ahead_ms in (0, -1):
        with pytest.raises(ValidationFailed, match="expires_at: must be in the future"):
            await create_key(core, ahead_ms)


def test_a_key_is_pointed_out_in_the_two_weeks_before_it_expires() -> None:
    def listed(expires_at_ms: int | None, revoked_at_ms: int | None = None) -> ListedKey:
        key = ApiKey("key_1", PROJECT, "site", "msk_1", ("*",), expires_at_ms)
        return ListedKey(key, NOW_MS, None, revoked_at_ms)

    ends = NOW_MS + EXPIRES_SOON_MS
    soon = [listed(at).expires_soon(NOW_MS) for at in (None, ends + 1, ends, NOW_MS + 1, NOW_MS)]

    assert soon == [False, False, True, True, False]
    assert not listed(ends, revoked_at_ms=NOW_MS).expires_soon(NOW_MS)


async def test_what_has_not_the_shape_of_a_key_costs_the_database_nothing() -> None:
    not_connected = Database("sqlite:////nowhere/msgsvc.db")

    with pytest.raises(InvalidApiKey):
        await Projects(not_connected, FakeClock()).authenticate("msk_short")


@pytest.mark.parametrize("is_active", [True, False])
async def test_the_use_of_a_key_is_noted_unless_its_project_is_disabled(
    core: MemoryCore, is_active: bool
) -> None:
    secret = await create_key(core)
    await core.projects.set_active(PROJECT, active=is_active)
    await core.projects.authenticate(secret)

    assert await last_use_ms(core) == (core.clock.now_ms() if is_active else None)


@pytest.mark.parametrize("name", ["", " Shop", "Sh\nop", "x" * 65, "Shop\u202e", "\u200b"])
async def test_a_name_that_could_say_something_else_in_a_message_is_refused(
    core: MemoryCore, name: str
) -> None:
    with pytest.raises(ValidationFailed, match="name"):
        await core.projects.create(name)
    with pytest.raises(ValidationFailed, match="name"):
        await core.projects.create_key(PROJECT, name)


async def test_a_text_names_what_can_be_filled_in_and_the_others_stay(
    core: MemoryCore, tx: Tx
) -> None:
    await core.projects.update(tx, PROJECT, UpdateProjectBody(welcome="Hi", farewell="Bye"))
    with pytest.raises(ValidationFailed, match=r"welcome\.ru: there is no 'surname'"):
        body = UpdateProjectBody(welcome={"en": "Hi", "ru": "Привет, {{ surname }}"})
        await core.projects.update(tx, PROJECT, body)
    await core.projects.update(tx, PROJECT, UpdateProjectBody(welcome="Hello, {{ first_name }}"))

    texts = await core.projects.texts(tx, PROJECT)
    assert (texts.welcome, texts.farewell) == ("Hello, {{ first_name }}", "Bye")


async def test_a_key_is_shown_once_and_only_a_project_that_is_there_has_one(
    core: MemoryCore, tx: Tx
) -> None:
    key, secret = await core.projects.add_key(tx, PROJECT, "site")

    assert secret.startswith(key.prefix)
    rows = await tx.fetch_all("SELECT * FROM core_api_keys")
    assert secret not in str([dict(row) for row in rows])
    with pytest.raises(NotFound):
        await core.projects.add_key(tx, "prj_9", "site")


# ---- metrics ------------------------------------------------------------------------------------


async def test_projects_own_channels_share_one_label(core: MemoryCore) -> None:
    core.metrics.count_deliveries(2, "messenger_a", "sent")
    for bot in ("chn_1", "chn_2"):
        core.metrics.count_deliveries(1, bot, "failed", "chat_not_found")
    text = (await core.metrics.scrape())[0].decode()
    lines = [line for line in text.splitlines() if line.startswith("msgsvc_deliveries_total")]

    assert len(lines) == 2
    assert any('channel="messenger_a"' in line and line.endswith(" 2.0") for line in lines)
    assert any('reason="chat_not_found"' in line and line.endswith(" 2.0") for line in lines)


async def test_lanes_are_counted_by_their_prefix_and_shown_empty_too(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        for bot in ("a", "a", "b", "b"):
            await core.jobs.enqueue(tx, NewJob("message.deliver", lane=f"channel:{bot}"))
        for name, leased_s in (("one", 30), ("other", 30), ("gone", 4)):
            lease = {"runner_id": name, "name": name, "leased_until_ms": NOW_MS + leased_s * 1000}
            await tx.insert("core_runners", lease)
    core.clock.advance(5)
    await core.metrics.scrape()

    def sample(name: str, **labels: str) -> float | None:
        return core.metrics.registry.get_sample_value(name, labels)

    assert sample("msgsvc_jobs", lane="channel", state="ready") == 4
    assert sample("msgsvc_jobs", lane="default", state="dead") == 0
    assert sample("msgsvc_jobs_oldest_due_age_seconds", lane="channel") == 5
    assert sample("msgsvc_job_runners") == 2
