"""`msgsvc doctor`: each fault is named, with what to do about it."""

import asyncio
import json
import re
import shutil
import socket
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import structlog

from msgsvc_core import service as services
from msgsvc_core.cli import live_checks
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import CORE_MIGRATIONS, MigrationSource
from msgsvc_core.jobs import lanes
from msgsvc_core.security import SecretBox
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until

#: The key of `config`, and another.
KEY_1 = "kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU"
KEY_2 = "Vb8Rm3Xz6Tq1Wc9Ny4Lk7Ph2Jd5Gf0Sa"

#: A port on which nothing listens: 1 is `tcpmux`, which no machine of ours serves.
NOBODY = "postgresql://postgres@127.0.0.1:1/msgsvc"


def _set(config: Path, line: str) -> None:
    """Puts a top-level setting first; one that is there already is taken out."""
    name = line.partition(" ")[0]
    kept = [old for old in config.read_text("utf-8").splitlines() if not old.startswith(name)]
    config.write_text("\n".join([line, *kept]) + "\n", encoding="utf-8")


def test_a_sound_configuration_is_well_before_the_first_start(run: Any, config: Path) -> None:
    result = run("doctor")

    assert result.exit_code == 0
    assert "problem" not in result.stdout
    assert not (config.parent / "msgsvc.db").exists()


def test_a_database_in_use_is_examined(run: Any, config: Path) -> None:
    run("project", "create", "Shop")
    result = run("doctor")

    assert result.exit_code == 0
    assert "sqlite can be reached and written" in result.stdout
    assert "migrations: all are applied" in result.stdout


def test_keys_that_expire_soon_are_named_without_a_problem(run: Any, config: Path) -> None:
    project = json.loads(run("project", "create", "Shop", "--json").stdout)["project_id"]
    run("key", "create", project, "--name", "site", "--expires", "15")
    well = run("doctor")
    run("key", "create", project, "--name", "till", "--expires", "9")
    run("key", "create", project, "--name", "old", "--expires", "10")
    warned = run("doctor")

    assert "API keys" not in well.stdout
    assert f"of {project} ('till') expires at" in warned.stdout
    assert "and 1 more expire soon" in warned.stdout
    assert (well.exit_code, warned.exit_code) == (0, 0)


def test_examining_leaves_the_database_as_it_was(run: Any, config: Path) -> None:
    run("project", "create", "Shop")
    run("doctor")

    assert "problem" not in run("doctor").stdout


async def _serve(config: Path, *, hours: int = 0) -> None:
    """Starts and stops the service; after some hours, if they are to pass."""
    clock = FakeClock()
    async with Service(load_settings(config, env={}), clock=clock) as service:
        clock.advance(hours * 3600)
        await settled(service)


def _set_keys(config: Path, *keys: str) -> None:
    _set(config, f"secret_keys = {json.dumps(keys)}")


def test_keys_that_read_the_database_are_well(run: Any, config: Path) -> None:
    asyncio.run(_serve(config))
    result = run("doctor")

    assert result.exit_code == 0
    assert "secret keys: they read what the database holds" in result.stdout


def test_keys_that_were_lost_are_a_problem_however_often_the_service_starts(
    run: Any, config: Path
) -> None:
    asyncio.run(_serve(config))
    _set_keys(config, KEY_2)
    with structlog.testing.capture_logs() as logs:
        asyncio.run(_serve(config, hours=2))
    result = run("doctor")

    assert result.exit_code == 1
    assert "written with a key that is not in secret_keys any more" in result.stdout
    assert "put that key back" in result.stdout
    assert {"event": "secret_keys_lost", "log_level": "error"} in logs


def test_a_key_that_is_put_back_mends_it(run: Any, config: Path) -> None:
    asyncio.run(_serve(config))
    _set_keys(config, KEY_2)
    asyncio.run(_serve(config))
    _set_keys(config, KEY_2, KEY_1)

    assert run("doctor").exit_code == 0


def test_an_older_key_may_go_after_the_current_one_has_served_for_an_hour(
    run: Any, config: Path
) -> None:
    _set_keys(config, KEY_1)
    asyncio.run(_serve(config))
    _set_keys(config, KEY_2, KEY_1)
    asyncio.run(_serve(config, hours=2))
    _set_keys(config, KEY_2)

    assert "secret keys: they read what the database holds" in run("doctor").stdout


def test_values_under_an_older_key_are_counted_until_they_are_encrypted_anew(
    run: Any, config: Path
) -> None:
    pytest.importorskip("msgsvc_webhooks")
    _set(config, 'plugins = ["webhooks"]')
    project = json.loads(run("project", "create", "Shop", "--json").stdout)
    asyncio.run(_add_webhooks(config, project["project_id"], 3))
    _set_keys(config, KEY_2, KEY_1)
    before = run("doctor").stdout
    asyncio.run(_serve(config, hours=2))
    after = run("doctor").stdout

    # Three secrets, and the text that shows whether keys were lost.
    assert "warning  secret keys: 4 value(s) are still encrypted under an older key" in before
    assert "older key" not in after
    assert "nothing that is kept for long needs the older ones" in after


def test_what_is_lost_with_a_key_is_told_by_table(run: Any, config: Path) -> None:
    pytest.importorskip("msgsvc_webhooks")
    _set(config, 'plugins = ["webhooks"]')
    project = json.loads(run("project", "create", "Shop", "--json").stdout)
    asyncio.run(_add_webhooks(config, project["project_id"], 2))
    _set_keys(config, KEY_2)
    result = run("doctor")

    assert result.exit_code == 1
    assert "no key reads the 2 signing secret(s) of webhooks (webhooks_secrets)" in result.stdout
    assert f"which need key {SecretBox([KEY_1]).key_ids[0]}" in result.stdout
    assert "without the key: each project deletes its webhooks" in result.stdout


async def _add_webhooks(config: Path, project_id: str, count: int) -> None:
    """Webhooks of a project, each with a secret that the present key encrypts."""
    from msgsvc_webhooks.models import CreateWebhookBody  # noqa: PLC0415 - where it is installed
    from msgsvc_webhooks.service import Webhooks  # noqa: PLC0415

    async with Service(load_settings(config, env={}), clock=FakeClock()) as service:
        for _ in range(count):
            async with service.db.transaction() as tx:
                body = CreateWebhookBody(url="https://shop.example/hooks")
                await service.get(Webhooks).create(tx, project_id, body)


#: Limits as for strangers, which an operator has chosen.
DECIDED = {
    "tags": 20,
    "permissions": 20,
    "templates": 100,
    "routes": 20,
    "requests_per_minute": 300,
}


@pytest.mark.parametrize(
    ("base_url", "limits", "warned"),
    [
        ("https://msgsvc.example", "", True),
        ("https://msgsvc.example", "tags = 21\npermissions = 20\n", True),
        (
            "https://msgsvc.example",
            "\n".join(f"{name} = {value}" for name, value in DECIDED.items()),
            False,
        ),
        ("http://192.168.1.7:8000", "", False),
        ('https://msgsvc.example"\nprofile = "tenants', "", False),
    ],
)
def test_limits_for_strangers_that_nobody_has_decided_on_are_a_warning_in_public(
    run: Any, config: Path, base_url: str, limits: str, warned: bool
) -> None:
    _set(config, f'base_url = "{base_url}"')
    config.write_text(f"{config.read_text('utf-8')}[limits]\n{limits}", encoding="utf-8")
    result = run("doctor")

    assert result.exit_code == 0
    assert ("set for untrusted tenants" in result.stdout) is warned
    assert ("limits.requests_per_minute = 300" in result.stdout) is warned
    assert ("limits.tags" in result.stdout) is (warned and not limits)


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ('plugins = ["sandbox", "auth"]', "not loaded: oidc, otp,"),
        ('plugins = ["telegram"]', "name them in `extra_plugins` instead"),
        ('extra_plugins = ["telegram"]', "telegram can be loaded"),
    ],
)
def test_areas_that_are_switched_off_are_listed(
    run: Any, config: Path, plugins: str, says: str
) -> None:
    pytest.importorskip("msgsvc_telegram")
    config.write_text(
        re.sub(r"(?m)^plugins = .*$", "", config.read_text("utf-8")), encoding="utf-8"
    )
    _set(config, plugins)
    result = run("doctor")

    assert says in result.stdout
    assert ("replaces the default" in result.stdout) is (says[0] == "n" and "instead" in says)


def test_plugins_of_plugins_dir_are_checked_one_by_one(
    run: Any, config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "own_plugins"
    run("plugin", "new", "area", "feedback", "--minimal", "--into", str(folder))
    _set(config, f'plugins_dir = "{folder}"')
    well = run("doctor")
    (folder / "broken.py").write_text("1 / 0")
    broken = run("doctor")

    assert well.exit_code == 0
    assert f"feedback can be loaded from {folder / 'feedback.py'}" in well.stdout
    assert broken.exit_code == 1
    assert f"{folder / 'broken.py'} can't be imported: ZeroDivisionError" in broken.stdout
    assert "feedback can be loaded" in broken.stdout


def test_limits_that_init_writes_are_well_in_public(run: Any, folder: Path) -> None:
    run("init", "--base-url", "https://msgsvc.example")

    assert "untrusted tenants" not in run("doctor").stdout


def test_a_service_without_a_messenger_is_not_well(run: Any, config: Path) -> None:
    new = run("doctor").stdout
    run("project", "create", "Shop")

    assert "none is configured, so nobody can be reached" in new
    assert "all is well" not in new
    assert "none is configured, so nobody can be reached" in run("doctor").stdout


@pytest.mark.parametrize(("others", "warned"), [("", True), ("telegram", False)])
def test_the_sandbox_alone_reaches_nobody(
    run: Any, config: Path, others: str, warned: bool
) -> None:
    pytest.importorskip("msgsvc_telegram")
    _set(config, 'plugins = ["sandbox", "telegram"]')
    bot = f', b = {{ plugin = "telegram", token = "123456:{"A" * 35}" }}' if others else ""
    _set(config, f'channels = {{ a = {{ plugin = "sandbox" }}{bot} }}')

    assert ("only the sandbox is configured" in run("doctor").stdout) is warned


def test_a_second_process_behind_a_balancer_is_no_problem(run: Any, config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as balancer:
        port = balancer.getsockname()[1]
        _set(config, f'base_url = "http://127.0.0.1:{port}"')
        unnamed = run("doctor")
        with config.open("a", encoding="utf-8") as file:
            file.write('[server]\ntrusted_proxies = ["127.0.0.1"]\n')
        named = run("doctor")

    assert unnamed.exit_code == 0
    assert "warning  base_url" in unnamed.stdout
    assert "name it in trusted_proxies" in unnamed.stdout
    assert "ok       base_url" in named.stdout


def test_pending_migrations_are_counted_by_their_owner(
    run: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "--with", "sandbox,otp")
    steps = tmp_path / "steps"
    shutil.copytree(CORE_MIGRATIONS.folder, steps)
    known = sorted(steps.glob("0*.py"))
    newest = int(known[-1].name[:4])
    for number in (newest + 1, newest + 2):
        names = f'revision = "core_{number:04}"\ndown_revision = "core_{number - 1:04}"\nphase = "expand"\n'
        (steps / f"{number:04}_step.py").write_text(f"{names}\n\ndef upgrade():\n    pass\n")
    monkeypatch.setattr(services, "CORE_MIGRATIONS", MigrationSource("core", steps))
    (folder / "msgsvc.db").touch()
    [line] = [line for line in run("doctor").stdout.splitlines() if "are pending" in line]

    told = re.search(r"(\d+) are pending \((.*?)\)", line)
    assert told is not None
    by_owner = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", told[2])}
    assert by_owner.keys() == {"core", "sandbox", "otp"}
    assert by_owner["core"] == len(known) + 2
    assert int(told[1]) == sum(by_owner.values())
    assert "core_0001" not in line


def test_a_fresh_init_is_well(run: Any, folder: Path) -> None:
    run("init")

    assert run("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('secret_keys = ["short"]', "32 characters"),
        (f'secret_keys = ["change-me-{"x" * 30}"]', "example"),
        (f'secret_keys = ["{"ab" * 20}"]', "too regular"),
        ('plugins = ["nonsense"]', "'nonsense' is not installed"),
        ('base_url = "http://127.0.0.1:9999"', "server.port = 9999"),
        ('channels.a.plugin = "telepathy"', "no loaded plugin has a messenger"),
        ('database_uri = "sqlite:///x.db"', "did you mean 'database_url'?"),
        (f'database_url = "{NOBODY}"', "start the database"),
        ('redis_url = "redis://127.0.0.1:1/0"', "start Redis"),
        ('database_url = "sqlite:///nowhere/x.db"', "there is no folder"),
        ('database_url = "sqlite:////"', "can be written by this user"),
    ],
)
def test_a_fault_is_a_problem_with_a_way_to_mend_it(
    run: Any, config: Path, line: str, says: str
) -> None:
    if line.startswith("channels"):
        _set(config, "channels = {}")
        config.write_text(
            config.read_text("utf-8").replace("channels = {}", line), encoding="utf-8"
        )
    else:
        _set(config, line)
    result = run("doctor")

    assert result.exit_code == 1
    assert says in result.stdout
    assert "->" in result.stdout


def test_a_file_that_others_can_read_is_a_warning(run: Any, config: Path) -> None:
    config.chmod(0o644)
    result = run("doctor")

    assert result.exit_code == 0
    assert "chmod 600" in result.stdout


def test_a_database_that_others_can_read_is_a_warning(run: Any, config: Path) -> None:
    run("project", "create", "Shop")
    sound = run("doctor").stdout
    (config.parent / "msgsvc.db").chmod(0o644)
    result = run("doctor")

    assert "chmod" not in sound
    assert result.exit_code == 0
    assert "chmod 600 msgsvc.db" in result.stdout


def test_a_file_that_can_not_shrink_is_told_once_much_of_it_is_free(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config.parent / "msgsvc.db"
    with closing(sqlite3.connect(path)) as connection:
        # As an earlier release made it.
        connection.execute("CREATE TABLE filler (text TEXT)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(8 * 1024 * 1024))")
        connection.commit()
    path.chmod(0o600)
    run("project", "create", "Shop")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE filler")
    little = run("doctor").stdout
    monkeypatch.setattr(live_checks, "WASTED_MIB", 2)
    much = run("doctor").stdout

    assert "database file" not in little
    assert "a file made by an earlier release does not shrink" in much.replace("\n", " ")


def test_plain_http_for_other_machines_is_a_warning(run: Any, config: Path) -> None:
    _set(config, 'base_url = "http://msgsvc.example"')
    result = run("doctor")

    assert result.exit_code == 0
    assert "unencrypted" in result.stdout


def test_links_that_lead_a_phone_to_itself_are_a_warning(run: Any, config: Path) -> None:
    config.write_text(config.read_text("utf-8") + '[server]\nhost = "0.0.0.0"\n', encoding="utf-8")

    assert "other devices" in run("doctor").stdout


@pytest.mark.parametrize(
    ("base_url", "pages", "warned"),
    [
        ("http://127.0.0.1:8000", "local", False),
        ("http://192.168.1.7:8000", "local", False),
        ("https://msgsvc.example", "local", True),
        ("https://8.8.8.8", "local", True),
        ("http://127.0.0.1:8000", "everyone", True),
        ("https://msgsvc.example", "off", False),
    ],
)
def test_a_sandbox_that_strangers_may_reach_is_a_warning(
    run: Any, config: Path, base_url: str, pages: str, warned: bool
) -> None:
    _set(config, f'base_url = "{base_url}"')
    _set(config, 'plugins = ["sandbox"]')
    config.write_text(f'{config.read_text("utf-8")}[sandbox]\npages = "{pages}"\n', "utf-8")
    result = run("doctor")

    assert result.exit_code == 0
    assert ("without passwords" in result.stdout or "no passwords" in result.stdout) is warned


def test_a_process_that_delivers_nothing_is_a_warning(run: Any, config: Path) -> None:
    config.write_text(config.read_text("utf-8") + '[jobs]\nrunner = "none"\n', encoding="utf-8")

    assert "delivers nothing" in run("doctor").stdout


def test_quarantine_is_told_and_no_messenger_is_called(run: Any, migrated: Path) -> None:
    migrated.write_text("quarantine = true\n" + migrated.read_text("utf-8"), encoding="utf-8")

    output = run("doctor").stdout

    assert "quarantine: nothing is sent or received" in output
    assert "wait for the end of the quarantine" in output


def test_secrets_are_never_shown(run: Any, config: Path) -> None:
    _set(config, f'database_url = "{NOBODY.replace("postgres@", "postgres:hush-hush@")}"')
    shown = run("doctor").output

    assert "hush-hush" not in shown
    assert "kF3vQ9xLw2" not in shown


def test_a_proxy_that_must_be_there_is_to_be_named(run: Any, config: Path) -> None:
    _set(config, 'base_url = "https://msgsvc.example"')
    before = run("doctor").stdout
    config.write_text(
        config.read_text("utf-8") + '[server]\ntrusted_proxies = ["127.0.0.1"]\n', encoding="utf-8"
    )

    assert 'trusted_proxies = ["127.0.0.1"] in [server]' in before
    assert "trusted_proxies" not in run("doctor").stdout


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://127.0.0.1:1/0", "correct jobs.broker_url"),
        ("amqp://127.0.0.1:1", "correct jobs.broker_url"),
    ],
)
def test_a_broker_that_can_not_be_reached_is_a_problem(
    run: Any, config: Path, url: str, words: str
) -> None:
    _set(config, f'database_url = "{NOBODY}"')
    section = f'[jobs]\nrunner = "dramatiq"\nbroker_url = "{url}"\n'
    config.write_text(config.read_text("utf-8") + section, encoding="utf-8")
    result = run("doctor")

    assert result.exit_code == 1
    assert "problem  broker:" in result.stdout
    assert words in result.stdout


@pytest.mark.parametrize(
    ("receiving", "base_url", "told"),
    [
        ("webhook", "http://127.0.0.1:8000", True),
        ("poll", "http://127.0.0.1:8000", False),
        ("webhook", "https://bots.example.com", False),
    ],
)
def test_a_bot_that_its_platform_can_not_call_is_told(
    run: Any, config: Path, receiving: str, base_url: str, told: bool
) -> None:
    pytest.importorskip("msgsvc_telegram")
    _set(config, f'base_url = "{base_url}"')
    _set(config, 'plugins = ["telegram"]')
    bot = f'plugin = "telegram", token = "123456:{"A" * 35}", receiving = "{receiving}"'
    _set(config, f"channels = {{ messenger_a = {{ {bot} }} }}")
    # Nobody calls the messenger.
    _set(config, "quarantine = true")

    result = run("doctor")

    assert result.exit_code == 0, result.stdout
    assert ("messenger_a: platforms call over HTTPS alone" in result.stdout) is told


async def _examined_beside(
    run: Any, config: Path, processes: int, *, of: Path | None = None
) -> str:
    """What doctor prints while so many services work on the database, by the configuration `of`."""
    async with AsyncExitStack() as running:
        services = [
            await running.enter_async_context(Service(load_settings(of or config, env={})))
            for _ in range(processes)
        ]

        async def all_work() -> bool:
            async with services[0].db.read() as tx:
                return await lanes.count_runners(tx, services[0].clock.now_ms()) == processes

        await until(all_work)
        return str((await asyncio.to_thread(run, "doctor")).stdout)


def test_several_processes_that_share_no_limits_are_a_warning(run: Any, config: Path) -> None:
    alone = asyncio.run(_examined_beside(run, config, 1))
    together = asyncio.run(_examined_beside(run, config, 2))

    assert "count" not in alone.partition("limits:")[2]
    assert "warning limits: 2 processes work on this database" in " ".join(together.split())
    assert "set redis_url" in together


def test_processes_that_send_what_is_in_quarantine_are_a_warning(
    run: Any, config: Path, tmp_path: Path
) -> None:
    without = tmp_path / "without_quarantine.toml"
    without.write_text(config.read_text("utf-8"), "utf-8")
    config.write_text("quarantine = true\n" + config.read_text("utf-8"), encoding="utf-8")

    shown = " ".join(asyncio.run(_examined_beside(run, config, 1, of=without)).split())

    assert "warning jobs: 1 process(es) that are not in quarantine run jobs" in shown
    assert "wait for the end of the quarantine" not in shown
