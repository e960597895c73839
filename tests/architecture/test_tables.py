"""SQL belongs to the package that owns the table: a search of all strings for the names of tables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The packages of the core and their tables.
CORE_TABLES = {
    "channels": (
        "core_bots",
        "core_channel_states",
        "core_channels",
        "core_chats",
        "core_offers",
        "core_revisions",
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
    "messages": ("core_batches", "core_messages", "core_templates"),
    "projects": ("core_api_keys", "core_projects"),
    "security": ("core_key_canary",),
    "subscribers": (
        "core_links",
        "core_permissions",
        "core_subscriber_permissions",
        "core_subscriber_tags",
        "core_subscribers",
        "core_tags",
    ),
}

#: A module, and a table that its SQL names.
Use = tuple[str, str]

#: Statements over another package's table, by module and table, and why they are no two statements.
#: Only for the core: a plugin asks the core's parts.
ALLOWED: dict[Use, str] = {
    (
        "msgsvc_core.members.store",
        "core_projects",
    ): "each page of the dashboard asks for the role of an"
    " account, and its projects are those that it owns or is a member of: one query, one order",
}

#: Places that break the rule and are still to be changed; nothing may be added.
REMAINING: set[Use] = {
    ("msgsvc_billing.store", "core_projects"),
    ("msgsvc_core.accounts.store", "core_members"),
    ("msgsvc_core.accounts.store", "core_projects"),
    ("msgsvc_core.accounts.team_store", "core_members"),
    ("msgsvc_core.accounts.team_store", "core_projects"),
    ("msgsvc_core.channels.bots", "core_lanes"),
    ("msgsvc_core.channels.erasure", "core_jobs"),
    ("msgsvc_core.channels.offers", "core_subscribers"),
    ("msgsvc_core.channels.outages", "core_jobs"),
    ("msgsvc_core.channels.project_channels.store", "core_subscribers"),
    ("msgsvc_core.core_parts", "core_events"),
    ("msgsvc_core.core_parts", "core_idempotency"),
    ("msgsvc_core.core_parts", "core_limit_hits"),
    ("msgsvc_core.core_parts", "core_links"),
    ("msgsvc_core.core_parts", "core_member_links"),
    ("msgsvc_core.core_parts", "core_offers"),
    ("msgsvc_core.core_parts", "core_start_codes"),
    ("msgsvc_core.core_parts", "core_updates"),
    ("msgsvc_core.mailings.audience", "core_subscriber_permissions"),
    ("msgsvc_core.mailings.audience", "core_subscriber_tags"),
    ("msgsvc_core.mailings.audience", "core_subscribers"),
    ("msgsvc_core.mailings.audience", "core_tags"),
    ("msgsvc_core.mailings.ledger", "core_jobs"),
    ("msgsvc_core.mailings.store", "core_projects"),
    ("msgsvc_core.members.store", "core_subscribers"),
    ("msgsvc_core.messages.store", "core_permissions"),
    ("msgsvc_core.messages.store", "core_subscribers"),
    ("msgsvc_core.security.sealed", "core_channels"),
    ("msgsvc_core.subscribers.conversation.store", "core_chats"),
    ("msgsvc_core.subscribers.conversation.store", "core_projects"),
    ("msgsvc_core.subscribers.erasure.store", "core_channels"),
    ("msgsvc_core.subscribers.erasure.store", "core_chats"),
    ("msgsvc_core.subscribers.erasure.store", "core_offers"),
    ("msgsvc_core.subscribers.store", "core_chats"),
    ("msgsvc_core.subscribers.store", "core_offers"),
    ("msgsvc_core.telemetry.store", "core_jobs"),
    ("msgsvc_devkit.work", "core_channel_states"),
    ("msgsvc_devkit.work", "core_jobs"),
    ("msgsvc_drip.due_store", "core_projects"),
    ("msgsvc_drip.due_store", "core_subscribers"),
    ("msgsvc_drip.enrollment_store", "core_subscribers"),
    ("msgsvc_helpdesk.agents.store", "core_subscribers"),
    ("msgsvc_helpdesk.store", "core_subscribers"),
    ("msgsvc_otp.store", "core_subscribers"),
    ("msgsvc_scheduling.store", "core_projects"),
    ("msgsvc_scheduling.store", "core_subscribers"),
}

CREATED = re.compile(r"(?:create_table\(\s*[\"']|CREATE TABLE (?:IF NOT EXISTS )?)(\w+)")
WORD = re.compile(r"\w+")


def packages() -> list[Path]:
    """The core, the plugins, and the kits."""
    return [
        ROOT / "msgsvc_core",
        *sorted(ROOT.glob("plugins/*/*/msgsvc_*")),
        ROOT / "contrib" / "devkit" / "msgsvc_devkit",
    ]


def migrated() -> dict[str, str]:
    """The tables that migrations create, and the distribution's package each is of."""
    return {
        table: package.name
        for package in packages()
        for path in sorted((package / "migrations").glob("*.py"))
        for table in CREATED.findall(path.read_text("utf-8"))
    }


def owners() -> dict[str, str]:
    """The package that owns a table: of the core `msgsvc_core.jobs`, of a plugin the whole of it."""
    of_core = {
        table: f"msgsvc_core.{package}"
        for package, tables in CORE_TABLES.items()
        for table in tables
    }
    return migrated() | of_core


def strings(tree: ast.Module) -> Iterator[str]:
    """All texts of a module but its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.value


def foreign_uses() -> set[Use]:
    """Modules that name a table of another package, and the table."""
    owner_of = owners()
    found: set[Use] = set()
    for package in packages():
        for path in package.rglob("*.py"):
            if "migrations" in path.parts:
                continue
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            for text in strings(ast.parse(path.read_text("utf-8"))):
                for word in set(WORD.findall(text)) & owner_of.keys():
                    if not f"{module}.".startswith(f"{owner_of[word]}."):
                        found.add((module, word))
    return found


def test_every_table_of_the_core_has_an_owner() -> None:
    listed = [table for tables in CORE_TABLES.values() for table in tables]
    created = {table for table, package in migrated().items() if package == "msgsvc_core"}

    assert sorted(listed) == sorted(created)
    assert all((ROOT / "msgsvc_core" / package).is_dir() for package in CORE_TABLES)


def test_sql_names_the_tables_of_its_own_package_alone() -> None:
    assert foreign_uses() - ALLOWED.keys() - REMAINING == set()


def test_every_exception_is_needed_and_of_the_core() -> None:
    assert ALLOWED.keys() - foreign_uses() == set()
    assert all(module.startswith("msgsvc_core.") for module, _ in ALLOWED)
    assert all(ALLOWED.values())
