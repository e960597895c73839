"""Checks of `msgsvc doctor` that connect: the database, Redis, jobs and messengers."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import urlsplit

from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.http import collecting_dates
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.registry.broken import BrokenChannel
from msgsvc_core.cli.secret_keys import rotation_of
from msgsvc_core.cli.settings_file import to_toml
from msgsvc_core.config.sections import Section, own_users_value
from msgsvc_core.db import Database, DatabaseTooNew, DatabaseUnavailable, read_schema
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.partitions import read_partitions
from msgsvc_core.db.shrinking import read_space
from msgsvc_core.http.base_path import BasePath, base_path
from msgsvc_core.jobs import lanes
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import flatten
from msgsvc_core.plugins.advice import Finding, ok, problem, warning
from msgsvc_core.security import key_canary
from msgsvc_core.security.networks import is_private
from msgsvc_core.security.sealed import KeyUse
from msgsvc_core.service import Service

#: Seconds after which a due job that no process has started is reported.
OVERDUE_S = 60

#: MiB of free disk space below which the disk counts as full, and below which it is scarce.
FULL_MIB, SCARCE_MIB = 16, 256

#: Seconds by which clocks may differ: HTTP tells whole seconds, and an answer takes some.
MOST_SKEW_S = 60

#: MiB of free pages of a SQLite file that are reported, if it can't shrink.
WASTED_MIB = 64

RUN_MIGRATE = "run `msgsvc migrate`"


def database_exists(service: Service) -> bool:
    """False before the first start on SQLite: checking must not create the file."""
    return service.db.dialect != "sqlite" or sqlite_path(service.settings.database_url).exists()


async def check_database(service: Service) -> AsyncIterator[Finding]:
    """Whether the database can be reached and written and is migrated; then its keys and jobs."""
    if not database_exists(service):
        yield _check_absent_file(sqlite_path(service.settings.database_url))
        return
    try:
        await service.db.connect()
        await _try_writing(service.db)
    except Exception as error:  # noqa: BLE001 - the edge: any error of a driver is the finding
        yield problem("database", str(error) or type(error).__name__, _fix_for(error, service))
        return
    yield ok("database", f"{service.db.dialect} can be reached and written")
    async for finding in _check_migrations(service):
        yield finding
        if finding.level != "ok":
            return
    for check in (
        _check_pooler,
        check_clock,
        _check_lost_keys,
        _check_file_space,
        _check_partitions,
        _check_expiring_keys,
        _check_jobs,
    ):
        async for finding in check(service):
            yield finding


async def _check_pooler(service: Service) -> AsyncIterator[Finding]:
    """Whether what needs sessions has them, behind a connection pooler."""
    if service.db.has_sessions:
        return
    yield warning(
        "pooler",
        "a connection pooler answers at database_url: `migrate`, `copy`, `backup` and `restore` are refused,"
        " and a tap in a messenger reaches another process after up to a second",
        "set database_direct_url to the address of PostgreSQL itself",
    )


def check_database_file(service: Service) -> Iterator[Finding]:
    """Whether other users can read the SQLite file, which contains names, messages and chats."""
    if service.db.dialect != "sqlite" or not database_exists(service):
        return
    path = sqlite_path(service.settings.database_url)
    if path.is_file() and path.stat().st_mode & 0o077:
        text = f"{path} can be read by other users of this machine"
        yield warning("database", text, f"chmod 600 {path}*")


async def _check_file_space(service: Service) -> AsyncIterator[Finding]:
    """Whether the SQLite file can give back the space of deleted rows, once that is worth while."""
    if service.db.dialect != "sqlite":
        return
    async with service.db.read() as tx:
        space = await read_space(tx)
    free_mib = space.excess_pages * space.page_bytes >> 20
    if not space.can_shrink and free_mib >= WASTED_MIB:
        path = sqlite_path(service.settings.database_url)
        yield warning(
            "database file",
            f"{free_mib} MiB of {path} are free, and a file made by an earlier release does not shrink;"
            " new rows use them",
            f'stop the service and run: sqlite3 {path} "PRAGMA auto_vacuum = INCREMENTAL; VACUUM"',
        )


async def _check_partitions(service: Service) -> AsyncIterator[Finding]:
    """Which tables are partitioned, and whether the purges add partitions in time."""
    if service.db.dialect != "postgresql":
        return
    async with service.db.read() as tx:
        found = await read_partitions(tx)
    now_ms = service.clock.now_ms()
    late = [name for name, each in found.items() if each and each[-1].start_ms < now_ms]
    if late:
        yield warning(
            "partitions",
            f"what is written to {', '.join(late)} goes into the last partition, without a next one ahead",
            "look for the purge jobs in `msgsvc outbox`, and for errors in the log; a"
            " table without a retention gets no further partition",
        )
    elif found:
        counts = ", ".join(f"{name} {len(each)}" for name, each in found.items())
        yield ok("partitions", f"partitioned tables and their partitions: {counts}")


async def _check_expiring_keys(service: Service) -> AsyncIterator[Finding]:
    """Which API keys expire so soon that somebody should replace them."""
    async with service.db.read() as tx:
        expiring = await service.projects.find_expiring(tx)
    if not expiring:
        return
    first = expiring[0].key
    assert first.expires_at_ms is not None
    others = f", and {len(expiring) - 1} more expire soon" if len(expiring) > 1 else ""
    yield warning(
        "API keys",
        f"{first.key_id} of {first.project_id} ({first.name!r}) expires at"
        f" {to_rfc3339(first.expires_at_ms)}{others}; `msgsvc key list PROJECT` shows them",
        "have the project create another key and use it instead",
    )


def _check_absent_file(path: Path) -> Finding:
    if not path.parent.is_dir():
        text = f"there is no folder {path.parent.absolute()} for {path.name}"
        return problem("database", text, "create the folder, or correct database_url")
    return ok("database", f"{path} is created by the first start or `msgsvc migrate`")


def check_folder(service: Service) -> Iterator[Finding]:
    """Whether the folder of the SQLite file can be written, where SQLite keeps its log, and has room."""
    if service.db.dialect != "sqlite":
        return
    folder = sqlite_path(service.settings.database_url).absolute().parent
    if not folder.is_dir():
        return
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield problem(
            "database folder",
            f"no file can be created in {folder}: {error.strerror}",
            "run this as the user of the service; let that user write to the folder, or free disk space",
        )
        return
    free_mib = shutil.disk_usage(folder).free >> 20
    text = f"{free_mib} MiB are free in {folder}"
    if free_mib < FULL_MIB:
        yield problem("disk", f"it is full: {text}", "free space, or move the database")
    elif free_mib < SCARCE_MIB:
        yield warning("disk", text, "free space, or move the database")
    else:
        yield ok("disk", text)


async def check_clock(service: Service) -> AsyncIterator[Finding]:
    """Whether the database has the same time as this machine."""
    if service.db.dialect != "postgresql":
        return
    async with service.db.read() as tx:
        theirs_ms = await tx.fetch_val(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        )
    yield _compare_clocks(service.clock.now_ms() - theirs_ms, "PostgreSQL's")


def _compare_clocks(ahead_ms: int, whose: str) -> Finding:
    if abs(ahead_ms) < MOST_SKEW_S * 1000:
        return ok("clock", f"agrees with {whose}")
    minutes = round(abs(ahead_ms) / 60_000)
    return warning(
        "clock",
        f"this machine's is {minutes} min {'ahead of' if ahead_ms > 0 else 'behind'} {whose}: codes, sign-ins"
        " and schedules begin and expire at the wrong time",
        "synchronise it: timedatectl set-ntp true",
    )


def check_base_path(service: Service) -> Iterator[Finding]:
    """Whether the path of `base_url` can be told from the service's own paths."""
    path = base_path(service.settings.base_url)
    if isinstance(service.app, BasePath) and service.app.is_ambiguous:
        yield problem(
            "base_url",
            f"its path {path} begins as paths of the service do: behind a proxy that strips it, a request for"
            f" {path} could mean either",
            "choose another path, or a host of its own",
        )
    elif path:
        yield ok("base_url", f"addresses begin with {path}, which a proxy may pass on or strip")


def check_lanes(service: Service) -> Iterator[Finding]:
    """Whether two plugins declare the same lanes: the last one's concurrency would silently apply."""
    counts = Counter(lane.prefix for lane in service.lane_specs)
    for prefix, count in counts.items():
        if count > 1:
            fix = "report it to the plugins' authors, and load one of them"
            yield problem("lanes", f"{count} declarations of the lanes {prefix!r}", fix)
    if len(counts) == counts.total():
        yield ok("lanes", ", ".join(counts))


async def check_redis(service: Service) -> AsyncIterator[Finding]:
    """Whether Redis, through which processes share rate limits, can be reached, if configured."""
    if service.settings.redis_url is None:
        return
    wrong = await service.limiter.check()
    if wrong is None:
        yield ok("redis", "can be reached; limits are shared")
    else:
        fix = "start Redis, or correct its host, port, database or password in redis_url"
        yield problem("redis", wrong, fix)


async def check_sharing(service: Service) -> AsyncIterator[Finding]:
    """Whether several API processes share the rate limits of requests."""
    settings = service.settings
    if settings.redis_url is not None or settings.jobs.runner != "embedded":
        return
    async with service.db.read() as tx:
        processes = await lanes.count_runners(tx, service.clock.now_ms())
    if processes > 1:
        yield warning(
            "limits",
            f"{processes} processes work on this database, and each counts a project's requests by itself:"
            f" up to {processes} times limits.requests_per_minute are accepted",
            "set redis_url, to the same value for all processes",
        )


async def check_broker(service: Service) -> AsyncIterator[Finding]:
    """Whether the broker that wakes workers can be reached, if configured."""
    if service.settings.jobs.runner != "dramatiq":
        return
    from msgsvc_core.jobs.broker import find_fault  # noqa: PLC0415 - loads dramatiq

    try:
        wrong = await asyncio.to_thread(find_fault, service.settings)
    except SettingsError as error:
        yield problem("broker", str(error), "install it, or name a Redis")
        return
    if wrong is None:
        yield ok("broker", "can be reached; it wakes the workers")
    else:
        fix = "start it, or correct jobs.broker_url (redis_url, if that is not set)"
        yield problem("broker", wrong, fix)


def check_webhooks(service: Service) -> Iterator[Finding]:
    """Whether platforms can deliver webhooks to this service, if a channel receives by webhook."""
    called = [each.name for each in service.channels.shared if each.receiving == "webhook"]
    if called and not service.settings.base_url.startswith("https:"):
        yield warning(
            "webhooks of messengers",
            f"{', '.join(called)}: platforms call over HTTPS alone, and base_url is"
            f" {service.settings.base_url}",
            'set base_url to the public https address, or receiving = "poll"',
        )


async def check_channels(service: Service) -> AsyncIterator[Finding]:
    """Checks all channels concurrently with their platforms, and this machine's clock by theirs."""
    channels = service.channels.shared
    with collecting_dates() as dates:
        healths = await asyncio.gather(*(check_channel(channel) for channel in channels))
    now_ms = service.clock.now_ms()
    for date in sorted(dates)[:1]:
        yield _compare_clocks(now_ms - date, "the messengers'")
    for channel, health in zip(channels, healths, strict=True):
        subject = f"channel {channel.name}"
        if health.ok:
            yield ok(subject, health.detail or "works")
        else:
            fix = f"look at [channels.{channel.name}] in the configuration"
            yield problem(subject, health.detail or "does not work", fix)
        if not channel.capabilities.answers:
            text = "users can't reply to a bot there, so it can't be used for sign-in"
            yield warning(
                subject, text, "use another messenger for sign-in, and this one for messages"
            )
    async for finding in _check_own_channels(service):
        yield finding
    if not service.channels.own:
        for finding in check_messengers(service):
            yield finding


def has_messenger(service: Service) -> bool:
    """Whether the configuration has a messenger other than those for development."""
    declared = flatten(service.plugins.hook.register_channel_kinds())
    for_development = {kind.name for kind in declared if kind.for_development}
    return any(each.plugin not in for_development for each in service.settings.channels.values())


def check_messengers(service: Service) -> Iterator[Finding]:
    """Whether the configuration has a messenger other than those for development."""
    declared = flatten(service.plugins.hook.register_channel_kinds())
    for_development = {kind.name for kind in declared if kind.for_development}
    kinds = {channel.plugin for channel in service.settings.channels.values()}
    fix = "add a table [channels.<name>], or write a new file with `msgsvc init --messenger NAME`"
    if not kinds:
        yield warning("channels", "none is configured, so nobody can be reached", fix)
    elif kinds <= for_development:
        names = " and ".join(f"the {kind}" for kind in sorted(kinds))
        text = f"only {names} is configured, so no real messenger is reached"
        yield warning("channels", text, fix)


def check_tenant_limits(service: Service) -> Iterator[Finding]:
    """Whether a public service uses the strict default limits, for untrusted tenants, unintentionally."""
    is_decided = "profile" in service.settings.model_fields_set
    if is_decided or is_private(urlsplit(service.settings.base_url).hostname or ""):
        return
    sections: dict[str, Section] = {"limits": service.settings.limits}
    for declared in service.plugins.hook.register_settings():
        sections[declared.name] = service.section(declared.model)
    left = [
        f"{name}.{field_name} = {to_toml(field.default)}"
        for name, section in sections.items()
        for field_name, field in type(section).model_fields.items()
        if own_users_value(field) is not None and field_name not in section.model_fields_set
    ]
    if left:
        yield warning(
            "limits",
            f"set for untrusted tenants: {', '.join(left)}",
            'for your own users set profile = "own_users"; for projects of strangers, profile = "tenants"',
        )


async def _check_own_channels(service: Service) -> AsyncIterator[Finding]:
    """Channels of projects. The project fixes a rejected token, the operator fixes lost settings."""
    await service.get(ChannelSync).refresh()
    channels = service.channels.own
    healths = await asyncio.gather(*(check_channel(channel) for channel in channels))
    for channel, health in zip(channels, healths, strict=True):
        subject = f"own channel {channel.key} of {channel.identity.project_id}"
        if isinstance(channel, BrokenChannel):
            fix = "put back the secret key or the plugin that it needs, or have it set anew"
            yield problem(subject, channel.why, fix)
        elif not health.ok:
            fix = "tell its project: PUT /v1/channels sets another token"
            yield warning(subject, health.detail or "does not work", fix)
    if channels and all(health.ok for health in healths):
        yield ok("own channels", f"{len(channels)} of projects work")


class _Undo(Exception):
    """Rolls back the transaction of a trial."""


async def _try_writing(db: Database) -> None:
    """Creates a table, which needs the same rights as migrations, and rolls back."""
    with suppress(_Undo):
        async with db.transaction() as tx:
            await tx.execute("CREATE TABLE core_doctor_trial (id INTEGER)")
            raise _Undo


def _fix_for(error: Exception, service: Service) -> str:
    if service.db.dialect == "sqlite":
        return "check that the file and its folder can be written by this user, and free disk space"
    if isinstance(error, DatabaseUnavailable):
        return "start the database, or correct its host, port, name, user or password"
    return "grant the user of database_url the right to create tables in its database"


async def _check_migrations(service: Service) -> AsyncIterator[Finding]:
    try:
        schema = await read_schema(service.settings.database_url, service.migrations)
    except DatabaseTooNew as error:
        fix = "install the newer release, or restore the backup: docs/install.md, Upgrade"
        yield problem("migrations", str(error), fix)
        return
    pending = [step for each in schema for step in each.pending]
    counts = Counter(step.owner for step in pending)
    by_owner = ", ".join(f"{owner} {count}" for owner, count in counts.items())
    ahead = [f"{each.owner}:{step.revision}" for each in schema for step in each.ahead]
    if ahead:
        yield warning(
            "migrations",
            f"a newer release has prepared the database ({', '.join(ahead)}); this release can still use it",
            "finish the upgrade: start the newer release everywhere, then `msgsvc migrate --phase contract`",
        )
    if not pending and not ahead:
        yield ok("migrations", "all are applied")
    elif not pending:
        return
    elif service.db.dialect == "postgresql" and not any(each.needed for each in schema):
        yield warning(
            "migrations",
            f"{len(pending)} of the upgrade's second half are pending ({by_owner})",
            "when no process of the earlier release runs any more, run `msgsvc migrate --phase contract`",
        )
    elif service.db.dialect == "sqlite":
        yield warning(
            "migrations",
            f"{len(pending)} are pending ({by_owner}); the next start applies them",
            f"to be able to go back, stop the service and copy the file first; or {RUN_MIGRATE} now",
        )
    else:
        yield problem("migrations", f"{len(pending)} are pending ({by_owner})", RUN_MIGRATE)


async def _check_lost_keys(service: Service) -> AsyncIterator[Finding]:
    async with service.db.read() as tx:
        readable = await key_canary.is_readable(tx, service.secrets)
    rotation = rotation_of(service)
    uses = await rotation.uses()
    lost = await rotation.lost(uses)
    if readable is False:
        yield problem(
            "secret keys",
            "this database was written with a key that is not in secret_keys any more",
            "put that key back, behind the current one; without it, replace what is named below",
        )
    for each in lost:
        if each.column.table != key_canary.SEALED.table:
            fix = f"without the key: {each.column.if_lost}"
            yield problem("secret keys", each.text, fix)
    if readable and not lost:
        yield ok("secret keys", "they read what the database holds")
    older = _count_older(service, uses)
    if older:
        yield warning(
            "secret keys",
            f"{older} value(s) are still encrypted under an older key, or do not name theirs",
            "`msgsvc secrets rotate` re-encrypts them now, the running service does within an hour; keep the"
            " older keys until then",
        )
    elif len(service.settings.secret_keys) > 1 and not lost:
        yield ok("secret keys", "nothing that is kept for long needs the older ones")


def _count_older(service: Service, uses: Sequence[KeyUse]) -> int:
    """Values that are kept for long, and are readable but not under the current key."""
    older = set(service.secrets.key_ids[1:])
    return sum(
        use.unnamed + sum(count for key_id, count in use.by_key.items() if key_id in older)
        for use in uses
        if use.column.is_lasting
    )


async def _check_jobs(service: Service) -> AsyncIterator[Finding]:
    async with service.db.read() as tx:
        counts = await service.jobs.count_by_state(tx)
        with_work = await lanes.with_work(tx)
        runners = await lanes.count_runners(tx, service.clock.now_ms())
    if service.settings.quarantine:
        if runners:
            yield warning(
                "jobs",
                f"{runners} process(es) that are not in quarantine run jobs of this database: they send",
                "stop them, start them with `--quarantine`, or give this copy a database of its own",
            )
        else:
            yield ok("jobs", f"{sum(counts.values())} wait for the end of the quarantine")
        return
    if service.settings.jobs.runner == "dramatiq" and not runners:
        text = "no worker is running, or all are in quarantine, so no jobs are run"
        yield warning("jobs", text, "start one: msgsvc worker, without --quarantine")
    overdue_ms = service.clock.now_ms() - OVERDUE_S * 1000
    overdue = [lane for lane, due_ms in with_work.items() if due_ms < overdue_ms]
    if overdue:
        yield warning(
            "jobs",
            f"due jobs have not been started for over {OVERDUE_S} s in: {', '.join(overdue)}",
            "check that a server or, with dramatiq, a worker is running and loads the plugins of these lanes",
        )
    if dead := counts.get("dead", 0):
        fix = "list them with `msgsvc jobs list --state dead`"
        yield warning("jobs", f"{dead} failed permanently and are kept as dead letters", fix)
    if not overdue and not dead:
        yield ok("jobs", f"{sum(counts.values())} are waiting or running, none is overdue")
