"""`msgsvc doctor`: reports problems of a configuration, and how to fix them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from msgsvc_core.cli import checks, live_checks, running_checks
from msgsvc_core.cli.configuration import ConfigOption, find_config
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_core.plugins.advice import Finding, Level, problem
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs

COLOURS: dict[Level, str] = {
    "ok": typer.colors.GREEN,
    "warning": typer.colors.YELLOW,
    "problem": typer.colors.RED,
}


#: Subjects of findings about the database in spite of which messengers can be checked.
COMPATIBLE = frozenset({"secret keys", "API keys", "jobs", "pooler"})


def doctor(config: ConfigOption = None) -> None:
    """Check the configuration and what it depends on. Exits with 1 if the service can't work."""
    levels = asyncio.run(_report(find_config(config)))
    found = [f"{levels[level]} {level}(s)" for level in ("problem", "warning") if levels[level]]
    typer.echo("\n" + (", ".join(found) or "all is well"))
    if levels["problem"]:
        raise typer.Exit(1)


async def _report(path: Path | None) -> Counter[str]:
    """Prints findings one by one, since a messenger may take seconds to respond."""
    levels: Counter[str] = Counter()
    async for finding in examine(path):
        levels[finding.level] += 1
        mark = typer.style(f"{finding.level:8}", fg=COLOURS[finding.level])
        typer.echo(f"{mark} {finding.subject}: {finding.text}")
        if finding.fix:
            typer.echo(f"{'':8} -> {finding.fix}")
    return levels


async def examine(path: Path | None) -> AsyncIterator[Finding]:
    """All findings about a configuration. Checks that depend on a broken part are skipped."""
    try:
        settings = load_settings(path)
    except SettingsError as error:
        for line in str(error).splitlines():
            where = f"{path}, or the environment" if path else "the environment"
            yield problem("settings", line, f"correct it in {where}")
        return
    configure_logs(settings.log)
    in_itself = [
        *checks.check_file(path),
        *checks.check_secret_keys(settings),
        *checks.check_addresses(settings),
        *checks.check_proxies(settings),
        *checks.check_limits(settings),
        *checks.check_with_plugins(settings),
        *checks.check_quarantine(settings),
        *checks.check_jobs(settings),
        *checks.check_plugins(settings),
    ]
    for finding in in_itself:
        yield finding
    if any(f.level == "problem" and f.subject == "plugins" for f in in_itself):
        return
    async for finding in _examine_service(settings):
        yield finding


async def _examine_service(settings: Settings) -> AsyncIterator[Finding]:
    try:
        service = Service(settings)
    except (SettingsError, PluginError) as error:
        yield problem("settings", str(error), "correct it, or change `plugins`")
        return
    except ValueError as error:
        # Two plugins declare the same path, error code or button; each works without the other.
        yield problem("plugins", f"two plugins conflict: {error}", "remove one from `plugins`")
        return
    try:
        at_rest = [
            *live_checks.check_lanes(service),
            *live_checks.check_tenant_limits(service),
            *live_checks.check_webhooks(service),
            *live_checks.check_database_file(service),
            *live_checks.check_folder(service),
            *live_checks.check_base_path(service),
        ]
        for finding in at_rest:
            yield finding
        usable = True
        async for finding in live_checks.check_database(service):
            yield finding
            usable = usable and (finding.level == "ok" or finding.subject in COMPATIBLE)
        async for finding in running_checks.check_port(settings):
            yield finding
        async for finding in running_checks.check_running_quarantine(settings):
            yield finding
        async for finding in live_checks.check_redis(service):
            yield finding
        async for finding in live_checks.check_broker(service):
            yield finding
        async for finding in _examine_messengers(service, usable=usable):
            yield finding
    finally:
        await service.channels.close()
        await service.limiter.close()
        await service.db.disconnect()


async def _examine_messengers(service: Service, *, usable: bool) -> AsyncIterator[Finding]:
    # A channel may keep state in the database, and would wait for it. In quarantine nobody calls a messenger.
    if not usable or service.settings.quarantine:
        for finding in live_checks.check_messengers(service):
            yield finding
    elif live_checks.database_exists(service):
        async for finding in live_checks.check_sharing(service):
            yield finding
        async for finding in live_checks.check_channels(service):
            yield finding
    elif live_checks.has_messenger(service):
        async with _on_trial(service.settings) as trial:
            async for finding in live_checks.check_channels(trial):
                yield finding
    else:
        for finding in live_checks.check_messengers(service):
            yield finding


@asynccontextmanager
async def _on_trial(settings: Settings) -> AsyncIterator[Service]:
    """The service before its first start, on a database that is deleted again: channels may keep state."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/msgsvc.db"
        service = Service(settings.model_copy(update={"database_url": url}))
        try:
            await service.open_database()
            yield service
        finally:
            await service.channels.close()
            await service.limiter.close()
            await service.db.disconnect()
