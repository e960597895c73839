"""The part of subscribers: who may be written to, what they agreed to, and what they tell a bot."""

from collections.abc import Sequence
from typing import Any

from pluggy import HookRelay

from msgsvc_core.api.exports import Exports
from msgsvc_core.channels import Channels
from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.events import Events, EventSpec
from msgsvc_core.events.tracked import TrackedEvents
from msgsvc_core.jobs import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.parts import Built, Declarations, Part
from msgsvc_core.projects import Projects
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers import routes
from msgsvc_core.subscribers.bulk_actions import BulkActions
from msgsvc_core.subscribers.bulk_actions.routes import router as bulk_actions_router
from msgsvc_core.subscribers.consent import Consents
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.contacts.service import SEALED as CONTACTS
from msgsvc_core.subscribers.conversation import Conversation
from msgsvc_core.subscribers.erasure import SubscriberErasure
from msgsvc_core.subscribers.export_routes import router as export_router
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.models import ImportFinished
from msgsvc_core.subscribers.imports.routes import router as imports_router
from msgsvc_core.subscribers.imports.rows import RowImporter
from msgsvc_core.subscribers.imports.service import FINISHED, NOTES, SLICES, retention_rule
from msgsvc_core.subscribers.languages import LanguageMapping
from msgsvc_core.subscribers.leaving_routes import router as leaving_router
from msgsvc_core.subscribers.links import RETENTION as LINKS
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.mini_app import MiniAppSubscribing
from msgsvc_core.subscribers.models import (
    PermissionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
)
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.people.routes import router as people_router
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.permissions.routes import router as permissions_router
from msgsvc_core.subscribers.personal_data import PersonalDataExport
from msgsvc_core.subscribers.personal_data.declarations import PERSONAL_DATA
from msgsvc_core.subscribers.personal_data.routes import router as personal_data_router
from msgsvc_core.subscribers.phones import PlatformPhones
from msgsvc_core.subscribers.preferences.pages import PreferencesPages
from msgsvc_core.subscribers.preferences.service import Preferences
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.subscribing import Subscribing
from msgsvc_core.subscribers.tags import Tags
from msgsvc_core.subscribers.tags.routes import router as tags_router

EVENTS = (
    EventSpec(
        "subscription.created",
        "A user subscribed, in any way, or resubscribed.",
        SubscriptionCreated,
        group="people",
        title=lambda _, _data: _.pgettext("event", "Subscribed"),
    ),
    EventSpec(
        "subscription.deleted",
        "A user unsubscribed, blocked the bot or deleted their account.",
        SubscriptionDeleted,
        group="people",
        title=lambda _, _data: _.pgettext("event", "Unsubscribed"),
    ),
    EventSpec(
        "subscription.permission_changed",
        "A permission was granted or revoked, by the user or through the API.",
        PermissionChanged,
        group="people",
        title=lambda _, data: (
            _("Granted a permission") if data.get("granted") else _("Revoked a permission")
        ),
    ),
    EventSpec(
        FINISHED,
        "An import of people ended, whether completed, cancelled or failed; also one that was only tried.",
        ImportFinished,
        of_subscriber=False,
        group="people",
    ),
)


def _subscribing(
    *,
    clock: Clock,
    jobs: JobQueue,
    secrets: SecretBox,
    texts: Texts,
    events: Events,
    settings: Settings,
    hook: HookRelay,
    projects: Projects,
    channels: Channels,
    outbox: BotOutbox,
) -> Built:
    limits = settings.limits
    tags = Tags(clock=clock, jobs=jobs, max_tags=limits.tags, on_added=in_order(hook.on_tags_added))
    permissions = Permissions(clock=clock, events=events, max_permissions=limits.permissions)
    greetings = Greetings(texts=texts, outbox=outbox, projects=projects)
    subscribing = Subscribing(
        clock=clock,
        texts=texts,
        events=events,
        channels=channels,
        tags=tags,
        permissions=permissions,
        greetings=greetings,
        preferences=PreferencesLinks(
            clock=clock,
            secrets=secrets,
            base_url=settings.base_url,
            days=limits.preferences_days,
        ),
    )
    return Built(provides=[tags, permissions, greetings, subscribing], jobs=lambda: [tags.spec])


def _subscribers(
    *,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    events: Events,
    settings: Settings,
    declared: Declarations,
    channels: Channels,
    shelf: Shelf,
    tags: Tags,
    permissions: Permissions,
    subscribing: Subscribing,
) -> Built:
    erasure = SubscriberErasure(
        clock=clock,
        jobs=jobs,
        events=events,
        erasers=declared.erasers,
        erase_unreadable=shelf.erase,
    )
    subscribers = Subscribers(
        db=db,
        events=events,
        channels=channels,
        tags=tags,
        permissions=permissions,
        subscribing=subscribing,
        erasure=erasure,
        attributes_bytes=settings.limits.attributes_bytes,
    )
    languages = LanguageMapping(languages=settings.languages)
    tracked = TrackedEvents(
        events=events,
        find_subscriber=subscribers.get_by_identifier,
        max_bytes=settings.limits.event_properties_bytes,
    )
    return Built(
        provides=[erasure, subscribers, tracked], jobs=lambda: [erasure.spec, languages.spec]
    )


def _channels(
    *,
    clock: Clock,
    db: Database,
    secrets: SecretBox,
    texts: Texts,
    settings: Settings,
    channels: Channels,
    sync: ChannelSync,
    states: ChannelStates,
    pages: ButtonPages,
    subscribers: Subscribers,
) -> Built:
    """What of channels asks about subscribers."""
    own_channels = ProjectChannels(
        clock=clock,
        db=db,
        secrets=secrets,
        channels=channels,
        sync=sync,
        states=states,
        has_subscribers=subscribers.has_bot,
        settings=settings,
    )
    sender = ChannelSender(
        db=db,
        clock=clock,
        secrets=secrets,
        texts=texts,
        pages=pages,
        on_moved=subscribers.move_chat,
        language_of=subscribers.language_of,
    )
    return Built(provides=[own_channels, sender])


def _people(
    *,
    clock: Clock,
    secrets: SecretBox,
    settings: Settings,
    declared: Declarations,
    channels: Channels,
    subscribers: Subscribers,
) -> Built:
    contacts = VerifiedContacts(
        clock=clock,
        secrets=secrets,
        channels=channels,
        default_country=settings.default_country,
    )
    people = People(subscribers=subscribers, contacts=contacts, on_merged=declared.on_merged)
    personal_data = PersonalDataExport(
        clock=clock,
        subscribers=subscribers,
        people=people,
        contacts=contacts,
        declared=declared.personal_data,
    )
    phones = PlatformPhones(subscribers=subscribers, contacts=contacts)
    return Built(provides=[contacts, people, personal_data, phones])


def _many(
    *,
    clock: Clock,
    jobs: JobQueue,
    events: Events,
    secrets: SecretBox,
    settings: Settings,
    channels: Channels,
    subscribers: Subscribers,
    subscribing: Subscribing,
    tags: Tags,
) -> Built:
    """What changes or reads many subscribers at once."""
    limits = settings.limits
    bulk_actions = BulkActions(
        clock=clock,
        jobs=jobs,
        events=events,
        subscribers=subscribers,
        tags=tags,
        most=limits.bulk_action_subscribers,
    )
    imports = PeopleImports(
        clock=clock,
        jobs=jobs,
        events=events,
        secrets=secrets,
        rows=RowImporter(
            channels=channels, subscribers=subscribers, subscribing=subscribing, tags=tags
        ),
        most_rows=limits.import_rows,
        most_bytes=limits.import_bytes,
    )
    exports = Exports(
        per_project=limits.exports_per_project, per_process=limits.exports_per_process
    )
    return Built(
        provides=[bulk_actions, imports, exports],
        jobs=lambda: [bulk_actions.spec, imports.spec],
    )


def _conversation(
    *,
    clock: Clock,
    secrets: SecretBox,
    texts: Texts,
    settings: Settings,
    projects: Projects,
    channels: Channels,
    outbox: BotOutbox,
    commands: CommandCatalogue,
    subscribers: Subscribers,
    tags: Tags,
    permissions: Permissions,
    greetings: Greetings,
) -> Built:
    limits = settings.limits
    consents = Consents(
        clock=clock,
        secrets=secrets,
        texts=texts,
        projects=projects,
        channels=channels,
        outbox=outbox,
        personal_link_s=limits.personal_link_s,
    )
    links = SubscriptionLinks(
        clock=clock,
        projects=projects,
        subscribers=subscribers,
        tags=tags,
        permissions=permissions,
        consents=consents,
        personal_link_s=limits.personal_link_s,
    )
    mini_apps = MiniAppSubscribing(
        clock=clock,
        channels=channels,
        subscribers=subscribers,
        tags=tags,
        max_age_hours=limits.mini_app_hours,
    )
    conversation = Conversation(
        clock=clock,
        texts=texts,
        projects=projects,
        subscribers=subscribers,
        permissions=permissions,
        greetings=greetings,
        commands=commands.listed,
    )
    return Built(
        provides=[consents, links, mini_apps],
        inbound=lambda: [*conversation.rules(), *links.rules(), *consents.rules()],
    )


def _pages(
    *,
    db: Database,
    texts: Texts,
    settings: Settings,
    projects: Projects,
    channels: Channels,
    subscribers: Subscribers,
    permissions: Permissions,
) -> Sequence[Any]:
    preferences = Preferences(
        links=subscribers.preferences,
        projects=projects,
        subscribers=subscribers,
        permissions=permissions,
        channels=channels,
        languages=settings.languages,
    )
    return PreferencesPages(db=db, texts=texts, preferences=preferences).routes()


PART = Part(
    build=[_subscribing, _subscribers, _channels, _people, _many, _conversation],
    endpoints=[
        *routes.router.endpoints,
        *tags_router.endpoints,
        *routes.tags_router.endpoints,
        *permissions_router.endpoints,
        *routes.permissions_router.endpoints,
        *leaving_router.endpoints,
        *export_router.endpoints,
        *people_router.endpoints,
        *imports_router.endpoints,
        *personal_data_router.endpoints,
        *bulk_actions_router.endpoints,
    ],
    events=EVENTS,
    sealed=[CONTACTS, SLICES, NOTES],
    personal_data=PERSONAL_DATA,
    retention=lambda limits: [LINKS, retention_rule(import_days=limits.import_days)],
    pages=[_pages],
)
