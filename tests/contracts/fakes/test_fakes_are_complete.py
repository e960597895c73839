"""Every port has a fake, and every fake answers each question of its port itself."""

import inspect
from dataclasses import fields
from typing import Any

import pytest

from msgsvc_core.channels import ChannelContext
from msgsvc_core.messages.edits import MessageChanges
from msgsvc_core.plugins.context import Peers, PluginContext
from msgsvc_devkit import channel_context, plugin_context
from msgsvc_devkit.fakes import FakeContext, FakeDatabase, FakeMedia, FakePeers
from msgsvc_devkit.fakes.messages import FakeMessageChanges

#: What is no object with state behind a database: the real one is given.
REAL = {
    *("clock", "config", "secrets", "limiter", "texts", "metrics", "sections", "media"),
    *("areas", "endpoints"),
}

#: Holds what plugins ask of each other: its fields are looked at one by one.
PEERS = "peers"

#: Methods that the fakes inherit, for they only call what is faked. Tests beside this one run them.
INHERITED = {
    "FakeAccounts": {"find"},
    "FakeBilling": {"charge", "check", "quote", "plan_of", "plan_of_account", "check_export"},
    "FakeChannels": {"get_bot", "borrow", "receive", "apply_health"},
    "FakeContacts": {"find", "record_address"},
    "FakeEvents": {"emit"},
    "FakeMailings": {
        "start",
        "samples",
        "message_for",
        "count",
        "cost",
        "break_down",
        "pause",
        "continue_shard",
        "must_yield",
    },
    "FakeMessages": {"send", "queue", "add", "judge"},
    "FakePermissions": {"exists"},
    "FakeSubscribers": {
        "add",
        "ensure",
        "add_tag",
        "remove_tag",
        "set_permission",
        "get_by_identifier",
        "get_recipient",
        "list_recipients",
        "list_recipients_of",
    },
    "FakeTags": {"create", "ensure", "add"},
    "FakeTemplates": {"render", "content_of", "preview"},
    "FakeTicketDesk": {"open", "forget_source"},
}


def ports() -> dict[str, Any]:
    """The fakes, by the field of `PluginContext`."""
    core = plugin_context()
    names = {field.name for field in fields(PluginContext)} - REAL - {PEERS}
    peers = {field.name for field in fields(Peers)} - REAL
    return {name: getattr(core, name) for name in sorted(names)} | {
        name: getattr(core.peers, name) for name in sorted(peers)
    }


@pytest.mark.parametrize("name", ports())
def test_every_port_of_plugins_has_a_fake(name: str) -> None:
    fake = ports()[name]
    of, of_fakes = (Peers, FakePeers) if hasattr(Peers, name) else (PluginContext, FakeContext)

    assert type(fake).__name__.startswith("Fake")
    assert isinstance(fake, inspect.get_annotations(of)[name])
    assert isinstance(fake, inspect.get_annotations(of_fakes)[name])


@pytest.mark.parametrize("fake", [*map(type, ports().values()), FakeMessageChanges])
def test_a_fake_answers_everything_that_its_port_does(fake: type) -> None:
    """A method of a port that is added or renamed gets a fake, or is found here."""
    real = MessageChanges if fake is FakeMessageChanges else fake.__mro__[1]
    questions = {
        name
        for name, member in vars(real).items()
        if not name.startswith("_") and _is_async(inspect.unwrap(member))
    }
    asked = INHERITED.get(fake.__name__, set())

    assert questions - vars(fake).keys() == asked


def _is_async(member: object) -> bool:
    return inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)


def test_a_channel_is_given_fakes_too() -> None:
    """mypy holds the types of both contexts."""
    channel = channel_context()

    assert {field.name for field in fields(ChannelContext)} == {
        *("clock", "db", "secrets", "base_url", "media", "is_own_address", "provided"),
        "last_update_ms",
    }
    assert isinstance(channel.db, FakeDatabase)
    assert isinstance(channel.media(), FakeMedia)


def test_an_override_takes_the_place_of_a_fake() -> None:
    core, other = plugin_context(), plugin_context()

    assert plugin_context(outbox=core.outbox).outbox is core.outbox
    assert other.outbox is not core.outbox
    with pytest.raises(TypeError):
        plugin_context(unknown=1)
