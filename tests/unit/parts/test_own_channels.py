"""Channels that projects bring, and how processes keep up with them: rules built from fakes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.contract import BotProfile, Channel, ChannelHealth
from msgsvc_core.channels.kinds import ChannelKind, WrongSettings
from msgsvc_core.channels.project_channels.models import (
    CreateChannelBody,
    OwnChannel,
    UpdateChannelBody,
    row_of,
)
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.config.settings import Section
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.fakes import PROJECT, FakeChannels, FakeTx, fake_settings
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts import rows
from tests.unit.parts.outbound import states_of
from tests.unit.parts.rows import NOW_MS

KEY = "chn_1"


class FaxSettings(Section):
    """Of a kind whose bots have a token."""

    token: SecretStr
    lines: int = 1


class Fax(RecordingChannel):
    """A bot whose token is not taken any more."""

    async def check(self) -> ChannelHealth:
        return ChannelHealth(ok=False, detail="Unauthorized", revoked=True)


def create_fax(_context: object, identity: ChannelIdentity, _settings: Section) -> Channel:
    return Fax(identity)


FAX = ChannelKind("fax", FaxSettings, create_fax)


def row(core: FakeContext, options: Mapping[str, Any] | None = None, **fields: Any) -> OwnChannel:
    """The project's channel `support`, as it was made in revision 1."""
    sealed = core.secrets.encrypt(json.dumps(options or {"token": "t"}), row_of(KEY))
    made = OwnChannel(PROJECT, "support", KEY, "fax", sealed, 1, NOW_MS, NOW_MS)
    return replace(made, **fields)


def found(*channels: OwnChannel) -> Answer:
    found = [rows.row_of(channel) for channel in channels]
    return [{**values, "settings": values["sealed"]} for values in found]


def revision(number: int) -> Answer:
    return [{"revision": number}]


# ---- following ----------------------------------------------------------------------------------


class Registry:
    """Keeps which channels there are; a kind that is not `fax` can't be made."""

    def __init__(self) -> None:
        self.options: dict[str, Mapping[str, Any]] = {}
        self.broken: dict[str, str] = {}
        self.profiles: list[BotProfile] = []

    def register(
        self, identity: ChannelIdentity, kind_name: str, options: Mapping[str, Any]
    ) -> None:
        if kind_name == "pigeon":
            raise RuntimeError("it flew away")
        if kind_name != "fax":
            raise WrongSettings("there is no such kind", field="plugin")
        self.options[identity.key] = options

    def register_broken(self, identity: ChannelIdentity, why: str) -> None:
        self.broken[identity.key] = why

    def unregister(self, key: str) -> None:
        self.options.pop(key, None)

    def set_profile(self, key: str, settings_digest: str, profile: BotProfile) -> None:
        self.profiles.append(profile)


def sync_of(core: FakeContext, registry: Registry) -> ChannelSync:
    return ChannelSync(db=core.db, secrets=core.secrets, channels=registry, follow_s=1)


def ids(*keys: str) -> Answer:
    return [{"channel_id": key} for key in keys]


NO_BOTS: Answer = []


async def test_what_another_process_made_and_removed_is_followed() -> None:
    core, registry = plugin_context(), Registry()
    sync = sync_of(core, registry)
    core.db.answers += [revision(1), found(row(core)), ids(KEY), NO_BOTS]
    await sync.refresh()
    assert registry.options == {KEY: {"token": "t"}}
    # As long as the number does not grow, nothing else is asked.
    core.db.answers += [revision(1)]
    await sync.refresh()
    core.db.answers += [revision(2), [], ids(), NO_BOTS]
    await sync.refresh()

    assert registry.options == {}


async def test_an_older_row_does_not_take_the_place_of_a_newer_one() -> None:
    core, registry = plugin_context(), Registry()
    sync = sync_of(core, registry)
    sync.apply(row(core, {"token": "new"}, revision=3))
    sync.apply(row(core, {"token": "old"}, revision=2))
    assert registry.options[KEY] == {"token": "new"}
    sync.remove(KEY, 4)
    sync.apply(row(core, {"token": "late"}, revision=3))

    assert KEY not in registry.options
    assert not sync.has(row(core, revision=3))


async def test_what_was_made_here_a_moment_ago_is_not_taken_away_by_an_older_look() -> None:
    core, registry = plugin_context(), Registry()
    sync = sync_of(core, registry)
    sync.apply(row(core, revision=5))
    core.db.answers += [revision(4), [], ids(), NO_BOTS]
    await sync.refresh()

    assert KEY in registry.options


async def test_a_channel_that_cannot_be_made_is_broken_and_holds_up_no_other() -> None:
    core, registry = plugin_context(), Registry()
    sync = sync_of(core, registry)
    of_others = row(core, channel_id="chn_2")
    sync.apply(of_others)
    sync.apply(row(core, channel_id="chn_3", plugin="pigeon", sealed=sealed(core, "chn_3")))
    sync.apply(row(core, channel_id="chn_4", plugin="telex", sealed=sealed(core, "chn_4")))

    # Settings are bound to their channel: those of another are not to be read.
    assert set(registry.broken) == {"chn_2", "chn_3", "chn_4"}
    assert registry.broken["chn_3"] == "it can't be made: RuntimeError"
    assert "no such kind" in registry.broken["chn_4"]


def sealed(core: FakeContext, key: str) -> str:
    return core.secrets.encrypt('{"token": "t"}', row_of(key))


# ---- their rules --------------------------------------------------------------------------------


async def nobody_came(_tx: Tx, _project_id: str, _key: str) -> bool:
    return False


def own_channels_of(core: FakeContext, has_subscribers: Any = nobody_came) -> ProjectChannels:
    return ProjectChannels(
        clock=core.clock,
        db=core.db,
        secrets=core.secrets,
        channels=core.channels,
        sync=sync_of(core, Registry()),
        states=states_of(core),
        has_subscribers=has_subscribers,
        settings=fake_settings(own_channels={"per_project": 2}),
    )


@pytest.fixture
def core() -> FakeContext:
    """A service whose projects may have a fax."""
    return plugin_context(channels=FakeChannels(kinds=[FAX]))


def body(name: str = "support", plugin: str = "fax", **settings: Any) -> CreateChannelBody:
    return CreateChannelBody(name=name, plugin=plugin, settings=settings or {"token": "t"})


def count(number: int) -> Answer:
    return [{"count": number}]


async def test_a_token_is_kept_sealed_and_the_channel_works_after_the_commit(
    core: FakeContext,
) -> None:
    tx = FakeTx(answers=[count(0), [], revision(7), 1])
    made = await own_channels_of(core).create(tx, PROJECT, body(token="t-1234"))

    assert made.revision == 7
    assert "t-1234" not in tx.statements[-1][1]["sealed"]
    assert json.loads(core.secrets.decrypt(made.sealed, row_of(made.channel_id))) == {
        "token": "t-1234"
    }


@pytest.mark.parametrize(
    ("asked", "answers", "why"),
    [
        (body(), [count(2)], "at most 2 channels"),
        (body("messenger_a"), [count(0), []], "of the kind 'recording'"),
    ],
)
async def test_a_project_has_so_many_channels_and_none_in_the_name_of_another_kind(
    core: FakeContext, asked: CreateChannelBody, answers: list[Answer], why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        await own_channels_of(core).create(FakeTx(answers=answers), PROJECT, asked)


async def test_a_name_is_used_once_and_after_a_removal_for_the_same_people(
    core: FakeContext,
) -> None:
    own_channels = own_channels_of(core)
    with pytest.raises(Conflict, match="already"):
        tx = FakeTx(answers=[count(1), found(row(core))])
        await own_channels.create(tx, PROJECT, body())
    removed = found(row(core, removed_at_ms=NOW_MS))
    tx = FakeTx(answers=[count(0), removed, revision(9), 1])

    assert (await own_channels.create(tx, PROJECT, body())).channel_id == KEY


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (body(plugin="pigeon"), "plugin: no loaded plugin"),
        (body(lines=2), r"settings\.token"),
        (body(token="t", colour="red"), r"settings\.colour"),
    ],
)
async def test_settings_that_the_kind_does_not_take_are_refused_by_name(
    core: FakeContext, asked: CreateChannelBody, why: str
) -> None:
    with pytest.raises(ValidationFailed, match=why):
        await own_channels_of(core).create(FakeTx(), PROJECT, asked)


async def test_what_a_change_leaves_out_stays_and_null_is_the_default(core: FakeContext) -> None:
    before = row(core, {"token": "t", "lines": 3})
    tx = FakeTx(answers=[found(before), revision(2), 1, 0, 0])
    changed = await own_channels_of(core).update(
        tx, PROJECT, "support", UpdateChannelBody(settings={"lines": None})
    )

    assert json.loads(core.secrets.decrypt(changed.sealed, row_of(KEY))) == {"token": "t"}
    # The same bot: what is known of its platform's pause still holds.
    assert tx.statements[3][0].startswith("UPDATE core_channel_states SET status = 'working'")


async def test_of_another_bots_state_nothing_is_kept(core: FakeContext) -> None:
    tx = FakeTx(answers=[found(row(core)), revision(2), 1, 1])
    await own_channels_of(core).update(
        tx, PROJECT, "support", UpdateChannelBody(settings={"token": "other"})
    )

    assert tx.statements[3][0].startswith("DELETE FROM core_channel_states")


async def test_settings_that_no_key_reads_are_entered_anew(core: FakeContext) -> None:
    lost = found(row(core, sealed="unreadable"))
    with pytest.raises(ValidationFailed, match="token"):
        await own_channels_of(core).update(
            FakeTx(answers=[lost]), PROJECT, "support", UpdateChannelBody(settings={"lines": 2})
        )
    [shown] = await own_channels_of(core).answers(
        FakeTx(answers=[[], []]), [row(core, sealed="unreadable")]
    )

    assert (shown.status, shown.settings, shown.secrets) == ("broken", {}, [])


@pytest.mark.parametrize("people", [True, False])
async def test_a_channel_by_which_people_came_stays_as_a_name(
    core: FakeContext, people: bool
) -> None:
    async def came(_tx: Tx, _project_id: str, _key: str) -> bool:
        return people

    removal = [1] if people else [0, 0, 0, 1]
    tx = FakeTx(answers=[found(row(core)), *removal, 1, 1, 1, 1, revision(3)])
    await own_channels_of(core, came).delete(tx, PROJECT, "support")

    is_kept = "SET settings = ''" in tx.statements[1][0]
    assert is_kept is people


async def test_what_was_removed_is_not_found(core: FakeContext) -> None:
    tx = FakeTx(answers=[found(row(core, removed_at_ms=NOW_MS))])

    with pytest.raises(NotFound):
        await own_channels_of(core).get(tx, PROJECT, "support")


async def test_secrets_are_shown_by_name_beside_what_the_platform_says(core: FakeContext) -> None:
    stopped = {"status": "stopped", "detail": "Unauthorized", "channel": KEY}
    rest = dict.fromkeys(
        (
            "outage_since_ms",
            "outage_detail",
            "interrupted_since_ms",
            "interrupted_reason",
            "interrupted_detail",
        )
    )
    tx = FakeTx(answers=[[{**stopped, **rest}], []])
    [shown] = await own_channels_of(core).answers(tx, [row(core, {"token": "t", "lines": 2})])

    assert (shown.settings, shown.secrets) == ({"lines": 2}, ["token"])
    assert (shown.status, shown.detail) == ("stopped", "Unauthorized")


async def test_a_check_that_finds_a_revoked_token_stops_the_bot(core: FakeContext) -> None:
    core.channels.register(ChannelIdentity("support", KEY, PROJECT), "fax", {"token": "t"})
    core.db.answers += [found(row(core)), 1, []]
    health, reception = await own_channels_of(core).check(PROJECT, "support")

    assert (health.revoked, reception) == (True, None)
    assert core.events.names == ["channel.stopped"]
