"""Base class of settings sections, and the core's sections on access and outbound calls."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from msgsvc_core.config.optional import check_installed
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.security.networks import Networks

#: Minimum characters of the metrics token.
MIN_TOKEN_LENGTH = 20


class Section(BaseModel):
    """Base of every section, the core's and the plugins'."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """Where and how `msgsvc serve` listens."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Addresses or CIDR ranges of trusted reverse proxies, e.g. `127.0.0.1`; "
        "X-Forwarded-For and -Proto are ignored from any other peer.",
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="Origins that may call the API from browsers (CORS)."
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
