"""The messenger's JSON API, which its pages and the test API use. It takes no API key."""

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, Response, Router
from msgsvc_core.api.uploads import Upload
from msgsvc_core.db import Database
from msgsvc_core.files.streaming import saved
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.files import content_of
from msgsvc_sandbox.models import (
    BesideFile,
    Blocking,
    Bots,
    ChangedText,
    EarlierQuery,
    Fault,
    Message,
    Messages,
    NewPerson,
    Opened,
    OpenedMiniApp,
    OpenLink,
    People,
    Person,
    PersonChange,
    PersonMiniAppQuery,
    PersonState,
    Press,
    SentText,
    StateQuery,
)
from msgsvc_sandbox.service import Messenger

PERSON = "/sandbox/api/people/{person_id}"
CHAT = PERSON + "/chats/{channel}"
FAULT = "/sandbox/api/bots/{channel}/fault"

# The messenger opens its own transactions: an update is stored before the core gets it, as on a real
# platform, and the core uses its own transaction.
OPEN: dict[str, Any] = {"public": True, "holds_connection": False}

router = Router(
    area="sandbox",
    description="The messenger in the browser, for tests and demonstrations.",
    group="developers",
)


def endpoints(admission: Admission) -> Sequence[Endpoint]:
    """The API, with the access check."""
    return [_admitting(admission, endpoint) for endpoint in router.endpoints]


def _admitting(admission: Admission, endpoint: Endpoint) -> Endpoint:
    handler = endpoint.handler

    @wraps(handler)
    async def admitted(ctx: Context, **arguments: Any) -> Any:
        admission.check(endpoint.method, ctx.client_ip, ctx.headers)
        return await handler(ctx, **arguments)

    return replace(endpoint, handler=admitted, errors=(Forbidden, *endpoint.errors))


@router.get("/sandbox/api/people", **OPEN)
async def sandbox_people(ctx: Context, messenger: Messenger) -> People:
    """Lists the people of the sandbox messenger."""
    return People(data=await messenger.people())


@router.post("/sandbox/api/people", status=201, **OPEN)
async def sandbox_add_person(ctx: Context, body: NewPerson, messenger: Messenger) -> Person:
    """Creates a person."""
    return await messenger.add_person(body)


@router.patch(PERSON, errors=(NotFound,), **OPEN)
async def sandbox_change_person(
    ctx: Context, person_id: str, body: PersonChange, messenger: Messenger
) -> Person:
    """Changes a person's name, username or language."""
    return await messenger.change_person(person_id, body)


@router.delete(PERSON, errors=(NotFound,), **OPEN)
async def sandbox_delete_person(ctx: Context, person_id: str, messenger: Messenger) -> None:
    """Deletes a person's account; bots that write to it get `chat_not_found`."""
    await messenger.delete_person(person_id)


@router.get(PERSON + "/state", errors=(NotFound,), **OPEN)
async def sandbox_state(
    ctx: Context, person_id: str, query: StateQuery, messenger: Messenger
) -> PersonState:
    """Shows what changed for a person since a revision; waits for a change if asked to."""
    return await messenger.state(person_id, query.since, query.wait)


@router.post(PERSON + "/open", errors=(NotFound,), **OPEN)
async def sandbox_open(
    ctx: Context, person_id: str, body: OpenLink, messenger: Messenger
) -> Opened:
    """Opens a start link and presses Start."""
    return await messenger.open(person_id, body)


@router.get(CHAT + "/mini-app", errors=(NotFound,), **OPEN)
async def sandbox_mini_app(
    ctx: Context, person_id: str, channel: str, query: PersonMiniAppQuery, messenger: Messenger
) -> OpenedMiniApp:
    """Opens a bot's mini app: shows what its page would be given."""
    return await messenger.open_mini_app(person_id, channel, query.payload)


@router.get(CHAT + "/messages", errors=(NotFound,), **OPEN)
async def sandbox_messages(
    ctx: Context, person_id: str, channel: str, query: EarlierQuery, messenger: Messenger
) -> Messages:
    """Shows earlier messages of a chat."""
    return Messages(data=await messenger.earlier(person_id, channel, query.before, query.limit))


@router.post(CHAT + "/messages", status=201, errors=(NotFound, Conflict), **OPEN)
async def sandbox_send(
    ctx: Context, person_id: str, channel: str, body: SentText, messenger: Messenger
) -> Message:
    """Writes to a bot."""
    return await messenger.send_text(person_id, channel, body.text, body.reply_to)


@router.patch(CHAT + "/messages/{ref}", errors=(NotFound, Conflict), **OPEN)
async def sandbox_edit(
    ctx: Context, person_id: str, channel: str, ref: str, body: ChangedText, messenger: Messenger
) -> Message:
    """Changes what a person wrote."""
    return await messenger.edit_text(person_id, channel, ref, body.text)


@router.post(CHAT + "/files", status=201, errors=(NotFound, Conflict), **OPEN)
async def sandbox_send_file(
    ctx: Context,
    person_id: str,
    channel: str,
    query: BesideFile,
    upload: Upload,
    messenger: Messenger,
) -> Message:
    """Sends a bot a file, the field `file` of multipart/form-data, and a text beside it."""
    return await messenger.send_file(
        person_id, channel, upload.filename, upload.file, text=query.text
    )


@router.get(
    PERSON + "/files/{file_id}", errors=(NotFound,), media_type="application/octet-stream", **OPEN
)
async def sandbox_file(
    ctx: Context, person_id: str, file_id: str, db: Database, messenger: Messenger
) -> Response:
    """Streams a file that a person attached."""
    file = await messenger.file(person_id, file_id)
    pieces = content_of(db, file)
    return saved(pieces, filename=file.filename, mime_type=file.mime_type, size=file.size)


@router.post(CHAT + "/messages/{ref}/press", errors=(NotFound, Conflict), **OPEN)
async def sandbox_press(
    ctx: Context, person_id: str, channel: str, ref: str, body: Press, messenger: Messenger
) -> None:
    """Presses a button that carries data."""
    await messenger.press(person_id, channel, ref, body.row, body.column)


@router.post(CHAT + "/read", errors=(NotFound,), **OPEN)
async def sandbox_read(ctx: Context, person_id: str, channel: str, messenger: Messenger) -> None:
    """Marks a chat's messages as read."""
    await messenger.mark_read(person_id, channel)


@router.put(CHAT + "/blocked", errors=(NotFound, Conflict), **OPEN)
async def sandbox_block(
    ctx: Context, person_id: str, channel: str, body: Blocking, messenger: Messenger
) -> None:
    """Blocks or unblocks a bot."""
    await messenger.set_blocked(person_id, channel, body.blocked)


@router.get("/sandbox/api/bots", **OPEN)
async def sandbox_bots(ctx: Context, messenger: Messenger) -> Bots:
    """Lists the bots and their simulated faults."""
    return Bots(data=await messenger.bots())


@router.get(FAULT, errors=(NotFound,), **OPEN)
async def sandbox_fault(ctx: Context, channel: str, messenger: Messenger) -> Fault:
    """Shows the simulated fault of a channel."""
    return await messenger.fault(channel)


@router.put(FAULT, errors=(NotFound,), **OPEN)
async def sandbox_set_fault(ctx: Context, channel: str, body: Fault, messenger: Messenger) -> Fault:
    """Makes a channel fail, be slow or answer 429; `{}` ends the fault."""
    return await messenger.set_fault(channel, body)
