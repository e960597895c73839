"""The reference of log events, read from the source: which there are, and the fields of each."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

#: The levels by the method of the logger.
LEVELS = {
    "debug": "debug",
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
}

#: The function that writes the line of a request, see `http.requests.RequestLog`.
REQUEST_FUNCTION = "write_line"

#: Fields of any line.
COMMON_FIELDS = {
    "timestamp": "when, in RFC 3339 and UTC, to the microsecond",
    "level": "`debug`, `info`, `warning` or `error`",
    "event": "what happened: a name of the table below; in lines of libraries, their text",
    "request_id": "in lines written during a request: its id, as in `X-Request-Id`",
    "trace_id": "with tracing, in lines written during a request, a job or an update: its trace",
    "span_id": "with tracing: the span in which it was written",
    "exception": "the traceback of an unexpected error, as one text; there is one in lines marked `*`",
}

#: What the fields of events mean, wherever they are.
FIELDS = {
    "account_id": "the account",
    "attempts": "attempts so far, this one included",
    "by_s": "seconds by which the clock was set, negative for back",
    "base_url": "the public URL of the service",
    "calls": "number of calls to the platform that were dropped",
    "channel": "the channel: its name in the configuration, or the id of a project's own (`chn_...`)",
    "chat_id": "the chat, by the platform's id",
    "new_chat_id": "the chat that replaces it",
    "client_id": "the OpenID Connect client",
    "connections": "how many connections are used now",
    "code": "the error code of the API, hidden like everything with this name",
    "count": "how many",
    "credits": "credits granted for the month",
    "deliveries": "times that the job was handed to a process",
    "delivery_id": "the webhook delivery",
    "detail": "the platform's words, for people",
    "duration_ms": "milliseconds from the request's head to the end of the response",
    "end": "the first id that is not of the partition",
    "endpoint": "the template of the path, such as `/v1/messages/{message_id}`; `page` for pages",
    "error": "what went wrong, for people",
    "event_name": "the event whose listener failed",
    "failing_since": "the first failed attempt after the last that succeeded",
    "file_id": "the file",
    "form_id": "the form",
    "grace_ends_ms": "when the grace period ends, in Unix milliseconds",
    "host": "the host name",
    "id": "the scheduled message, enrollment or event",
    "job": "the name of the job, as in `msgsvc jobs list --name`",
    "item_id": "the item on the channel's shelf, as in `msgsvc channels shelf`",
    "job_id": "the job, as in `msgsvc jobs show`",
    "jobs": "names of jobs",
    "key_id": "the id of a secret key, as in `msgsvc secrets status`",
    "kind": "the kind of update, contact or automatic answer",
    "kinds": "kinds of content in an update that the channel does not use",
    "lane": "the lane of jobs",
    "message_ref": "the platform's id of a message",
    "method": "the HTTP method",
    "otp_id": "the one-time code",
    "migrations": "steps of migrations, as `owner:revision`",
    "partition": "the name of the partition, which is a table",
    "pause_s": "seconds for which no topic is opened",
    "path": "the file of the database",
    "process": "the id of the process",
    "processes": "machine and process of each",
    "project_id": "the project; in lines of requests absent without an API key",
    "quarantine": "whether it runs no jobs",
    "reason": "why, for programs",
    "remedy": "what to do about it",
    "runner_id": "the process whose lease was ended",
    "sample": "the share of such requests that is logged, see `log.request_sample`; absent if all are",
    "seconds": "how long, in seconds",
    "sessions": "how many sign-in sessions",
    "server": "host and port of a mail server",
    "since": "since when",
    "stack": "what the event loop was doing, the innermost call first",
    "start": "the first id of the partition",
    "status": "the HTTP status; 0 if there was no response",
    "status_code": "the HTTP status of the receiver's response",
    "subscriber_id": "the subscriber",
    "table": "the table",
    "tasks": "names of the tasks that were not stopped in time",
    "ticket_id": "the ticket",
    "to": "the new id of the chat",
    "update_id": "the platform's id of the update",
    "url": "the address on which the process listens",
    "webhook_id": "the webhook",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class LogLine:
    """A statement that logs. `has_exception` is whether the line has a traceback."""

    event: str
    level: str
    fields: tuple[str, ...]
    module: str
    has_exception: bool


def log_page(packages: Iterable[str]) -> Iterator[str]:
    """The page `logs.md` of these packages."""
    yield from ("", "# Log lines", "")
    yield 'With `log.format = "json"` each line is one JSON object with these fields, and those of its event.'
    yield from ("", "| field of any line | meaning |", "| --- | --- |")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in COMMON_FIELDS.items())
    lines = [line for package in packages for line in lines_of(package)]
    yield from ("", "| event | level | fields | logged by |", "| --- | --- | --- | --- |")
    for event in sorted({line.event for line in lines}):
        alike = [line for line in lines if line.event == event]
        mark = "*" if any(line.has_exception for line in alike) else ""
        levels = ", ".join(dict.fromkeys(line.level for line in alike))
        fields = ", ".join(
            f"`{name}`" for name in sorted({f for line in alike for f in line.fields})
        )
        modules = ", ".join(f"`{name}`" for name in sorted({line.module for line in alike}))
        yield f"| `{event}`{mark} | {levels} | {fields} | {modules} |"
    used = {name for line in lines for name in line.fields}
    yield from ("", "| field of an event | meaning |", "| --- | --- |")
    yield from (f"| `{name}` | {FIELDS.get(name, '')} |" for name in sorted(used))


def lines_of(package: str) -> list[LogLine]:
    """Every statement of a package that logs."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None, "it is a package"
    root = Path(spec.submodule_search_locations[0])
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        module = ".".join(part for part in parts if part != "__init__")
        found += lines_in(path.read_text("utf-8"), module)
    return found


def lines_in(source: str, module: str) -> list[LogLine]:
    """Every statement of a module that logs. Raises `ValueError` for an event that is no text in it."""
    if not any(name in source for name in ("log.", "get_logger", REQUEST_FUNCTION)):
        # Parsing all modules would take most of the time of `msgsvc reference`.
        return []
    tree = ast.parse(source)
    found: list[LogLine] = []
    for call, inside in _calls(tree, None):
        told = _told(call)
        if told is None:
            continue
        method, event, keywords = told
        fields = _fields(keywords, inside)
        has_exception = method == "exception" or "exc_info" in fields
        names = [event.value] if isinstance(event, ast.Constant) else _names(event, inside, tree)
        if not names:
            raise ValueError(f"{module}:{call.lineno}: the log event is not a text")
        found += [
            LogLine(
                str(name),
                LEVELS[method],
                tuple(field for field in fields if field not in {"exc_info", *COMMON_FIELDS}),
                module,
                has_exception,
            )
            for name in names
        ]
    return found


def _calls(node: ast.AST, inside: Function | None) -> Iterator[tuple[ast.Call, Function | None]]:
    """Each call, and the function that it is in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, inside
        within = child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        yield from _calls(child, within)


def _told(call: ast.Call) -> tuple[str, ast.expr, list[ast.keyword]] | None:
    """The logger's method, the event and the fields of a call that logs; None of any other call."""
    arguments, target = call.args, call.func
    if isinstance(target, ast.Name) and target.id == REQUEST_FUNCTION:
        return (
            "info",
            ast.Constant("request"),
            [*call.keywords, ast.keyword("sample", ast.Constant(None))],
        )
    if isinstance(target, ast.Name) and target.id == "partial" and arguments:
        target, *arguments = arguments
    is_log = (
        isinstance(target, ast.Attribute) and target.attr in LEVELS and _is_logger(target.value)
    )
    if not is_log or not arguments:
        return None
    assert isinstance(target, ast.Attribute)
    return target.attr, arguments[0], call.keywords


def _is_logger(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "log"
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get_logger"
    )


def _fields(keywords: Iterable[ast.keyword], inside: Function | None) -> list[str]:
    fields: list[str] = []
    for keyword in keywords:
        if keyword.arg is not None:
            fields.append(keyword.arg)
        elif isinstance(keyword.value, ast.Name):
            fields += _keys_of(keyword.value.id, inside)
    return fields


def _keys_of(name: str, inside: Function | None) -> list[str]:
    """The keys of a dictionary that a function makes and calls by that name."""
    return [
        str(key.value)
        for node in (ast.walk(inside) if inside is not None else ())
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == name
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    ]


def _names(event: ast.expr, inside: Function | None, tree: ast.Module) -> list[str]:
    """The texts of an event that is a constant of the module, or an argument of the function around."""
    if not isinstance(event, ast.Name):
        return []
    constants = _constants(tree)
    if event.id in constants:
        return [constants[event.id]]
    if inside is None:
        return []
    parameters = [each.arg for each in inside.args.args if each.arg != "self"]
    if event.id not in parameters:
        return []
    place = parameters.index(event.id)
    names: list[str] = []
    for call, _ in _calls(tree, None):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if called != inside.name or len(call.args) <= place:
            continue
        given = call.args[place]
        if isinstance(given, ast.Constant):
            names.append(str(given.value))
        elif isinstance(given, ast.Name) and given.id in constants:
            names.append(constants[given.id])
    return names


def _constants(tree: ast.Module) -> Mapping[str, str]:
    return {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
