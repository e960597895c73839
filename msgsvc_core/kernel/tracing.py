"""Spans of a trace, as the code sees them: which one is current, and how its children begin.

OpenTelemetry is optional and is not imported here: `telemetry.otel` implements `Tracing` and `Span`. Without
it there is no current span, and everything here returns at once.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Literal, Protocol

#: `server` handles a request, `client` waits for another system, `consumer` runs a job or an update.
Kind = Literal["server", "client", "consumer", "internal"]

#: Names and values of a span. Never secrets, and nothing that a person has written: exporters send them on.
Attributes = Mapping[str, str | int]

_NONE: Attributes = {}


class Span(Protocol):
    """An operation of a trace, from its start until `end`."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        ...

    @property
    def span_id(self) -> str:
        """16 hexadecimal digits."""
        ...

    @property
    def is_sampled(self) -> bool:
        """Whether the trace is recorded."""
        ...

    @property
    def traceparent(self) -> str:
        """The span for another process: the header of W3C Trace Context, 55 characters."""
        ...

    def child(self, name: str, kind: Kind, attributes: Attributes) -> "Span":
        """Starts a span within this one."""
        ...

    def rename(self, name: str) -> None: ...

    def set(self, name: str, value: str | int) -> None: ...

    def fail(self, error_type: str) -> None:
        """Marks it as failed. `error_type` is the name of an error's class or an HTTP status, not a text:
        texts of errors may hold what people wrote."""
        ...

    def end(self) -> None: ...

    def attach(self) -> Callable[[], None]:
        """Makes it current for instrumented libraries; returns a function that restores what was."""
        ...


class Tracing(Protocol):
    """Starts the first span of a process's part in a trace."""

    def start(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: str | None = None,
        link: str | None = None,
    ) -> Span | None:
        """Starts a span; None if nothing records or continues it.

        `parent` and `link` are values of `traceparent`; invalid ones are ignored. A span with a `link` begins
        a trace of its own, and names the linked one as its cause.
        """
        ...


_current: ContextVar[Span | None] = ContextVar("msgsvc_span", default=None)


def current_span() -> Span | None:
    """The span of this task; None without tracing."""
    return _current.get()


def current_traceparent() -> str | None:
    """The current span for another process, see `Span.traceparent`."""
    span = _current.get()
    return None if span is None else span.traceparent


def current_trace_id() -> str | None:
    """The id of the current trace if it is recorded."""
    span = _current.get()
    return span.trace_id if span is not None and span.is_sampled else None


class _Within:
    """Makes a span current within a block, and ends it there if it `ends`."""

    __slots__ = ("_before", "_detach", "_ends", "_span")

    def __init__(self, span: Span, *, ends: bool) -> None:
        self._span = span
        self._ends = ends

    def __enter__(self) -> Span:
        self._before = _current.get()
        _current.set(self._span)
        self._detach = self._span.attach()
        return self._span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._detach()
        # Not by a token: a generator that is closed late ends in another context.
        _current.set(self._before)
        if self._ends:
            if kind is not None:
                self._span.fail(kind.__name__)
            self._span.end()


_NOTHING: AbstractContextManager[None] = nullcontext()


def within(span: Span | None) -> AbstractContextManager[Span | None]:
    """Makes `span` current within the block; changes nothing for None."""
    return _NOTHING if span is None else _Within(span, ends=False)


def child_span(
    name: str, kind: Kind = "internal", attributes: Attributes = _NONE
) -> AbstractContextManager[Span | None]:
    """A span within the current one, current and open within the block; nothing without one.

    An exception marks it as failed, by the name of its class.
    """
    parent = _current.get()
    if parent is None:
        return _NOTHING
    return _Within(parent.child(name, kind, attributes), ends=True)


def first_span(
    tracing: Tracing | None, name: str, kind: Kind, attributes: Attributes = _NONE
) -> AbstractContextManager[Span | None]:
    """Like `child_span`; where there is no current span, the first of a trace."""
    if tracing is None or _current.get() is not None:
        return child_span(name, kind, attributes)
    span = tracing.start(name, kind, attributes)
    return _NOTHING if span is None else _Within(span, ends=True)
