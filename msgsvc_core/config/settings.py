"""Typed settings: `msgsvc.toml`, overridden by `MSGSVC_*` environment variables.

A nested setting is named with two underscores: `MSGSVC_LIMITS__REQUESTS_PER_MINUTE=600`. A variable that
ends with `__FILE` names a file with the value: `MSGSVC_DATABASE_URL__FILE=/run/secrets/database_url`. Plugins
add sections of their own (hook `register_settings`); unknown names are rejected.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

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
from pydantic.fields import FieldInfo

from msgsvc_core.config.defaults import default_channels, default_plugins
from msgsvc_core.config.environment import UnusableVariables, read_environment
from msgsvc_core.config.sections import (
    LogSettings,
    MediaSettings,
    MetricsSettings,
    OwnChannelSettings,
    Section,
    ServerSettings,
    TracingSettings,
)
from msgsvc_core.kernel.errors import SettingsError, join_findings
from msgsvc_core.kernel.i18n import LANGUAGES, check_tag, in_words
from msgsvc_core.kernel.validation_messages import to_findings

__all__ = [
    "OWN_USERS",
    "ChannelSettings",
    "JobSettings",
    "LimitSettings",
    "LogSettings",
    "MediaSettings",
    "MetricsSettings",
    "OwnChannelSettings",
    "Section",
    "ServerSettings",
    "Settings",
    "SettingsError",
    "SettingsSection",
    "TracingSettings",
    "load_settings",
    "read_sections",
]
from msgsvc_core.config.optional import check_installed
from msgsvc_core.config.urls import check_broker_url, check_postgres_url, check_redis_url

#: Minimum characters of a secret key; `msgsvc init` writes 43 (256 bits).
MIN_SECRET_KEY_LENGTH = 32

#: Maximum number of languages: a message to an audience is checked in each of them within the request.
MOST_LANGUAGES = 20

#: Marks a limit whose default suits untrusted tenants: with `json_schema_extra={OWN_USERS: N}`, `msgsvc
#: init` writes N for an operator who serves their own users.
OWN_USERS = "own_users"


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """A plugin's section of the configuration: `[name]`."""

    name: str
    model: type[Section]


class JobSettings(Section):
    """How background work runs."""

    runner: Literal["embedded", "dramatiq", "none"] = Field(
        "embedded",
        description="`embedded` works in the serving process; `dramatiq` leaves jobs to"
        " `msgsvc worker`, on any number of machines; `none` leaves them to others.",
    )
    broker_url: SecretStr | None = Field(
        None,
        description="Broker that wakes workers: `redis://...`, or `amqp://...` for RabbitMQ;"
        " `redis_url` by default. Only for `dramatiq`.",
    )
    broker_namespace: str = Field(
        "msgsvc",
        pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$",
        description="Prefix of queue names in the broker; must differ between deployments that "
        "share a broker.",
    )
    lease_s: float = Field(
        10.0,
        gt=0,
        description="Seconds after which another runner takes over a dead runner's work (lease).",
    )
    sweep_s: float = Field(
        1.0, gt=0, description="Seconds between sweeps for lanes whose wake-up was lost."
    )
    grace_s: float = Field(30.0, gt=0, description="Seconds that running jobs get at shutdown.")
    stopped_check_s: float = Field(
        60.0,
        gt=0,
        description="Seconds between checks with the platform whether a banned or revoked bot works "
        "again.",
    )
    outage_failures: int = Field(
        5,
        ge=2,
        description="Consecutive calls without a response after which a platform is considered "
        "unavailable (circuit breaker). Nothing is then sent on the channel, and queued "
        "messages do not fail.",
    )
    probe_first_s: float = Field(
        1.0, gt=0, description="Seconds until the first probe of an unavailable platform."
    )
    probe_most_s: float = Field(
        60.0,
        gt=0,
        description="Maximum seconds between two probes; the interval doubles after each probe.",
    )
    trial_calls: int = Field(
        3,
        ge=1,
        description="Calls allowed after a successful probe; the first success ends the outage.",
    )
    min_in_flight: int = Field(
        8,
        ge=1,
        le=300,
        description="Minimum limit of messages in flight per channel; it grows by the number of "
        "calls that the platform answers within a second. Messages in flight when a "
        "process is killed end as `unknown`.",
    )
    reception_failing_s: float = Field(
        30.0,
        ge=0,
        description="Seconds of failing to receive a bot's updates after which its reception is "
        "reported as interrupted; the first success ends the interruption.",
    )
    webhook_check_s: float = Field(
        60.0,
        gt=0,
        description="Seconds between checks with the platform whether its calls to a bot's webhook "
        "succeed.",
    )

    @field_validator("broker_url")
    @classmethod
    def _known_broker(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            check_broker_url(url.get_secret_value())
            if url.get_secret_value().startswith("redis"):
                check_installed("redis", "Redis", "redis")
        return url


class LimitSettings(Section):
    """Limits of a project.

    The defaults are those of decision 0075.
    """

    requests_per_minute: int = Field(
        300,
        ge=1,
        description="API requests per project and minute.",
        json_schema_extra={OWN_USERS: 3000},
    )
    text_length: int = Field(4000, ge=1, description="Characters of a message's text.")
    button_rows: int = Field(3, ge=1, description="Rows of buttons under a message.")
    buttons_per_row: int = Field(3, ge=1, description="Buttons in a row.")
    tags: int = Field(20, ge=1, description="Tags per project.", json_schema_extra={OWN_USERS: 500})
    permissions: int = Field(
        20, ge=1, description="Permissions per project.", json_schema_extra={OWN_USERS: 100}
    )
    templates: int = Field(
        100, ge=1, description="Templates per project.", json_schema_extra={OWN_USERS: 1000}
    )
    routes: int = Field(
        20, ge=1, description="Routes per project.", json_schema_extra={OWN_USERS: 200}
    )
    route_steps: int = Field(5, ge=1, le=20, description="Steps of a route.")
    route_wait_s: int = Field(
        86_400,
        ge=5,
        le=7 * 86_400,
        description="Seconds that a step of a route may wait before the next one is tried.",
    )
    logo_bytes: int = Field(
        65_536,
        ge=1024,
        le=1_048_576,
        description="Bytes of a project's logo, which every visitor of its public pages loads.",
    )
    preferences_days: int = Field(
        90,
        ge=1,
        le=3650,
        description="Days for which a link to somebody's preferences page works (`preferences_url`).",
    )
    preferences_in_broadcasts: bool = Field(
        False,
        description="Whether broadcasts and recurring messages end with a link to the recipient's preferences"
        " page, unless their text has one.",
    )
    qr_per_minute_per_address: int = Field(
        60,
        ge=1,
        description="QR codes rendered per client address and minute; cached ones do not count.",
    )
    personal_link_s: int = Field(
        24 * 3600,
        ge=60,
        le=366 * 24 * 3600,
        description="Seconds for which a subscription link with an `external_id` works, unless the"
        " request says otherwise.",
    )
    attributes_bytes: int = Field(
        8192, ge=2, description="Bytes of a subscriber's attributes as JSON."
    )
    mini_app_hours: int = Field(
        24,
        ge=1,
        description="Hours for which a mini app's signed data identifies the user who opened it.",
    )
    event_properties_bytes: int = Field(
        8192, ge=2, description="Bytes of the properties of `POST /v1/events` as JSON."
    )
    batch_messages: int = Field(500, ge=1, description="Messages of one `POST /v1/send/batch`.")
    broadcast_recipients: int = Field(100_000, ge=1, description="Recipients of one mailing.")
    bulk_action_subscribers: int = Field(
        100_000, ge=1, description="Subscribers whom one bulk action may change."
    )
    import_rows: int = Field(
        100_000, ge=1, description="Rows of a file with which people are imported."
    )
    import_bytes: int = Field(
        10_485_760,
        ge=1024,
        le=104_857_600,
        description="Bytes of a file with which people are imported; never more than `media` allows.",
    )
    import_days: int = Field(
        30, ge=1, description="Days for which an import and its report are kept."
    )
    broadcast_ids: int = Field(10_000, ge=1, description="Ids that an audience may name.")
    recipient_days: int = Field(
        90, ge=1, description="Days for which the recipients of a mailing are kept."
    )
    answer_hours: int = Field(
        24,
        ge=1,
        description="Hours for which a numbered reply is accepted as a button press, on platforms "
        "without buttons.",
    )
    button_page_days: int = Field(
        30,
        ge=1,
        description="Days for which a button in an email, or on another platform whose buttons only open "
        "pages, can be pressed.",
    )
    idempotency_hours: int = Field(24, ge=1, description="Hours that idempotency keys are kept.")
    event_days: int = Field(30, ge=1, description="Days for which events stay in the feed.")
    message_days: int = Field(
        0,
        ge=0,
        description="Days for which messages are kept, if their delivery has ended; 0 keeps all.",
    )
    delivery_attempts: int = Field(
        8, ge=1, description="Attempts per message before it fails permanently."
    )
    delivery_hours: int = Field(
        24,
        ge=1,
        description="Hours after which a message fails if its platform is still rate limiting or "
        "unavailable, counted from the first such response. Until then, these responses "
        "do not use up its attempts.",
    )


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
        description="Public URL of the service.",
    )
    docs_url: str | None = Field(
        None, description="Where error codes are described; by default `<base_url>/docs`."
    )
    api_docs: bool = Field(
        True,
        description="Serve the API reference, `/docs` and `/openapi.json`. `/docs/errors` stays.",
    )
    database_url: str = Field(
        "sqlite:///msgsvc.db", description="`sqlite:///file.db` or `postgresql://...`."
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
        default_factory=default_plugins, description="Plugins to load, by entry point."
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

    @field_validator("locale_dir")
    @classmethod
    def _folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_dir():
            raise ValueError(f"there is no folder {folder}")
        return folder

    @field_validator("base_url")
    @classmethod
    def _no_slash(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return url.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if not url.startswith(("sqlite:///", "postgresql://")):
            raise ValueError("must begin with sqlite:/// or postgresql://")
        if url in {"sqlite:///", "sqlite:///:memory:"}:
            raise ValueError(
                "SQLite needs a file: each of our connections would have its own memory"
            )
        if url.startswith("postgresql://"):
            check_postgres_url(url)
            check_installed("asyncpg", "PostgreSQL", "postgres")
        return url

    @field_validator("redis_url")
    @classmethod
    def _known_redis(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            check_redis_url(url.get_secret_value())
            check_installed("redis", "Redis", "redis")
        return url

    @field_validator("plugins")
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
        if metrics.worker_port and metrics.worker_port == where.port:
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
    def errors_url(self) -> str:
        """The page that describes error codes; `#<code>` is appended."""
        return f"{self.docs_url or self.base_url + '/docs'}/errors"


def own_users_value(field: FieldInfo) -> Any:
    """The value of a limit for an operator's own users; None if the default suits everybody."""
    extra = field.json_schema_extra
    return extra.get(OWN_USERS) if isinstance(extra, dict) else None


S = TypeVar("S", bound=Section)


def read_sections(settings: Settings, sections: Iterable[SettingsSection]) -> dict[str, Section]:
    """The plugins' sections, validated. Raises `SettingsError` for an unknown name."""
    # An empty section that `init` wrote for a plugin that is no longer loaded is ignored.
    extra = {name: value for name, value in (settings.model_extra or {}).items() if value != {}}
    read: dict[str, Section] = {}
    for section in sections:
        if section.name in read or section.name in Settings.model_fields:
            raise SettingsError(f"{section.name}: two owners declare this section")
        try:
            read[section.name] = section.model.model_validate(extra.pop(section.name, {}))
        except ValidationError as error:
            raise SettingsError(_explain(error, prefix=section.name)) from error
    if extra:
        known = [*Settings.model_fields, *read]
        raise SettingsError("\n".join(_unknown(name, known) for name in extra))
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
        raise SettingsError(_explain(error)) from error


def _merge(base: dict[str, Any], top: Mapping[str, Any]) -> None:
    for name, value in top.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), dict):
            _merge(base[name], value)
        else:
            base[name] = value


def _explain(error: ValidationError, prefix: str = "") -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(
            str(part) for part in ((prefix, *problem["loc"]) if prefix else problem["loc"])
        )
        if problem["type"] == "extra_forbidden":
            text = "there is no such setting"
        elif problem["type"] == "model_type":
            text = "must be a table"
        else:
            text = join_findings(to_findings(problem))
        # An error about several settings names them itself.
        lines.append(f"{name}: {text}" if name else text)
    return "\n".join(lines)


def _unknown(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    hint = (
        f"; did you mean {close[0]!r}?" if close else "; is the plugin that owns it in `plugins`?"
    )
    return f"{name}: there is no such setting{hint}"
