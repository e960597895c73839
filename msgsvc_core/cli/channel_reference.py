"""The page of the reference on what a channel is made of, from the code that says it."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from msgsvc_core import channels
from msgsvc_core.channels import http
from msgsvc_core.channels.asking import CHECK_TIMEOUT_S
from msgsvc_core.channels.calls import MAX_AGE_S
from msgsvc_core.content import markup

#: What is on the page, part by part.
PARTS: dict[str, tuple[Any, ...]] = {
    "What a channel implements": (channels.Channel,),
    "What it says of itself": (
        channels.ChannelKind,
        channels.Capabilities,
        channels.Pace,
        channels.ChannelIdentity,
        channels.ChannelHealth,
        channels.WebhookHealth,
        channels.WebhookHealth,
        channels.BotProfile,
        channels.BotCommand,
    ),
    "What it sends": (channels.OutgoingMessage, channels.Button, channels.Media),
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
        channels.ChannelUser,
        channels.Polled,
        channels.WebhookCall,
        channels.WebhookAnswer,
        channels.MiniAppUser,
    ),
    "How it fails": (
        channels.DeliveryError,
        channels.Reason,
        channels.ChannelNotReady,
        channels.InvalidWebhook,
        channels.InvalidMiniApp,
    ),
    "What it may use": (
        http.PlatformHttp,
        http.PlatformAnswer,
        channels.ChannelContext,
        channels.MediaSource,
        channels.MediaFile,
        markup.Span,
        markup.to_spans,
        markup.visible_length,
        markup.utf16_length,
    ),
}

_FIELD = re.compile(r"    (\w+): ([^=\n]+?)(?: = (.+))?")


def channel_page() -> Iterator[str]:
    """The lines of `channels.md`."""
    yield from ("", "# Channels", "")
    yield (
        "All of it is imported from `msgsvc_core.channels`, `PlatformHttp` from `msgsvc_core.channels.http`"
        " and markup from `msgsvc_core.content.markup`. The guide is"
        " [write a channel](../guides/write-a-channel.md)."
    )
    yield from ("", "## Time, and what counts", "")
    yield from _of_time()
    for title, members in PARTS.items():
        yield from ("", f"## {title}")
        for member in members:
            yield from _member(member)


def _of_time() -> Iterator[str]:
    default_s = inspect.signature(http.PlatformHttp).parameters["timeout_s"].default
    yield (
        f"- A call may take as long as its platform does: `PlatformHttp` ends it after {default_s:.0f} s"
        " unless told otherwise, and the core ends none. While it lasts, nothing else is sent to its chat."
    )
    yield "- `poll_updates` waits for half a minute at most."
    yield f"- `check` gets {CHECK_TIMEOUT_S:.0f} s."
    yield (
        f"- What a bot says by itself is not sent any more after {MAX_AGE_S} s; a message waits up to"
        " `limits.delivery_hours`."
    )
    yield (
        "- `Pace` counts calls of `send`, `edit`, `delete` and `answer_button`, one each, whatever they make"
        " of it: for the bot all of them, for a chat and a group all but `answer_button`. `check`,"
        " `poll_updates`, `set_webhook`, `set_commands` and `fetch_file` are not counted. A message that is"
        " sent again to where its chat moved is one call."
    )
    yield (
        "- Pages of a channel's own, e.g. for a mini app or a platform's redirects, are routes of the hook"
        " [`register_pages`](hooks.md); calls of the platform come to `/hooks/<key>` without one."
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
    """Its docstring; not that which dataclasses make up."""
    said = inspect.cleandoc(member.__doc__ or "")
    return "" if said.startswith(f"{member.__name__}(") else said


def _fields(member: type) -> Iterator[str]:
    """Its fields and members as the source has them, each with the comment above it."""
    remark: list[str] = []
    for line in inspect.getsource(member).splitlines():
        if line.startswith(("    def ", "    @", "    async ")):
            return
        if line.startswith("    #:"):
            remark.append(line.removeprefix("    #:").strip())
            continue
        found = _FIELD.fullmatch(line)
        if found:
            name, kind, default = found.groups()
            value = f", `{default}`" if default else ""
            yield f"- `{name}`: `{kind}`{value}{': ' if remark else ''}{' '.join(remark)}"
        remark = []


def _signature(function: Any) -> str:
    parameters = [
        str(parameter.replace(annotation=inspect.Parameter.empty))
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    ]
    kind = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{kind}{function.__name__}({', '.join(parameters)})"
