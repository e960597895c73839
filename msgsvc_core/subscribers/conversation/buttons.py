"""The data of system buttons: `~my:<action>:<part>:...`, at most 64 bytes.

No part is secret: a press only affects the person who made it, whatever data their messenger sends, since
everything is looked up among their own subscriptions by that bot.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgsvc_core.channels.inbound import OWN_BUTTON, InboundContext
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.ids import encode_base62
from msgsvc_core.kernel.values import whole_number

PREFIX = "my:"

#: Seconds after which the answer to a question about unsubscribing or resubscribing is not accepted, and it
#: is asked again.
QUESTION_TTL_S = 24 * 3600

#: Rows of choices in a message, so that it fits on a phone's screen; there are further pages.
ROWS = 8

#: Characters of a digest in a button: 47 bits, to distinguish a few names.
DIGEST_LENGTH = 8

#: The handler of a press, by its action; it gets the parts of the data.
Press = Callable[[InboundContext, Sequence[str]], Awaitable[None]]


def data(action: str, *parts: object) -> str:
    """The data of a button."""
    return OWN_BUTTON + PREFIX + ":".join([action, *map(str, parts)])


def read(ctx: InboundContext) -> tuple[str, list[str]]:
    """The action of a press, and the parts of its data."""
    action, *parts = pressed(ctx).data.removeprefix(OWN_BUTTON + PREFIX).split(":")
    return action, parts


def stamp(now_ms: int) -> str:
    """The time of a question, for `is_fresh`."""
    return f"{now_ms // 1000:x}"


def is_fresh(asked: str, now_ms: int) -> bool:
    try:
        age_s = now_ms // 1000 - int(asked, 16)
    except ValueError:
        return False
    return 0 <= age_s <= QUESTION_TTL_S


def digest(*names: str) -> str:
    """Replaces names that are too long for a button."""
    hashed = hashlib.sha256("\n".join(names).encode()).digest()
    return encode_base62(hashed[:6], 9)[-DIGEST_LENGTH:]


def page_of(text: str, count: int) -> int:
    """The number of an existing page, from 0, for `count` rows."""
    last = max(0, (count - 1) // ROWS)
    return min(whole_number(text) or 0, last)


def on_page(rows: Sequence[tuple[Button, ...]], page: int) -> list[tuple[Button, ...]]:
    return list(rows[page * ROWS : (page + 1) * ROWS])


def turning(page: int, count: int, to: Callable[[int], str]) -> Iterable[tuple[Button, ...]]:
    """A row with buttons for the previous and next page, if they exist; `to` makes their data."""
    last = max(0, (count - 1) // ROWS)
    row = []
    if page > 0:
        row.append(Button(f"‹ {page}", data=to(page - 1)))
    if page < last:
        row.append(Button(f"{page + 2} ›", data=to(page + 1)))
    return [tuple(row)] if row else []


def pressed(ctx: InboundContext) -> ButtonPressed:
    assert isinstance(ctx.update, ButtonPressed)
    return ctx.update


async def replace(ctx: InboundContext, message: OutgoingMessage, notice: str | None = None) -> None:
    """Replaces the message with the pressed button by `message`."""
    await ctx.edit(pressed(ctx).message_ref, message)
    await ctx.answer_button(notice)


def are_shown(ctx: InboundContext) -> bool:
    """Whether this messenger has buttons; otherwise users send commands."""
    return ctx.bot.capabilities.buttons == "native"
