"""Generates `docs/reference/channels.md` from the code of the channel contract."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from msgsvc_core import channels, http_client
from msgsvc_core.channels import http
from msgsvc_core.channels.health.check import CHECK_TIMEOUT_S
from msgsvc_core.channels.system_messages.calls import MAX_AGE_S
from msgsvc_core.content import markup

#: The sections of the page: title to classes and functions.
PARTS: dict[str, tuple[Any, ...]] = {
    "What a channel implements": (channels.Channel,),
    "How it describes itself": (
        channels.ChannelKind,
        channels.MessengerLook,
        channels.ChatColours,
        channels.Capabilities,
        channels.Pace,
        channels.ChannelIdentity,
        channels.ChannelHealth,
        channels.WebhookHealth,
        channels.BotProfile,
        channels.BotCommand,
        channels.BotMaker,
        channels.Budget,
    ),
    "What it sends": (
        channels.OutgoingMessage,
        channels.Button,
        channels.Media,
        channels.ReplyTarget,
    ),
    "What it receives": (
        channels.Update,
        channels.Started,
        channels.MessageReceived,
        channels.ReceivedFile,
        channels.MessageEdited,
        channels.ButtonPressed,
        channels.Blocked,
        channels.Unblocked,
        channels.ChatMoved,
        channels.DeliveryReported,
        channels.BotCreated,
        channels.ChannelUser,
        channels.Polled,
        channels.WebhookCall,
        channels.WebhookAnswer,
        channels.MiniAppUser,
    ),
    "How it fails": (
        channels.DeliveryError,
        channels.Reason,
        channels.LimitReached,
        channels.ChannelNotReady,
        channels.InvalidWebhook,
        channels.InvalidMiniApp,
    ),
    "What it may use": (
        http.PlatformHttp,
        http.PlatformAnswer,
        http_client.Upload,
        http_client.FileUpload,
        channels.ChannelContext,
        channels.ChannelSpending,
        channels.MediaSource,
        channels.MediaFile,
        markup.Span,
        markup.to_spans,
        markup.visible_length,
        markup.utf16_length,
    ),
}


def channel_page() -> Iterator[str]:
    """The lines of `channels.md`."""
    yield from ("", "# Channels", "")
    yield (
        "Import everything from `msgsvc_core.channels`, except `PlatformHttp`, which is in"
        " `msgsvc_core.channels.http`, uploads, in `msgsvc_core.http_client`, and markup, in"
        " `msgsvc_core.content.markup`. Guide:"
        " [write a channel](../guides/write-a-channel.md)."
    )
    yield from ("", "## Timeouts and rate limits", "")
    yield from _of_time()
    for title, members in PARTS.items():
        yield from ("", f"## {title}")
        for member in members:
            yield from _member(member)


def _of_time() -> Iterator[str]:
    default_s = inspect.signature(http.PlatformHttp).parameters["timeout_s"].default
    yield (
        f"- The core sets no timeout on calls to the platform. `PlatformHttp` has one: {default_s:.0f} s by"
        " default. During a call, nothing else is sent to its chat."
    )
    yield "- `poll_updates` returns within 30 s."
    yield f"- `check` has a timeout of {CHECK_TIMEOUT_S:.0f} s."
    yield (
        f"- A system message expires after {MAX_AGE_S} s; any other message after `limits.delivery_hours`."
    )
    yield (
        "- `Pace` counts each call of `send`, `edit`, `delete` and `answer_button` as one, however many"
        " HTTP requests it makes. All count towards the bot's rate; all but `answer_button` count towards"
        " the rate of the chat or group. `check`, `poll_updates`, `set_webhook`, `set_commands` and"
        " `fetch_file` do not count. A message resent to a chat's new id counts once."
    )
    yield (
        "- Pages of a channel, for example a mini app or a platform's redirects, are routes of the hook"
        " [`register_pages`](hooks.md). Webhook calls of the platform go to `/hooks/<key>` without a route."
    )


def _member(member: Any) -> Iterator[str]:
    if not inspect.isclass(member):
        yield from ("", f"### `{_signature(member)}`", "", inspect.getdoc(member) or "")
        return
    bases = [
        base.__name__ for base in member.__bases__ if base.__module__.startswith("msgsvc_core")
    ]
    of = f" ({', '.join(bases)})" if bases else ""
    yield from ("", f"### `{member.__name__}`{of}", "", _own_doc(member))
    fields = list(_fields(member))
    if fields:
        yield ""
        yield from fields
    for name, found in vars(member).items():
        function = found.fget if isinstance(found, property) else found
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        shown = name if isinstance(found, property) else _signature(function)
        must = ", required" if getattr(function, "__isabstractmethod__", False) else ""
        yield from ("", f"#### `{shown}`{must}", "", inspect.getdoc(function) or "")


def _own_doc(member: type) -> str:
    """The docstring of the class, unless a dataclass generated it."""
    said = inspect.cleandoc(member.__doc__ or "")
    return "" if said.startswith(f"{member.__name__}(") else said


def _fields(member: type) -> Iterator[str]:
    """The fields of the class in the order of the source, with their comments, up to its first method."""
    source = inspect.getsource(member)
    lines = source.splitlines()
    [found] = ast.parse(source).body
    assert isinstance(found, ast.ClassDef)
    for node in found.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        if not isinstance(node, ast.AnnAssign):
            continue
        name, kind = ast.unparse(node.target), ast.get_source_segment(source, node.annotation)
        default = node.value and ast.get_source_segment(source, node.value)
        value = f", `{default}`" if default else ""
        remark = " ".join(_remark(lines[: node.lineno - 1]))
        yield f"- `{name}`: `{kind}`{value}{': ' if remark else ''}{remark}"


def _remark(lines: list[str]) -> list[str]:
    """The comment at the end of these lines."""
    remark: list[str] = []
    for line in reversed(lines):
        if not line.startswith("    #:"):
            break
        remark.insert(0, line.removeprefix("    #:").strip())
    return remark


def _signature(function: Any) -> str:
    parameters = [
        str(parameter.replace(annotation=inspect.Parameter.empty))
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    ]
    kind = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{kind}{function.__name__}({', '.join(parameters)})"
