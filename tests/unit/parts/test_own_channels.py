"""Channels that projects bring, and how processes keep up with them."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.contract import Channel, ChannelHealth
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.channels.project_channels.models import (
    CreateChannelBody,
    OwnChannel,
    UpdateChannelBody,
    row_of,
)
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.registry.broken import BrokenChannel
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from tests.unit.parts.channels import FaxPlugin, FaxSettings, another_process, put_state, the_fax
from tests.unit.parts.rows import NOW_MS

KEY = "chn_1"


class PigeonPlugin:
    """Registers the channel kind `pigeon`, of which none can be made."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def fly(_context: object, _identity: ChannelIdentity, _settings: FaxSettings) -> Channel:
            raise RuntimeError("it flew away")

        return [ChannelKind("pigeon", FaxSettings, fly)]


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    """A service whose projects may have two channels."""
    extra = [("fax", FaxPlugin()), ("pigeon", PigeonPlugin())]
    async with memory_core(extra_plugins=extra, own_channels={"per_project": 2}) as core:
        yield core


def row(core: MemoryCore, options: Mapping[str, Any] | None = None, **changes: Any) -> OwnChannel:
    """The project's channel `support`, as it was made in revision 1."""
    key = changes.get("channel_id", KEY)
    values = {
        "project_id": PROJECT,
        "name": "support",
        "channel_id": KEY,
        "plugin": "fax",
        "sealed": core.secrets.encrypt(json.dumps(options or {"token": "t"}), row_of(key)),
        "revision": 1,
        "created_at_ms": NOW_MS,
        "updated_at_ms": NOW_MS,
    }
    return OwnChannel(**{**values, **changes})


def body(name: str = "support", plugin: str = "fax", **settings: Any) -> CreateChannelBody:
    return CreateChannelBody(name=name, plugin=plugin, settings=settings or {"token": "t"})


async def made(core: MemoryCore, **settings: Any) -> OwnChannel:
    """The project's channel `support`, which works."""
    async with core.db.transaction() as tx:
        return await core.service.get(ProjectChannels).create(tx, PROJECT, body(**settings))


def options_of(core: MemoryCore, channel: OwnChannel) -> dict[str, Any]:
    """The settings that are stored."""
    sealed = core.secrets.decrypt(channel.sealed, row_of(channel.channel_id))
    found: dict[str, Any] = json.loads(sealed)
    return found


# ---- following ----------------------------------------------------------------------------------


async def test_what_another_process_made_and_removed_is_followed(core: MemoryCore) -> None:
    sync, other = core.service.get(ChannelSync), another_process(core)
    async with core.db.transaction() as tx:
        channel = await other.get(ProjectChannels).create(tx, PROJECT, body(token="t"))
    assert channel.channel_id not in core.channels
    await sync.refresh()
    assert the_fax(core, channel.channel_id).token == "t"
    async with core.db.transaction() as tx:
        await other.get(ProjectChannels).delete(tx, PROJECT, "support")
    await sync.refresh()

    assert channel.channel_id not in core.channels


async def test_nothing_is_read_as_long_as_the_revision_does_not_grow(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        channel = await another_process(core).get(ProjectChannels).create(tx, PROJECT, body())
    await core.service.get(ChannelSync).refresh()
    async with core.db.transaction() as tx:
        await tx.execute("DELETE FROM core_channels", {})
    await core.service.get(ChannelSync).refresh()

    assert channel.channel_id in core.channels


async def test_an_older_row_does_not_take_the_place_of_a_newer_one(core: MemoryCore) -> None:
    sync = core.service.get(ChannelSync)
    sync.apply(row(core, {"token": "new"}, revision=3))
    sync.apply(row(core, {"token": "old"}, revision=2))
    assert the_fax(core, KEY).token == "new"
    sync.remove(KEY, 4)
    sync.apply(row(core, {"token": "late"}, revision=3))

    assert KEY not in core.channels
    assert not sync.has(row(core, revision=3))


async def test_what_was_made_here_a_moment_ago_is_not_taken_away_by_an_older_look(
    core: MemoryCore,
) -> None:
    other = await made(core)
    # Committed after the look.
    core.service.get(ChannelSync).apply(row(core, name="sales", revision=other.revision + 1))
    await core.service.get(ChannelSync).refresh()

    assert KEY in core.channels


async def test_a_channel_that_cannot_be_made_is_broken_and_holds_up_no_other(
    core: MemoryCore,
) -> None:
    sync = core.service.get(ChannelSync)
    # Settings are bound to their channel: those of another are not to be read.
    sync.apply(row(core, channel_id="chn_2", sealed=row(core).sealed))
    sync.apply(row(core, name="sales", channel_id="chn_3", plugin="pigeon"))
    sync.apply(row(core, name="news", channel_id="chn_4", plugin="telex"))
    sync.apply(row(core, name="fax"))

    broken = {each.key: each.why for each in core.channels.own if isinstance(each, BrokenChannel)}
    assert set(broken) == {"chn_2", "chn_3", "chn_4"}
    assert broken["chn_3"] == "it can't be made: RuntimeError"
    assert "no loaded plugin" in broken["chn_4"]
    assert the_fax(core, KEY).token == "t"


# ---- their rules --------------------------------------------------------------------------------


async def test_a_token_is_kept_sealed_and_the_channel_works_after_the_commit(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        channel = await core.service.get(ProjectChannels).create(tx, PROJECT, body(token="t-1234"))
        assert channel.channel_id not in core.channels

    assert "t-1234" not in channel.sealed
    assert options_of(core, channel) == {"token": "t-1234"}
    assert the_fax(core, channel.channel_id).token == "t-1234"


async def test_a_project_has_so_many_channels(core: MemoryCore, tx: Tx) -> None:
    for name in ("support", "sales"):
        await core.service.get(ProjectChannels).create(tx, PROJECT, body(name))

    with pytest.raises(Conflict, match="at most 2 channels"):
        await core.service.get(ProjectChannels).create(tx, PROJECT, body("news"))


async def test_a_project_has_no_channel_in_the_name_of_another_kind(
    core: MemoryCore, tx: Tx
) -> None:
    with pytest.raises(Conflict, match="of the kind 'recording'"):
        await core.service.get(ProjectChannels).create(tx, PROJECT, body("messenger_a"))


async def test_a_name_is_used_once(core: MemoryCore, tx: Tx) -> None:
    await core.service.get(ProjectChannels).create(tx, PROJECT, body())

    with pytest.raises(Conflict, match="already"):
        await core.service.get(ProjectChannels).create(tx, PROJECT, body())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (body(plugin="telex"), "plugin: no loaded plugin"),
        (body(lines=2), r"settings\.token"),
        (body(token="t", colour="red"), r"settings\.colour"),
    ],
)
async def test_settings_that_the_kind_does_not_take_are_refused_by_name(
    core: MemoryCore, tx: Tx, asked: CreateChannelBody, why: str
) -> None:
    with pytest.raises(ValidationFailed, match=why):
        await core.service.get(ProjectChannels).create(tx, PROJECT, asked)


async def test_what_a_change_leaves_out_stays_and_null_is_the_default(
    core: MemoryCore, tx: Tx
) -> None:
    channel = await core.service.get(ProjectChannels).create(tx, PROJECT, body(token="t", lines=3))
    await put_state(tx, channel.channel_id, status="stopped", paused_until_ms=NOW_MS + 1)
    changed = await core.service.get(ProjectChannels).update(
        tx, PROJECT, "support", UpdateChannelBody(settings={"lines": None})
    )

    assert options_of(core, changed) == {"token": "t"}
    # The same bot: what is known of its platform's pause still holds.
    state = await core.service.get(ChannelStates).find(tx, channel.channel_id)
    assert state is not None
    assert (state.status, state.paused_until_ms) == ("working", NOW_MS + 1)


async def test_of_another_bots_state_nothing_is_kept(core: MemoryCore, tx: Tx) -> None:
    channel = await core.service.get(ProjectChannels).create(tx, PROJECT, body())
    await put_state(tx, channel.channel_id, paused_until_ms=NOW_MS + 1)
    await core.service.get(ProjectChannels).update(
        tx, PROJECT, "support", UpdateChannelBody(settings={"token": "other"})
    )

    assert await core.service.get(ChannelStates).find(tx, channel.channel_id) is None


async def test_settings_that_no_key_reads_are_entered_anew(core: MemoryCore, tx: Tx) -> None:
    own_channels = core.service.get(ProjectChannels)
    await own_channels.create(tx, PROJECT, body())
    await tx.execute("UPDATE core_channels SET settings = 'unreadable'", {})
    with pytest.raises(ValidationFailed, match="token"):
        await own_channels.update(tx, PROJECT, "support", UpdateChannelBody(settings={"lines": 2}))
    [shown] = await own_channels.answers(tx, [await own_channels.get(tx, PROJECT, "support")])

    assert (shown.status, shown.settings, shown.secrets) == ("broken", {}, [])


@pytest.mark.parametrize("people", [True, False])
async def test_a_channel_by_which_people_came_stays_as_a_name(
    core: MemoryCore, tx: Tx, people: bool
) -> None:
    own_channels = core.service.get(ProjectChannels)
    channel = await own_channels.create(tx, PROJECT, body())
    if people:
        await core.person(tx, channel="support", bot=channel.channel_id)
    await own_channels.delete(tx, PROJECT, "support")
    kept = await tx.fetch_all("SELECT settings FROM core_channels", {})

    assert [each["settings"] for each in kept] == ([""] if people else [])
    with pytest.raises(NotFound):
        await own_channels.get(tx, PROJECT, "support")
    # Of the same people, if there are any.
    again = await own_channels.create(tx, PROJECT, body())
    assert (again.channel_id == channel.channel_id) is people


async def test_secrets_are_shown_by_name_beside_what_the_platform_says(
    core: MemoryCore, tx: Tx
) -> None:
    channel = await core.service.get(ProjectChannels).create(tx, PROJECT, body(token="t", lines=2))
    await put_state(tx, channel.channel_id, status="stopped", detail="Unauthorized")
    [shown] = await core.service.get(ProjectChannels).answers(tx, [channel])

    assert (shown.settings, shown.secrets) == ({"lines": 2}, ["token"])
    assert (shown.status, shown.detail) == ("stopped", "Unauthorized")


async def test_a_check_that_finds_a_revoked_token_stops_the_bot(core: MemoryCore) -> None:
    channel = await made(core)
    revoked = ChannelHealth(ok=False, detail="Unauthorized", revoked=True)
    the_fax(core, channel.channel_id).health = revoked
    health, reception = await core.service.get(ProjectChannels).check(PROJECT, "support")

    assert (health.revoked, reception) == (True, None)
    assert core.event_names == ["channel.stopped"]
