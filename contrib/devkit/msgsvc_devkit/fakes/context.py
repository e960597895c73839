"""A `PluginContext` of connected fakes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from msgsvc_core.channels import ChannelContext, ChannelKind
from msgsvc_core.config.settings import Section
from msgsvc_core.limits import Limiter
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.plugins.context import Peers, PluginContext
from msgsvc_core.plugins.loading import package
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.accounts import FakeAccounts
from msgsvc_devkit.fakes.billing import FakeBilling
from msgsvc_devkit.fakes.channels import FakeChannels, fake_settings, find_nothing
from msgsvc_devkit.fakes.contacts import FakeContacts
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.events import FakeEvents
from msgsvc_devkit.fakes.files import FakeFiles
from msgsvc_devkit.fakes.jobs import FakeJobQueue, FakeOutbox
from msgsvc_devkit.fakes.mailings import FakeMailings
from msgsvc_devkit.fakes.media import FakeMedia
from msgsvc_devkit.fakes.members import FakeMembers
from msgsvc_devkit.fakes.messages import FakeMessages, FakeTemplates
from msgsvc_devkit.fakes.projects import FakeProjects
from msgsvc_devkit.fakes.routing import FakeRouteChooser, FakeRoutes
from msgsvc_devkit.fakes.secrets import fake_secrets, fake_texts
from msgsvc_devkit.fakes.sign_ins import FakeSignIns
from msgsvc_devkit.fakes.subscribers import FakePermissions, FakeSubscribers, FakeTags
from msgsvc_devkit.fakes.telemetry import fake_metrics
from msgsvc_devkit.fakes.tickets import FakeTicketDesk


@dataclass(frozen=True, slots=True, kw_only=True)
class FakePeers(Peers):
    """No other plugins: calls to them are recorded."""

    tickets: FakeTicketDesk
    accounts: FakeAccounts
    sign_ins: FakeSignIns


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeContext(PluginContext):
    """A `PluginContext` of fakes, with their own types: `core.outbox.texts` are the texts that bots sent."""

    clock: FakeClock
    db: FakeDatabase
    limiter: Limiter
    jobs: FakeJobQueue
    events: FakeEvents
    billing: FakeBilling
    projects: FakeProjects
    channels: FakeChannels
    outbox: FakeOutbox
    files: FakeFiles
    subscribers: FakeSubscribers
    contacts: FakeContacts
    tags: FakeTags
    permissions: FakePermissions
    members: FakeMembers
    messages: FakeMessages
    templates: FakeTemplates
    routes: FakeRoutes
    mailings: FakeMailings
    peers: FakePeers
    media: Callable[[], FakeMedia]


def plugin_context(
    *,
    plugin: object = None,
    settings: Iterable[Section] = (),
    kinds: Iterable[ChannelKind] = (),
    **overrides: Any,
) -> FakeContext:
    """A context to build a plugin's objects in a test.

        from msgsvc_otp import plugin

        core = plugin_context(plugin=plugin, settings=[OtpSettings(length=4)])
        core.subscribers.person("sub_1", lang="ru")

    `plugin` is the module of the entry point: it declares events and texts (hooks `register_events`,
    `register_locale`) in addition to the core's. `settings` are sections of the configuration, `kinds`
    channel kinds besides `recording`. `overrides` replace fields of the context, by name; the fakes use a
    given `clock` and `config`, while other overrides are not passed to them.
    """
    clock = overrides.pop("clock", None) or FakeClock()
    config = overrides.pop("config", None) or fake_settings()
    texts, secrets = fake_texts(*_locales(plugin)), fake_secrets()
    events = FakeEvents(getattr(plugin, "register_events", list)(), clock=clock)
    jobs, outbox = FakeJobQueue(clock), FakeOutbox(secrets)
    billing, projects = FakeBilling(), FakeProjects(clock=clock)
    channels = FakeChannels(config, kinds=kinds, clock=clock)
    tags, permissions = FakeTags(clock=clock), FakePermissions(clock=clock, events=events)
    subscribers = FakeSubscribers(
        clock=clock,
        events=events,
        channels=channels,
        tags=tags,
        permissions=permissions,
        greetings=Greetings(texts=texts, outbox=outbox, projects=projects),
    )
    files = FakeFiles(clock=clock)
    members = FakeMembers(clock=clock, subscribers=subscribers, projects=projects)
    templates = FakeTemplates(clock=clock, channels=channels)
    media = FakeMedia(clock=clock, files=files)
    routes = FakeRoutes(
        clock=clock,
        channels=channels,
        chooser=FakeRouteChooser(
            clock=clock, channels=channels, subscribers=subscribers, permissions=permissions
        ),
    )
    made = FakeContext(
        clock=clock,
        db=FakeDatabase(),
        config=config,
        secrets=secrets,
        limiter=MemoryLimiter(clock),
        texts=texts,
        metrics=fake_metrics(),
        jobs=jobs,
        events=events,
        billing=billing,
        projects=projects,
        channels=channels,
        outbox=outbox,
        files=files,
        subscribers=subscribers,
        contacts=FakeContacts(clock=clock, subscribers=subscribers),
        tags=tags,
        permissions=permissions,
        members=members,
        messages=FakeMessages(
            clock=clock,
            jobs=jobs,
            events=events,
            billing=billing,
            channels=channels,
            subscribers=subscribers,
            templates=templates,
            routes=routes,
        ),
        templates=templates,
        routes=routes,
        mailings=FakeMailings(
            routes=routes,
            clock=clock,
            jobs=jobs,
            billing=billing,
            channels=channels,
            templates=templates,
            subscribers=subscribers,
        ),
        peers=FakePeers(
            tickets=FakeTicketDesk(),
            accounts=FakeAccounts(clock=clock, projects=projects),
            sign_ins=FakeSignIns(clock=clock),
            areas=list,
            endpoints=list,
        ),
        media=lambda: media,
        sections={type(section).__name__: section for section in settings},
    )
    return replace(made, **overrides)


def channel_context(**overrides: Any) -> ChannelContext:
    """A context to build a channel in a test; `overrides` replace its fields, by name."""
    clock = overrides.get("clock") or FakeClock()
    files = FakeFiles(clock=clock)
    media = FakeMedia(clock=clock, files=files)
    made = ChannelContext(
        clock=clock,
        db=FakeDatabase(),
        secrets=fake_secrets(),
        base_url="http://msgsvc.test",
        media=lambda: media,
        is_own_address=files.is_own_address,
        provided=find_nothing,
    )
    return replace(made, **overrides)


def _locales(plugin: object) -> list[tuple[str, Any]]:
    folder = getattr(plugin, "register_locale", None)
    return [] if folder is None else [(package(plugin), folder())]
