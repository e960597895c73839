"""SQL belongs to the package that owns the table: a search of all strings for the names of tables."""

import re
from functools import cache

from tests.architecture.tree import (
    CORE,
    assert_none,
    files_in,
    modules,
    packages,
    plugin_packages,
    source_of,
    strings_of,
)

#: The packages of the core and their tables.
CORE_TABLES = {
    "bulk_actions": ("core_bulk_actions", "core_bulk_targets"),
    "channels": (
        "core_bots",
        "core_button_pages",
        "core_channel_requests",
        "core_channel_spending",
        "core_channel_states",
        "core_channels",
        "core_chats",
        "core_offers",
        "core_revisions",
        "core_shelf",
        "core_start_codes",
        "core_updates",
    ),
    "db": ("core_write_trials",),
    "events": ("core_events",),
    "files": ("core_file_chunks", "core_files"),
    "http": ("core_idempotency",),
    "jobs": ("core_jobs", "core_lanes", "core_runners"),
    "limits": ("core_limit_hits",),
    "mailings": ("core_mailing_ways", "core_mailings", "core_recipients"),
    "members": ("core_member_links", "core_member_subscribers", "core_members"),
    "messages": ("core_batches", "core_message_copies", "core_messages", "core_templates"),
    "projects": ("core_api_keys", "core_logos", "core_projects"),
    "routing": ("core_routes",),
    "security": ("core_key_canary",),
    "subscribers": (
        "core_import_notes",
        "core_import_slices",
        "core_imports",
        "core_links",
        "core_permissions",
        "core_subscriber_contacts",
        "core_subscriber_permissions",
        "core_subscriber_tags",
        "core_subscribers",
        "core_tags",
    ),
}

#: A module, and a table that its SQL names.
Use = tuple[str, str]

#: Why a statement names another package's table all the same. No plugin may.
AUDIENCE = (
    "an audience is counted and written by the database alone: of a million people, none is read"
)
DISABLED = "the mailing's lock also says whether its project is active, for each batch of a mailing"
KIT = "the kit waits until nothing is due, and looks at the database as a test does"
ROLE = "each page of the dashboard asks for an account's role: it owns the project or is a member of it"
ALLOWED: dict[Use, str] = {
    ("msgsvc_devkit.core", "core_jobs"): "shows a test the jobs that wait",
    ("msgsvc_devkit.core", "core_permissions"): "arranges the people of a test",
    ("msgsvc_devkit.core", "core_projects"): "arranges the projects of a test",
    ("msgsvc_devkit.core", "core_subscriber_permissions"): "arranges the people of a test",
    ("msgsvc_devkit.core", "core_subscriber_tags"): "arranges the people of a test",
    ("msgsvc_devkit.core", "core_subscribers"): "arranges the people of a test",
    ("msgsvc_core.mailings.audience_store", "core_subscriber_permissions"): AUDIENCE,
    ("msgsvc_core.mailings.audience_store", "core_subscriber_tags"): AUDIENCE,
    ("msgsvc_core.mailings.audience_store", "core_subscribers"): AUDIENCE,
    ("msgsvc_core.mailings.audience_store", "core_tags"): AUDIENCE,
    ("msgsvc_core.mailings.route_ledger", "core_subscriber_permissions"): AUDIENCE,
    ("msgsvc_core.mailings.route_ledger", "core_subscribers"): AUDIENCE,
    ("msgsvc_core.mailings.store", "core_projects"): DISABLED,
    ("msgsvc_core.members.store", "core_projects"): ROLE,
    ("msgsvc_devkit.work", "core_channel_states"): KIT,
    ("msgsvc_devkit.work", "core_jobs"): KIT,
}

CREATED = re.compile(r"(?:create_table\(\s*[\"']|CREATE TABLE (?:IF NOT EXISTS )?)(\w+)")
WORD = re.compile(r"\w+")


@cache
def migrated() -> dict[str, str]:
    """The tables that migrations create, and the distribution's package each is of."""
    return {
        table: package.name
        for package in packages()
        for path in files_in(package / "migrations", ".py")
        for table in CREATED.findall(source_of(path))
    }


def owners() -> dict[str, str]:
    """The package that owns a table: of the core `msgsvc_core.jobs`, of a plugin the whole of it."""
    of_core = {
        table: f"msgsvc_core.{package}"
        for package, tables in CORE_TABLES.items()
        for table in tables
    }
    return migrated() | of_core


@cache
def foreign_uses() -> frozenset[Use]:
    """Modules that name a table of another package, and the table."""
    owner_of = owners()
    found: set[Use] = set()
    for path in modules():
        package = next(package for package in packages() if path.is_relative_to(package))
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        foreign = {
            # An escaped line break would be a letter before the name.
            table
            for table in owner_of.keys() & set(WORD.findall(source_of(path).replace("\\n", " ")))
            if not f"{module}.".startswith(f"{owner_of[table]}.")
        }
        if foreign:
            words = {word for text in strings_of(path) for word in WORD.findall(text)}
            found |= {(module, table) for table in words & foreign}
    return frozenset(found)


def test_every_table_of_the_core_has_an_owner() -> None:
    listed = [table for tables in CORE_TABLES.values() for table in tables]
    created = {table for table, package in migrated().items() if package == "msgsvc_core"}

    assert sorted(listed) == sorted(created)
    assert_none(package for package in CORE_TABLES if not (CORE / package).is_dir())


def test_sql_names_the_tables_of_its_own_package_alone() -> None:
    assert_none(foreign_uses() - ALLOWED.keys())


def test_every_exception_is_needed_and_none_is_a_plugins() -> None:
    plugins = {package.name for package in plugin_packages()}

    assert_none(ALLOWED.keys() - foreign_uses())
    assert_none({module.partition(".")[0] for module, _ in ALLOWED} & plugins)
