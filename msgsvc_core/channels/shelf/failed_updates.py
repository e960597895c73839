"""Updates whose handler failed, as items of a shelf. They are kept as the channel read them: no channel can
be asked for an update again, and many take nothing anyway."""

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.updates import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)

#: How texts that are no Unicode survive: they may be why a handler failed.
_ERRORS = "surrogatepass"

#: The kinds of updates that have a handler.
KINDS: dict[str, type[Update]] = {
    kind.__name__: kind
    for kind in (
        Started,
        MessageReceived,
        MessageEdited,
        ButtonPressed,
        Blocked,
        Unblocked,
        BotCreated,
        ChatMoved,
        DeliveryReported,
    )
}

#: How the fields that are not plain values are read.
_READ: dict[str, Callable[[Any], Any]] = {
    "user": lambda found: ChannelUser(**found),
    "files": lambda found: tuple(ReceivedFile(**each) for each in found),
    "refers_to": tuple,
    "reason": Reason,
}


def kind_of(update: Update) -> str:
    """The name in `KINDS` of an update's class, or of the one that a channel has derived its own from."""
    return next(kind.__name__ for kind in type(update).__mro__ if kind.__name__ in KINDS)


def item_of(update: Update, error: Exception) -> Unreadable:
    """The item that keeps an update, without fields that a channel has added to its class."""
    known = {each.name for each in fields(KINDS[kind_of(update)])}
    values = {name: value for name, value in asdict(update).items() if name in known}
    shown = json.dumps(values, ensure_ascii=False, indent=2)
    return Unreadable(
        update_id=update.update_id,
        user=update.user,
        raw=shown.encode("utf-8", _ERRORS),
        reason=UnreadableReason.FAULT,
        detail=f"the service failed on it ({type(error).__name__})",
        kind="report" if isinstance(update, DeliveryReported) else "update",
    )


def update_of(kind: str, raw: bytes) -> Update:
    """The update in an item. Raises ValueError, TypeError or KeyError for one that another release wrote, and
    that this one does not know."""
    found = json.loads(raw.decode("utf-8", _ERRORS))
    return KINDS[kind](**{name: _READ.get(name, _same)(value) for name, value in found.items()})


def _same(value: Any) -> Any:
    return value
