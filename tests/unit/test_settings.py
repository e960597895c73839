"""Settings: where they come from, and how those that can't work are refused."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from msgsvc_core.config.environment import read_environment
from msgsvc_core.config.sections import OWN_USERS, Section
from msgsvc_core.config.settings import Settings, SettingsSection, load_settings, read_sections
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service

KEY = "a-key-for-tests-only-a-key-for-tests-only"
KEYS = f'secret_keys = ["{KEY}"]\n'


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a configuration beside the secret key that every one needs; returns its path."""

    def to_file(toml: str = "", keys: str = KEYS) -> Path:
        path = tmp_path / "msgsvc.toml"
        path.write_text(keys + toml, encoding="utf-8")
        return path

    return to_file


def load(path: Path | None = None, **env: str) -> Settings:
    return load_settings(path, env=env)


def test_a_file_with_nothing_but_a_key_is_enough(write: Any) -> None:
    settings = load(write())

    assert settings.limits.requests_per_minute == 300
    assert settings.database_url == "sqlite:///msgsvc.db"
    assert set(settings.channels) == {"messenger_a", "messenger_b"}


def test_the_environment_is_enough() -> None:
    settings = load(MSGSVC_SECRET_KEYS=f'["{KEY}"]')

    assert settings.secret_keys[0].get_secret_value() == KEY


def test_the_environment_stands_above_the_file(write: Any) -> None:
    settings = load(write('base_url = "https://a.example"'), MSGSVC_BASE_URL="https://b.example")

    assert settings.base_url == "https://b.example"


def test_a_nested_variable_changes_one_setting_of_its_section(write: Any) -> None:
    path = write("[limits]\ntags = 5\nbutton_rows = 2")

    settings = load(path, MSGSVC_LIMITS__TAGS="7")

    assert (settings.limits.tags, settings.limits.button_rows) == (7, 2)


def test_a_variable_two_levels_down_is_found(write: Any) -> None:
    settings = load(write(), MSGSVC_CHANNELS__MESSENGER_A__PLUGIN="telegram")

    assert settings.channels["messenger_a"].plugin == "telegram"


def test_lists_in_variables_are_json(write: Any) -> None:
    settings = load(write(), MSGSVC_PLUGINS='["auth", "webhooks"]')

    assert settings.plugins == ("auth", "webhooks")


def test_extra_plugins_add_to_the_default_and_are_loaded_once(write: Any) -> None:
    settings = load(write('extra_plugins = ["max", "auth"]'))
    other = load(write('plugins = ["auth"]\nextra_plugins = ["max"]'))

    assert settings.loaded_plugins == (*settings.plugins, "max")
    assert other.loaded_plugins == ("auth", "max")


def test_a_profile_raises_limits_that_are_not_given(write: Any) -> None:
    own = load(write('profile = "own_users"\n[limits]\ntags = 5'), MSGSVC_LIMITS__TEMPLATES="7")
    tenants = load(write("[limits]\ntags = 5"))

    assert (own.limits.tags, own.limits.templates, own.limits.requests_per_minute) == (5, 7, 3000)
    assert (tenants.limits.tags, tenants.limits.requests_per_minute) == (5, 300)


def test_a_profile_raises_limits_of_plugins(write: Any) -> None:
    class Guestbook(Section):
        entries: int = Field(10, json_schema_extra={OWN_USERS: 200})
        pages: int = Field(3, json_schema_extra={OWN_USERS: 30})

    declared = [SettingsSection("guestbook", Guestbook)]
    own = load(write('profile = "own_users"\n[guestbook]\npages = 4'))
    tenants = load(write("[guestbook]\npages = 4"))

    assert read_sections(own, declared)["guestbook"] == Guestbook(entries=200, pages=4)
    assert read_sections(tenants, declared)["guestbook"] == Guestbook(entries=10, pages=4)


def test_a_text_that_only_begins_like_json_stays_a_text(write: Any) -> None:
    settings = load(write(), MSGSVC_CHANNELS__A__PLUGIN="x", MSGSVC_CHANNELS__A__TOKEN="[no json")

    assert settings.channels["a"].options == {"token": "[no json"}


def test_a_variable_may_name_a_file_with_the_value(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n{KEY}-old\n")
    (tmp_path / "list").write_text(f'["{KEY}"]\n')
    (tmp_path / "token").write_text("0123456789 0123456789 \r\n")
    by_line = load(
        MSGSVC_SECRET_KEYS__FILE=str(tmp_path / "keys"),
        MSGSVC_METRICS__TOKEN__FILE=str(tmp_path / "token"),
    )
    as_list = load(MSGSVC_SECRET_KEYS__FILE=str(tmp_path / "list"))

    assert [key.get_secret_value() for key in by_line.secret_keys] == [KEY, f"{KEY}-old"]
    assert [key.get_secret_value() for key in as_list.secret_keys] == [KEY]
    # Only the line break at the end is not part of the value.
    assert by_line.metrics.token is not None
    assert by_line.metrics.token.get_secret_value() == "0123456789 0123456789 "


def test_a_setting_whose_name_ends_with_file_is_no_file_to_read() -> None:
    settings = load(
        MSGSVC_SECRET_KEYS=KEY,
        MSGSVC_CHANNELS__A__PLUGIN="max",
        MSGSVC_CHANNELS__A__CA_FILE="/nowhere",
    )

    assert settings.channels["a"].options == {"ca_file": "/nowhere"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"\n", "is empty"),
        (b"\xffhunter2", "is not a text in UTF-8"),
        (b"hunter2" * 10_000, "has more than 65536 bytes"),
    ],
)
def test_a_file_that_gives_no_value_is_refused_without_repeating_it(
    write: Any, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "url"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        load(write(), MSGSVC_REDIS_URL__FILE=str(path))

    assert str(refused.value) == f"MSGSVC_REDIS_URL__FILE: {path}: {words}"


def test_keywords_stand_above_all(write: Any) -> None:
    settings = load_settings(
        write(), env={"MSGSVC_BASE_URL": "https://b.example"}, base_url="http://c"
    )

    assert settings.base_url == "http://c"


def test_variables_that_are_no_settings_are_left_alone(write: Any) -> None:
    env = {"MSGSVC_CONFIG": "x", "MSGSVC_TEST_POSTGRES_URL": "x", "OTHER": "x"}

    assert load(write(), **env).model_extra == {}


def test_what_kubernetes_tells_of_its_services_is_no_setting(write: Any) -> None:
    address = "tcp://10.0.0.7:8000"
    env = {
        "MSGSVC_SERVICE_HOST": "10.0.0.7",
        "MSGSVC_SERVICE_PORT": "8000",
        "MSGSVC_SERVICE_PORT_HTTP": "8000",
        "MSGSVC_PORT": address,
        "MSGSVC_PORT_8000_TCP": address,
        "MSGSVC_PORT_8000_TCP_ADDR": "10.0.0.7",
        "MSGSVC_WORKERS_SERVICE_HOST": "10.0.0.8",
    }
    settings = load(write(), **env, MSGSVC_SERVER__PORT="9000")

    assert (settings.model_extra, settings.server.port) == ({}, 9000)


def test_a_missing_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: no such file; `msgsvc init` writes one"):
        load(tmp_path / "none.toml")


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["base_url = ", "a = 1\na = 2", "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "msgsvc.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(SettingsError, match=r"msgsvc\.toml: "):
        load(path)


REFUSED = {
    "no list": ('plugins = "auth"', KEYS, "plugins: must be a list"),
    "no number": ('[server]\nport = "x"', KEYS, "server.port: must be a valid integer"),
    "no table": ("channels.messenger_a = 5", KEYS, "channels.messenger_a: must be a table"),
    "no key": ("", "", "secret_keys: "),
    "an empty list of keys": ("", "secret_keys = []\n", "secret_keys: needs at least one key"),
    "a short key": ("", 'secret_keys = ["short"]\n', "secret_keys: each key needs 32 characters"),
    "an unknown name in a section": (
        "[limits]\ntag = 5",
        KEYS,
        "limits.tag: there is no such setting",
    ),
    "a wrong type": ('[limits]\ntags = "many"', KEYS, "limits.tags: "),
    "a limit of nothing": ("[limits]\ntags = 0", KEYS, "limits.tags: "),
    "a port beyond ports": ("[server]\nport = 65536", KEYS, "server.port: "),
    "another database": ('database_url = "mysql://x"', KEYS, "database_url: must begin with"),
    "a database in memory": ('database_url = "sqlite:///:memory:"', KEYS, "database_url: SQLite"),
    "a database without a file": ('database_url = "sqlite:///"', KEYS, "database_url: SQLite"),
    "an address without scheme": ('base_url = "example.com"', KEYS, "base_url: must begin with"),
    "a header that is none": ('header_prefix = "X Service"', KEYS, "header_prefix: "),
    "a language of nobody": ('default_lang = "de"', KEYS, "default_lang: "),
    "a channel without a kind": ("[channels.a]\ntoken = 1", KEYS, "channels.a.plugin: "),
    "a plugin twice": ('plugins = ["auth", "auth"]', KEYS, "plugins: 'auth' is named twice"),
    "texts longer than bodies": (
        "[limits]\ntext_length = 5000\n[server]\nmax_body_bytes = 4096",
        KEYS,
        "limits.text_length: ",
    ),
}


@pytest.mark.parametrize(("toml", "keys", "begins"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_work_is_refused_by_name(
    write: Any, toml: str, keys: str, begins: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        load(write(toml, keys))

    assert str(raised.value).startswith(begins)


def test_all_that_is_wrong_is_said_at_once(write: Any) -> None:
    with pytest.raises(SettingsError) as raised:
        load(write("[limits]\ntags = 0\nbutton_rows = 0"))

    assert len(str(raised.value).splitlines()) == 2


@pytest.mark.parametrize(
    "env",
    [
        {"MSGSVC_LIMITS": "5", "MSGSVC_LIMITS__TAGS": "5"},
        {"MSGSVC_LIMITS__TAGS": "5", "MSGSVC_LIMITS": "5"},
        {"MSGSVC_BASE_URL": "http://a", "MSGSVC_BASE_URL__FILE": "/nowhere"},
    ],
)
def test_variables_that_contradict_one_another_are_refused(write: Any, env: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="contradicts"):
        load(write(), **env)


def test_languages_are_the_specifications_until_others_are_listed(write: Any) -> None:
    assert load(write()).languages == ("en", "ru")
    assert load(write('languages = ["en", "ru", "de"]\ndefault_lang = "de"')).default_lang == "de"


@pytest.mark.parametrize(
    ("toml", "why"),
    [
        ('languages = ["en", "ru", "pt-br"]', "languages: pt-br: must be a language's tag"),
        ('languages = ["en", "de"]', "languages: must list ru, which the service itself speaks"),
        ('default_lang = "de"', "default_lang: must be en or ru, which `languages` lists"),
        ('locale_dir = "nowhere/at/all"', "locale_dir: there is no folder nowhere/at/all"),
        ('plugins_dir = "nowhere/at/all"', "plugins_dir: there is no folder nowhere/at/all"),
    ],
)
def test_languages_that_can_t_work_are_refused(write: Any, toml: str, why: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(why)):
        load(write(toml))


def test_an_unknown_name_is_refused_with_the_nearest_known_one(write: Any) -> None:
    settings = load(write('databse_url = "sqlite:///x.db"'))

    with pytest.raises(SettingsError, match=r"databse_url: .*did you mean 'database_url'"):
        read_sections(settings, [])


def test_an_unknown_section_asks_for_the_plugin_that_owns_it(write: Any) -> None:
    settings = load(write("[telescope]\nlens = 1"))

    with pytest.raises(
        SettingsError, match=r"telescope: .*is the plugin that owns it in `plugins`"
    ):
        read_sections(settings, [])


def test_an_empty_section_of_a_plugin_that_is_not_chosen_says_nothing(write: Any) -> None:
    assert read_sections(load(write("[telescope]")), []) == {}


class ShopSettings(Section):
    """A plugin's section."""

    shelves: int = 3


class Shop:
    """A plugin with a section."""

    @hookimpl
    def register_settings(self) -> SettingsSection:
        return SettingsSection("shop", ShopSettings)


def build(**values: Any) -> Service:
    base = {"secret_keys": (KEY,), "plugins": (), "channels": {}}
    settings = Settings.model_validate({**base, **values})
    return Service(settings, extra_plugins=[("shop", Shop())])


def test_a_plugins_section_is_read_as_its_type() -> None:
    assert build(shop={"shelves": 5}).section(ShopSettings).shelves == 5


def test_a_plugins_section_may_be_absent() -> None:
    assert build().section(ShopSettings).shelves == 3


def test_an_unknown_name_in_a_plugins_section_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"shop\.shelfs: there is no such setting"):
        build(shop={"shelfs": 5})


@pytest.mark.parametrize("name", ["limits", "shop"])
def test_a_section_has_one_owner(name: str) -> None:
    settings = Settings.model_validate({"secret_keys": (KEY,)})
    sections = [SettingsSection("shop", ShopSettings), SettingsSection(name, ShopSettings)]

    with pytest.raises(SettingsError, match=f"{name}: two owners"):
        read_sections(settings, sections)


def test_a_channel_of_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"channels\.a\.plugin: .*'pigeon'.*known: none"):
        build(channels={"a": {"plugin": "pigeon"}})


def test_settings_can_not_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        build().settings.limits.tags = 5  # type: ignore[misc]  # what must fail


def test_secrets_are_not_shown_by_printing() -> None:
    assert KEY not in repr(build().settings)


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1", "redis://:pass%2Fword@redis.example:6379/0", "rediss://h:1/15"]
)
def test_a_url_of_redis_is_kept_as_a_secret(url: str) -> None:
    settings = load(MSGSVC_SECRET_KEYS=f'["{KEY}"]', MSGSVC_REDIS_URL=url)

    assert settings.redis_url is not None
    assert settings.redis_url.get_secret_value() == url
    assert url not in f"{settings!r}{settings.model_dump_json()}"


@pytest.mark.parametrize(
    "url",
    [
        "http://:hunter2@redis.example",
        "redis://",
        "redis://:hunter2/x@redis.example:6379/0",
        "redis://:hunter2@redis.example:port/0",
        "redis://:hunter2@redis.example/first",
        "redis://:hunter2@redis.example/0?socket_timeout=60",
    ],
)
def test_a_url_of_redis_that_cannot_work_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingsError, match="redis_url") as refused:
        load(MSGSVC_SECRET_KEYS=f'["{KEY}"]', MSGSVC_REDIS_URL=url)

    assert "hunter2" not in str(refused.value)


def test_dramatiq_takes_redis_url_or_a_broker_of_its_own() -> None:
    postgres = "postgresql://db.example/msgsvc"
    shared = load(
        MSGSVC_SECRET_KEYS=f'["{KEY}"]',
        MSGSVC_DATABASE_URL=postgres,
        MSGSVC_REDIS_URL="redis://h",
        MSGSVC_JOBS__RUNNER="dramatiq",
    )
    own = load(
        MSGSVC_SECRET_KEYS=f'["{KEY}"]',
        MSGSVC_DATABASE_URL=postgres,
        MSGSVC_JOBS__RUNNER="dramatiq",
        MSGSVC_JOBS__BROKER_URL="amqp://me:hunter2@h/vhost",
    )

    assert shared.jobs.broker_url is None
    assert own.jobs.broker_url is not None
    assert "hunter2" not in f"{own!r}{own.model_dump_json()}"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"MSGSVC_REDIS_URL": "redis://h"}, "needs a database_url of postgresql://"),
        ({"MSGSVC_DATABASE_URL": "postgresql://h/d"}, "set redis_url, or jobs.broker_url"),
        ({"MSGSVC_JOBS__BROKER_URL": "http://:hunter2@h"}, "jobs.broker_url: must begin with"),
        ({"MSGSVC_JOBS__BROKER_URL": "amqp://:hunter2@h:port"}, "host or port can't be read"),
        ({"MSGSVC_JOBS__BROKER_URL": "amqp://"}, "names no host"),
        ({"MSGSVC_JOBS__BROKER_NAMESPACE": "two words"}, "jobs.broker_namespace"),
    ],
)
def test_dramatiq_without_what_it_needs_is_refused_with_the_reason(
    env: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError, match=words) as refused:
        load(MSGSVC_SECRET_KEYS=f'["{KEY}"]', MSGSVC_JOBS__RUNNER="dramatiq", **env)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("module", "env", "words"),
    [
        (
            "asyncpg",
            {"MSGSVC_DATABASE_URL": "postgresql://h/d"},
            "database_url: PostgreSQL needs asyncpg; install it with `pip install 'msgsvc-core[",
        ),
        ("redis", {"MSGSVC_REDIS_URL": "redis://h"}, "redis_url: Redis needs redis; "),
        (
            "redis",
            {"MSGSVC_JOBS__BROKER_URL": "redis://h"},
            "jobs.broker_url: Redis needs redis; ",
        ),
        (
            "dramatiq",
            {
                "MSGSVC_DATABASE_URL": "postgresql://h/d",
                "MSGSVC_REDIS_URL": "redis://h",
                "MSGSVC_JOBS__RUNNER": "dramatiq",
            },
            'jobs.runner: "dramatiq" needs dramatiq; install it with `pip install \'msgsvc-core[d',
        ),
        (
            "dramatiq",
            {
                "MSGSVC_DATABASE_URL": "postgresql://h/d",
                "MSGSVC_JOBS__BROKER_URL": "amqp://h",
                "MSGSVC_JOBS__RUNNER": "dramatiq",
            },
            "msgsvc-core[rabbitmq]",
        ),
    ],
)
def test_a_setting_whose_package_is_not_installed_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, env: dict[str, str], words: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(SettingsError) as refused:
        load(MSGSVC_SECRET_KEYS=f'["{KEY}"]', **env)

    assert words in str(refused.value)


def test_a_worker_can_not_show_metrics_where_the_api_listens(write: Any) -> None:
    path = write("[server]\nport = 9000\n[metrics]\nworker_port = 9000")

    with pytest.raises(SettingsError, match=r"metrics.worker_port: server.port is 9000 too"):
        load(path)


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ('[metrics]\ntoken = "short"', "metrics.token"),
        ('[metrics]\nallow = ["everybody"]', "metrics.allow"),
        ('[server]\ntrusted_proxies = ["0.0.0.0/0"]', "server.trusted_proxies"),
        ("[server]\nheader_timeout_s = 0", "server.header_timeout_s"),
        ("[server]\nmax_connections = 0", "server.max_connections"),
    ],
)
def test_a_door_that_stands_open_or_shut_is_refused(write: Any, toml: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load(write(toml))


def test_the_variables_of_commands_are_no_settings() -> None:
    """A command would refuse to run while one is exported, and so would every other."""
    root = Path(__file__).parents[2]
    modules = [
        path
        for folder in ("msgsvc_core", "plugins", "contrib")
        for path in (root / folder).rglob("*.py")
    ]
    found = {
        name for path in modules for name in re.findall(r'envvar="(\w+)"', path.read_text("utf-8"))
    }

    assert {"MSGSVC_CONFIG", "MSGSVC_COPY_TO"} <= found
    assert read_environment(dict.fromkeys(found, "value")) == {}


@pytest.mark.parametrize(
    ("toml", "meant"),
    [
        (
            "[server]\nprot = 1",
            "server.prot: there is no such setting; did you mean 'server.port'?",
        ),
        ("[limits]\nrequests_per_minutes = 1", "did you mean 'limits.requests_per_minute'?"),
        ("[server]\nnonsense = 1", "server.nonsense: there is no such setting"),
    ],
)
def test_a_misspelled_setting_of_a_section_is_told_with_the_one_that_was_meant(
    write: Any, toml: str, meant: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(write(toml))

    assert meant in str(caught.value)


def test_a_misspelled_setting_of_a_plugin_is_told_with_the_one_that_was_meant(write: Any) -> None:
    settings = load(write('plugins = ["otp"]\n[otp]\nttl_minute = 5'))

    with pytest.raises(SettingsError, match=r"otp\.ttl_minute: .*did you mean"):
        Service(settings)
