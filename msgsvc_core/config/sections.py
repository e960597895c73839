"""Base class of settings sections, and the core's sections on access, outbound calls and jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic.fields import FieldInfo

from msgsvc_core.config.optional import check_installed
from msgsvc_core.config.urls import check_broker_url
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.kernel.phone import check_country
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.security.networks import Networks

#: Minimum characters of the metrics token.
MIN_TOKEN_LENGTH = 20


#: A country whose phone numbers are known, by its two letters (ISO 3166-1).
Country = Annotated[str, AfterValidator(check_country)]


class Section(BaseModel):
    """Base of every section, the core's and the plugins'."""

    model_config = ConfigDict(extra="forbid", frozen=True)


#: The profile of an operator who serves their own users. It also marks a setting whose default suits
#: untrusted tenants: with `json_schema_extra={OWN_USERS: N}`, N is the default in this profile: a number for
#: a limit, else a boolean.
OWN_USERS = "own_users"


def own_users_value(field: FieldInfo) -> Any:
    """The value of a setting for an operator's own users; None if the default suits everybody."""
    extra = field.json_schema_extra
    return extra.get(OWN_USERS) if isinstance(extra, dict) else None


def own_users_values(model: type[Section]) -> dict[str, Any]:
    """The defaults of a section that differ in the profile `own_users`."""
    values = {name: own_users_value(field) for name, field in model.model_fields.items()}
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LimitTitle:
    """What the dashboard calls a limit, with the owner's texts. It annotates a field marked by `OWN_USERS`:
    `forms_per_project: Annotated[int, LimitTitle(lambda _: _("Forms"))]`."""

    title: Title


def limit_titles(sections: Mapping[str, Section]) -> dict[str, Title]:
    """The titles of the limits of `raised_limits`, by the same names; a limit may have none."""
    return {
        f"{name}.{field_name}": each.title
        for name, section in sections.items()
        for field_name, field in type(section).model_fields.items()
        for each in field.metadata
        if isinstance(each, LimitTitle)
    }


def raised_limits(sections: Mapping[str, Section]) -> dict[str, int]:
    """The values in force of the limits that the profile `own_users` raises, as `section.name`, sorted."""
    found = {
        f"{name}.{field_name}": getattr(section, field_name)
        for name, section in sections.items()
        for field_name, field in type(section).model_fields.items()
        if own_users_value(field) is not None and not isinstance(field.default, bool)
    }
    return dict(sorted(found.items()))


class ServerSettings(Section):
    """Where and how `msgsvc serve` listens."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    uds: Path | None = Field(
        None,
        description="Path of a unix socket to listen on instead of `host` and `port`, for a proxy on this "
        "machine. Only the service's user and group can connect, and whoever does is trusted as a proxy.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Addresses or CIDR ranges of trusted reverse proxies, e.g. `127.0.0.1`; "
        "X-Forwarded-For and -Proto are ignored from any other peer.",
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="Origins that may call the API from browsers (CORS)."
    )
    hsts_seconds: int = Field(
        31_536_000,
        ge=0,
        description="Seconds for which browsers ask for this host by https only, once they have been here "
        "(`Strict-Transport-Security`, sent if `base_url` is https); 0 leaves it to your proxy.",
    )
    max_connections: int = Field(
        10_000, ge=10, description="Open connections; further ones get a 503."
    )
    max_header_bytes: int = Field(
        32 * 1024,
        ge=1024,
        description="Maximum size of the request head in bytes, including the URL.",
    )
    max_body_bytes: int = Field(1024 * 1024, ge=1024, description="Largest request body, in bytes.")
    header_timeout_s: float = Field(
        10.0, gt=0, description="Seconds for the whole head of a request, from its first byte."
    )
    body_timeout_s: float = Field(
        20.0,
        gt=0,
        description="Seconds for receiving a body, plus one second for each KiB received.",
    )
    keep_alive_s: float = Field(
        75.0,
        gt=0,
        description="Seconds for which a connection may be idle between requests. Set it higher "
        "than the proxy's keep-alive timeout, so that the proxy never reuses a closed "
        "connection.",
    )
    send_timeout_s: float = Field(
        60.0,
        gt=0,
        description="Seconds without the client reading any of the response before the connection is closed.",
    )
    drain_s: float = Field(
        0.0,
        ge=0,
        le=600,
        description="Seconds for which the process still serves after `SIGTERM`, while `/readyz` is 503 and "
        "each response asks for a new connection: longer than the balancer in front takes to notice. "
        "`SIGINT` (Ctrl-C) and a second signal end it at once.",
    )

    @field_validator("trusted_proxies")
    @classmethod
    def _not_everybody(cls, ranges: tuple[str, ...]) -> tuple[str, ...]:
        if any(network.prefixlen == 0 for network in Networks(ranges)):
            raise ValueError("a range of all addresses would let any caller name another's address")
        return ranges


class MetricsSettings(Section):
    """Access to `GET /metrics`, and the metrics port of a worker."""

    allow: tuple[str, ...] = Field(
        ("127.0.0.0/8", "::1/128"),
        description="Addresses or ranges that may read metrics without the token.",
    )
    token: SecretStr | None = Field(
        None,
        description="Token for other clients, as `Authorization: Bearer <token>`; empty refuses them.",
    )
    worker_host: str = Field("127.0.0.1", description="Address on which a worker shows metrics.")
    worker_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port on which a worker shows metrics; its second process takes the next one,"
        " and so on; 0: nowhere.",
    )

    @field_validator("allow")
    @classmethod
    def _are_ranges(cls, ranges: tuple[str, ...]) -> tuple[str, ...]:
        Networks(ranges)
        return ranges

    @field_validator("token")
    @classmethod
    def _long_enough(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and len(token.get_secret_value()) < MIN_TOKEN_LENGTH:
            raise ValueError(f"needs {MIN_TOKEN_LENGTH} characters or more")
        return token


class TracingSettings(Section):
    """Traces by OpenTelemetry; its SDK is configured by the usual `OTEL_*` variables."""

    enabled: bool = Field(
        False,
        description="Whether spans are recorded. Needs the extra `tracing`.",
    )
    trust_incoming: bool = Field(
        False,
        description="Whether a request with a `traceparent` continues its caller's trace, and the caller "
        "decides whether it is recorded. If not, a trace of its own links to it.",
    )

    @field_validator("enabled")
    @classmethod
    def _has_api(cls, enabled: bool) -> bool:
        if enabled:
            check_installed("opentelemetry", "tracing.enabled", "tracing")
        return enabled


class MediaSettings(Section):
    """Files: attachments of messages, files sent by users, and uploads of projects."""

    check: bool = Field(
        True,
        description="Whether a file's host is asked for its type and size before a message is sent"
        " with it.",
    )
    check_wait_s: float = Field(
        0.5,
        ge=0,
        description="Seconds for which due messages wait for this check; after that, messages "
        "without the file are sent first.",
    )
    check_timeout_s: float = Field(
        20.0,
        gt=0,
        description="Timeout in seconds; after it the host counts as unavailable, and the message "
        "is retried later.",
    )
    max_image_bytes: int = Field(10_000_000, ge=1, description="Bytes of an image.")
    max_video_bytes: int = Field(50_000_000, ge=1, description="Bytes of a video.")
    max_document_bytes: int = Field(20_000_000, ge=1, description="Bytes of a document.")
    allow_cidrs: tuple[str, ...] = Field(
        (), description="Non-public ranges that files may be fetched from."
    )
    allow_http: bool = Field(True, description="Whether `http` addresses may be fetched.")
    address_hours: int = Field(
        168,
        ge=1,
        description="Hours for which the signed URL of a stored file is valid. Messengers and "
        "webhook receivers download the file from it.",
    )
    loose_hours: int = Field(
        168,
        ge=1,
        description="Hours after which an unreferenced stored file is deleted.",
    )
    files_per_person: int = Field(
        100,
        ge=1,
        description="Files fetched from one person in any 24 hours; further files are recorded as "
        "failed.",
    )

    @field_validator("allow_cidrs")
    @classmethod
    def _are_cidrs(cls, cidrs: tuple[str, ...]) -> tuple[str, ...]:
        OutboundGuard(cidrs)
        return cidrs


class OwnChannelSettings(Section):
    """Channels that projects add themselves (`/v1/channels`)."""

    per_project: int = Field(10, ge=0, description="Own channels per project; 0 disables them.")
    kinds: tuple[str, ...] = Field(
        (), description="Kinds of messenger that projects may add; empty allows every loaded kind."
    )
    settings: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Settings by channel type for all of them, e.g. a proxy in "
        "`[own_channels.settings.telegram]`. Hidden from projects.",
    )
    follow_s: float = Field(
        1.0, gt=0, description="Seconds between polls for changes made by other processes."
    )


class LogSettings(Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level that is logged."
    )
    format: Literal["console", "json"] = Field(
        "console", description="Human-readable text, or one JSON object per line."
    )
    requests: Literal["all", "failed", "none"] = Field(
        "all",
        description="Which requests are logged: all, failed ones (5xx or no response), or none. "
        "Metrics always count all requests.",
    )
    request_sample: float = Field(
        1.0,
        gt=0,
        le=1,
        description='Share of ordinary requests that are logged with `requests = "all"`, chosen at random: '
        "0.01 logs one in a hundred, with the field `sample`. Errors (4xx, 5xx, no response) and slow "
        "requests are always logged.",
    )
    slow_request_s: float = Field(
        2.0,
        gt=0,
        description="Seconds from which a request is slow, and logged whatever `request_sample` is. Long "
        "polls count with the time that they wait, up to 25 s.",
    )


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
