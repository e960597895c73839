"""Typed settings: `msgsvc.toml`, overridden by `MSGSVC_*` environment variables.

A nested setting is named with two underscores: `MSGSVC_LIMITS__REQUESTS_PER_MINUTE=600`. A variable that
ends with `__FILE` names a file with the value: `MSGSVC_DATABASE_URL__FILE=/run/secrets/database_url`. Plugins
add sections of their own (hook `register_settings`); unknown names are rejected.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from msgsvc_core.config.defaults import default_channels, default_plugins
from msgsvc_core.config.environment import UnusableVariables, read_environment
from msgsvc_core.config.faults import explain, unknown
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.config.optional import check_installed
from msgsvc_core.config.sections import (
    OWN_USERS,
    Country,
    JobSettings,
    LogSettings,
    MediaSettings,
    MetricsSettings,
    OwnChannelSettings,
    Section,
    ServerSettings,
    TracingSettings,
    own_users_values,
)
from msgsvc_core.config.urls import check_base_url, check_redis_url
from msgsvc_core.db.postgres_urls import checked, is_postgres
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.i18n import LANGUAGES, check_tag, in_words

#: Minimum characters of a secret key; `msgsvc init` writes 43 (256 bits).
MIN_SECRET_KEY_LENGTH = 32

#: Maximum number of languages: a message to an audience is checked in each of them within the request.
MOST_LANGUAGES = 20


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """A plugin's section of the configuration: `[name]`."""

    name: str
    model: type[Section]


class ChannelSettings(BaseModel):
    """One messenger: `[channels.<name>]`. What is beside `plugin` is the plugin's own."""

    model_config = ConfigDict(extra="allow", frozen=True)

    plugin: str = Field(description="Kind of messenger, as a channel plugin names it.")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Settings(BaseModel):
    """All settings of a `Service`. Plugins' sections are kept as extra fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    base_url: str = Field(
        "http://127.0.0.1:8000",
        description="Public URL of the service, also below a path: `https://shop.example/notify`. A proxy may"
        " pass the path on or strip it.",
    )
    profile: Literal["tenants", "own_users"] = Field(
        "tenants",
        description="Defaults of limits: `tenants` for projects of strangers, `own_users` for one site with"
        " its own users. A setting that is given wins.",
    )
    docs_url: str | None = Field(
        None, description="Where error codes are described; by default `<base_url>/docs`."
    )
    api_docs: bool = Field(
        True,
        description="Serve the API reference, `/docs` and `/openapi.json`. `/docs/errors` stays.",
    )
    database_url: str = Field(
        "sqlite:///msgsvc.db",
        description="`sqlite:///file.db`, or `postgresql://...` in any form that libpq takes.",
    )
    database_direct_url: str | None = Field(
        None,
        description="With a connection pooler such as PgBouncer in `database_url`: the address of PostgreSQL"
        " itself, for migrations, copies, partitions and notifications between processes. If the pooler keeps"
        " a connection for each session, the same as `database_url`.",
    )
    database_pool: int = Field(10, ge=2, description="Connections to PostgreSQL per process.")
    database_partition_mib: int = Field(
        0,
        ge=0,
        description="MiB, with indexes, from which on a table of messages, events or webhook deliveries is "
        "partitioned on PostgreSQL, if its rows have a retention. 0 partitions no further table.",
    )
    sqlite_synchronous: Literal["FULL", "NORMAL"] = Field(
        "FULL", description="FULL survives a power cut, NORMAL only a crash of the process."
    )
    redis_url: SecretStr | None = Field(
        None,
        description="Redis for rate limits shared between processes, e.g. "
        "`redis://:password@host:6379/0`. Without it, each process counts requests "
        "separately, and strict limits are kept in the database.",
    )
    secret_keys: tuple[SecretStr, ...] = Field(
        description="Keys that encrypt stored secrets; the first encrypts, the others still decrypt."
    )
    plugins: tuple[str, ...] = Field(
        default_factory=default_plugins,
        description="Plugins to load, by entry point, instead of the default ones.",
    )
    extra_plugins: tuple[str, ...] = Field(
        (), description="Plugins to load in addition to `plugins`, such as messengers."
    )
    plugins_dir: Path | None = Field(
        None,
        description="Folder of plugins of one file each: every `*.py` file whose name doesn't begin with `_`"
        " is loaded in addition to `plugins`, under the file's name.",
    )
    channels: dict[str, ChannelSettings] = Field(
        default_factory=lambda: {
            name: ChannelSettings(plugin=kind) for name, kind in default_channels().items()
        },
        description="Channels, by their name in the API.",
    )
    header_prefix: str = Field(
        "X-Service",
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,30}$",
        description="Prefix of the headers of outgoing webhooks.",
    )
    languages: tuple[str, ...] = Field(
        LANGUAGES,
        max_length=MOST_LANGUAGES,
        description="Languages of users and texts: en and ru, which the service is translated into, "
        "and others by BCP 47 tag, e.g. de or pt-BR.",
    )
    default_lang: str = Field(
        "en", description="Language of users whose own language is not in `languages`."
    )
    default_country: Country | None = Field(
        None,
        description="Country of phone numbers that are given without a country code, by its two letters, e.g."
        " `DE`: `0151 23456789` is then `+4915123456789`. By default such numbers are refused.",
    )
    locale_dir: Path | None = Field(
        None,
        description="Folder of translations of your own: `<language>/LC_MESSAGES/<package>.po`, where"
        " the package is `msgsvc_core` or a plugin's.",
    )
    quarantine: bool = Field(
        False,
        description="Sends and receives nothing: jobs wait, and messengers are not called. For a copy of"
        " a database whose original sends.",
    )
    server: ServerSettings = ServerSettings()
    jobs: JobSettings = JobSettings()
    limits: LimitSettings = LimitSettings()
    media: MediaSettings = MediaSettings()
    own_channels: OwnChannelSettings = OwnChannelSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_profile(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("profile") != OWN_USERS:
            return values
        sections = {
            name: type(field.default)
            for name, field in cls.model_fields.items()
            if isinstance(field.default, Section)
        }
        raised = {
            name: {**own_users_values(model), **given}
            for name, model in sections.items()
            if isinstance(given := values.get(name, {}), Mapping)
        }
        return {**values, **raised}

    @field_validator("languages")
    @classmethod
    def _languages_of_ours_and_others(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        for tag in languages:
            try:
                check_tag(tag)
            except ValueError as error:
                raise ValueError(f"{tag}: {error}") from None
        if missing := [lang for lang in LANGUAGES if lang not in languages]:
            raise ValueError(f"must list {in_words(missing)}, which the service itself speaks")
        return tuple(dict.fromkeys(languages))

    @field_validator("default_lang")
    @classmethod
    def _listed_default(cls, lang: str, info: ValidationInfo) -> str:
        languages = info.data.get("languages", (lang,))
        if lang not in languages:
            raise ValueError(f"must be {in_words(languages, 'or')}, which `languages` lists")
        return lang

    @field_validator("locale_dir", "plugins_dir")
    @classmethod
    def _folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_dir():
            raise ValueError(f"there is no folder {folder}")
        return folder

    @field_validator("base_url")
    @classmethod
    def _no_slash(cls, url: str) -> str:
        check_base_url(url)
        return url.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if is_postgres(url):
            check_installed("asyncpg", "PostgreSQL", "postgres")
            return checked(url)
        if not url.startswith("sqlite:///"):
            raise ValueError("must begin with sqlite:/// or postgresql://")
        if url in {"sqlite:///", "sqlite:///:memory:"}:
            raise ValueError(
                "SQLite needs a file: each of our connections would have its own memory"
            )
        return url

    @field_validator("database_direct_url")
    @classmethod
    def _postgres_itself(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is None:
            return None
        if not is_postgres(url):
            raise ValueError("must begin with postgresql://")
        if not is_postgres(info.data.get("database_url", url)):
            raise ValueError("belongs to a database_url of postgresql://")
        return checked(url)

    @field_validator("redis_url")
    @classmethod
    def _known_redis(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            check_redis_url(url.get_secret_value())
            check_installed("redis", "Redis", "redis")
        return url

    @field_validator("plugins", "extra_plugins")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice")
        return names

    @field_validator("secret_keys", mode="before")
    @classmethod
    def _one_per_line(cls, keys: Any) -> Any:
        """In a variable or its file, keys may be lines as well as a JSON list."""
        return [line for line in keys.splitlines() if line] if isinstance(keys, str) else keys

    @field_validator("secret_keys")
    @classmethod
    def _long_enough(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if not keys:
            raise ValueError("needs at least one key; `msgsvc init` writes one")
        if any(len(key.get_secret_value()) < MIN_SECRET_KEY_LENGTH for key in keys):
            raise ValueError(f"each key needs {MIN_SECRET_KEY_LENGTH} characters or more")
        return keys

    @model_validator(mode="after")
    def _fit_together(self) -> "Settings":
        if self.limits.text_length > self.server.max_body_bytes:
            raise ValueError(
                "limits.text_length: a text of that length can't arrive in a body of"
                " server.max_body_bytes"
            )
        where, metrics = self.server, self.metrics
        if where.uds is None and metrics.worker_port and metrics.worker_port == where.port:
            raise ValueError(
                f"metrics.worker_port: server.port is {where.port} too, and both can't listen there"
            )
        if self.jobs.runner == "dramatiq":
            self._check_dramatiq()
        return self

    def _check_dramatiq(self) -> None:
        if self.database_url.startswith("sqlite"):
            raise ValueError(
                'jobs.runner: "dramatiq" needs a database_url of postgresql://, which several'
                ' processes and machines can share; SQLite\'s work is done by "embedded"'
            )
        if self.jobs.broker_url is None and self.redis_url is None:
            raise ValueError(
                'jobs.runner: "dramatiq" needs a broker that wakes the workers: set redis_url,'
                " or jobs.broker_url"
            )
        url = self.jobs.broker_url
        wakes_by_rabbitmq = url is not None and url.get_secret_value().startswith("amqp")
        extra = "rabbitmq" if wakes_by_rabbitmq else "dramatiq"
        try:
            check_installed("dramatiq", '"dramatiq"', extra)
        except ValueError as error:
            raise ValueError(f"jobs.runner: {error}") from None

    @property
    def loaded_plugins(self) -> tuple[str, ...]:
        """The installed plugins that are loaded, each once. Those of `plugins_dir` come after them."""
        return tuple(dict.fromkeys((*self.plugins, *self.extra_plugins)))

    @property
    def own_database_url(self) -> str:
        """The URL for what needs sessions of the database itself, also if a pooler is in between."""
        return self.database_direct_url or self.database_url

    @property
    def errors_url(self) -> str:
        """The page that describes error codes; `#<code>` is appended."""
        return f"{self.docs_url or self.base_url + '/docs'}/errors"


def read_sections(settings: Settings, sections: Iterable[SettingsSection]) -> dict[str, Section]:
    """The plugins' sections, validated. Raises `SettingsError` for an unknown name."""
    # An empty section that `init` wrote for a plugin that is no longer loaded is ignored.
    extra = {name: value for name, value in (settings.model_extra or {}).items() if value != {}}
    read: dict[str, Section] = {}
    for section in sections:
        if section.name in read or section.name in Settings.model_fields:
            raise SettingsError(f"{section.name}: two owners declare this section")
        try:
            given = extra.pop(section.name, {})
            if settings.profile == OWN_USERS and isinstance(given, Mapping):
                given = {**own_users_values(section.model), **given}
            read[section.name] = section.model.model_validate(given)
        except ValidationError as error:
            raise SettingsError(explain(error, section.model, prefix=section.name)) from error
    if extra:
        known = [*Settings.model_fields, *read]
        raise SettingsError("\n".join(unknown(name, known) for name in extra))
    return read


def load_settings(
    path: Path | None = None, *, env: Mapping[str, str] | None = None, **overrides: Any
) -> Settings:
    """Settings from a TOML file (if given), then the environment, then `overrides`."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SettingsError(f"{path}: no such file; `msgsvc init` writes one") from None
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: {error}") from error
    try:
        _merge(values, read_environment(os.environ if env is None else env))
    except UnusableVariables as error:
        raise SettingsError(str(error)) from None
    _merge(values, overrides)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(explain(error, Settings)) from error


def _merge(base: dict[str, Any], top: Mapping[str, Any]) -> None:
    for name, value in top.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), dict):
            _merge(base[name], value)
        else:
            base[name] = value
