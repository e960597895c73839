"""Structured logs on standard error, with request ids and without secrets."""

import asyncio
import logging
import random
import re
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple, TextIO, cast

import structlog

from msgsvc_core.config.sections import LogSettings
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.tracing import current_span

#: Keys whose values are never logged.
_SECRET_NAMES = re.compile(
    r"(secret|token|password|authorization|api_?key|cookie|signature|(?<!status_)code|payload|body)$",
    re.IGNORECASE,
)

#: Patterns of our secrets in any text, e.g. that of an exception.
_SECRET_TEXT = re.compile(
    r"\b(msk|whsec)_[A-Za-z0-9+/=_-]+"
    r"|(?<=://)[^/@\s:]*:[^/@\s]+(?=@)"
    # A sign-in callback with its code, also in HTML or JSON.
    r"|(?<=[?&;]code=)[^&#\s\"'<>\\]+"
)

HIDDEN = "[hidden]"


def configure_logs(settings: LogSettings, *, for_good: bool = False) -> None:
    """Sets up logging for our own processes; an embedding program's logging is left alone.

    With `for_good`, loggers keep the configuration of their first line, which is faster: for servers and
    workers.
    """
    renderer = _renderer(settings)
    shared = _processors()
    _configure_ours(renderer, settings.level, for_good=for_good)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for noisy in ("aiosqlite", "databases", "alembic", "asyncio", "dramatiq", "pika"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def configure_unless_done() -> None:
    """Configures logging of a service embedded in another program, unless that has configured structlog: by
    default structlog prints the local variables of every traceback, including keys and tokens."""
    if not structlog.is_configured():
        _configure_ours(render_line, "info")


def _configure_ours(renderer: Any, level: str, *, for_good: bool = False) -> None:
    # Written directly: `logging` took a fifth of the time of a request's line.
    structlog.configure(
        processors=[*_processors(), renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=for_good,
    )


def _processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        add_trace,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]


def add_trace(
    _logger: Any, _method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor that adds the ids of the current span, if there is one."""
    if (span := current_span()) is not None:
        entry["trace_id"], entry["span_id"] = span.trace_id, span.span_id
    return entry


class RequestLines(NamedTuple):
    """Writes the log line of a request, or of a probe or scrape, from its values by name."""

    request: Callable[..., None]
    probe: Callable[..., None]

    @classmethod
    def of(cls, settings: LogSettings) -> "RequestLines":
        return cls(request_lines(settings), probe_lines(settings))


def request_lines(settings: LogSettings) -> Callable[..., None]:
    """Writes the log line of a request, from its values by name, if the settings select it.

    In a process with `configure_logs(for_good=True)` it is formatted here: the values are our own and have no
    secrets, and running all processors took a tenth of a request's time.
    """
    if settings.requests == "none":
        return _write_nothing
    write = _request_lines()
    if settings.requests == "failed":
        return partial(_write_failed, write)
    if settings.request_sample >= 1:
        return write
    slow_ms = settings.slow_request_s * 1000
    return partial(_write_sampled, write, settings.request_sample, slow_ms)


def probe_lines(settings: LogSettings) -> Callable[..., None]:
    """Writes the lines of probes and scrapes. Those that succeed in time are of level debug: monitors ask
    many times a minute, and an answer says nothing that the metrics don't."""
    slow_ms = settings.slow_request_s * 1000
    quietly = _write_nothing
    if settings.requests == "all":
        quietly = partial(structlog.get_logger("msgsvc_core.http.requests").debug, "request")
    return partial(_write_probe, request_lines(settings), quietly, slow_ms)


def _write_probe(
    write: Callable[..., None], quietly: Callable[..., None], slow_ms: float, **values: Any
) -> None:
    failed = values["status"] >= 400 or not values["status"]
    (write if failed or values["duration_ms"] >= slow_ms else quietly)(**values)


def _write_failed(write: Callable[..., None], **values: Any) -> None:
    # 0 means no response.
    if values["status"] >= 500 or not values["status"]:
        write(**values)


def _write_sampled(
    write: Callable[..., None], sample: float, slow_ms: float, **values: Any
) -> None:
    status = values["status"]
    if status >= 400 or not status or values["duration_ms"] >= slow_ms:
        write(**values)
    elif random.random() < sample:  # noqa: S311 - no secret
        # Whoever counts lines divides by it.
        write(**values, sample=sample)


def _request_lines() -> Callable[..., None]:
    config = structlog.get_config()
    renderer = config["processors"][-1]
    if not config["cache_logger_on_first_use"] or renderer not in _REQUEST_FORMATS:
        return partial(structlog.get_logger("msgsvc_core.http.requests").info, "request")
    if not config["wrapper_class"](None, (), {}).is_enabled_for(logging.INFO):
        return _write_nothing
    return _REQUEST_FORMATS[renderer]


def _write_nothing(**_values: Any) -> None:
    """For lines below the log level."""


def _request_as_line(**values: Any) -> None:
    named = " ".join([f"{name}={value}" for name, value in values.items() if value is not None])
    _lines.write(f"{_seconds.now()} info    request {named}\n")


def _request_as_json(**values: Any) -> None:
    entry = {name: value for name, value in values.items() if value is not None}
    entry |= {"event": "request", "level": "info", "timestamp": _seconds.now()}
    _lines.write(to_json(entry) + "\n")


class _Lines:
    """Buffers lines until the end of the loop's turn, and writes them together: a write for each took as
    long as everything else of the line."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def write(self, line: str) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write_all, context=_NOBODY)
        self._waiting.append(line)

    def _write_all(self) -> None:
        lines = "".join(self._waiting)
        self._waiting.clear()
        # A full disk or a closed pipe must not fail requests that already have their response.
        with suppress(OSError):
            sys.stderr.write(lines)


_lines = _Lines()

#: A context without a request: the lines written together belong to several.
_NOBODY = Context()


class _Seconds:
    """The start of a time in RFC 3339, cached for the current second."""

    def __init__(self) -> None:
        self._second = 0
        self._text = ""

    def now(self) -> str:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second
        return f"{self._text}.{nanoseconds // 1000:06}Z"


_seconds = _Seconds()


def _renderer(settings: LogSettings) -> Any:
    if settings.format == "json":
        return _render_json
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer(colors=True)
    return render_line


def render_line(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> str:
    """A structlog renderer for files: time, level, event, and the rest as `name=value`.

    structlog's own renderer, with colours and alignment, took a tenth of a request's time.
    """
    trace = entry.pop("exception", None)
    start = f"{entry.pop('timestamp', '-')} {entry.pop('level', '-'):<7} {entry.pop('event', '-')}"
    line = " ".join([start, *(f"{name}={_quoted(value)}" for name, value in entry.items())])
    return line if trace is None else f"{line}\n{trace}"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    # A record is one line, and the end of each value is unambiguous.
    return text if _PLAIN.fullmatch(text) else repr(text)


_render_json = structlog.processors.JSONRenderer(ensure_ascii=False)

#: The format of a request's line for each of these renderers.
_REQUEST_FORMATS = {render_line: _request_as_line, _render_json: _request_as_json}

#: Values that need no quotes.
_PLAIN = re.compile(r"[\w./:{}@+-]+")


class _StandardError:
    """The current standard error; the embedding program may have replaced it."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def hide_secrets(
    _logger: Any, _method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor that removes secrets by name and by pattern."""
    for name, value in entry.items():
        if _is_secret(name):
            entry[name] = HIDDEN
        elif not isinstance(value, int | float):
            entry[name] = _cleaned(value)
    return entry


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAMES.search(name) is not None


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return _without_secrets(value)
        case Mapping():
            return {
                key: HIDDEN if _is_secret(str(key)) else _cleaned(inner)
                for key, inner in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_cleaned(inner) for inner in value]
        case bytes() | BaseException():
            return _without_secrets(str(value))
    return value


def _without_secrets(text: str) -> str:
    # A cheap test first, which most values fail: it takes a tenth of the expression's time.
    if "msk_" in text or "whsec_" in text or "://" in text or "code=" in text:
        return _SECRET_TEXT.sub(HIDDEN, text)
    return text
