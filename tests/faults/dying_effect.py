"""A plugin whose endpoint has one effect, and kills its own process before, in or after it, once."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, Router
from msgsvc_core.messages.answers import QueuedMessageAnswer
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.service import Messages
from msgsvc_core.plugins.hookspecs import hookimpl

router = Router(area="messages")


class EffectBody(BaseModel):
    """A message, when to die, and the file that remembers that somebody has."""

    subscriber_id: str
    text: str
    die: Literal["before", "in", "after"]
    died: Path


@router.post("/v1/fault/effect", status=202)
async def effect(ctx: Context, body: EffectBody, messages: Messages) -> QueuedMessageAnswer:
    """Queues a message, and dies with it the first time."""
    if body.die == "before":
        _die_once(body.died)
    message = await messages.queue(
        ctx.tx, ctx.project_id, SendBody(subscriber_id=body.subscriber_id, text=body.text)
    )
    if body.die == "in":
        _die_once(body.died)
    elif body.die == "after":
        # Committed, and nobody has been answered yet.
        ctx.tx.on_commit(lambda: _die_once(body.died))
    return QueuedMessageAnswer(message_id=message.message_id)


def _die_once(died: Path) -> None:
    try:
        died.open("x").close()
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints
