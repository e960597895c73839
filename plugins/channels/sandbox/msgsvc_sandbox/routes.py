"""The messenger's JSON API, which its pages and the test API use. It takes no API key."""

from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msgsvc_core.errors import ApiError, ValidationFailed
from msgsvc_sandbox.admission import Who, admitting
from msgsvc_sandbox.models import (
    Blocking,
    Bot,
    Fault,
    Message,
    NewPerson,
    OpenLink,
    Person,
    PersonChange,
    Press,
    SentText,
)
from msgsvc_sandbox.service import Messenger

#: Seconds for which a page may wait for news; longer is what proxies cut.
MAX_WAIT_S = 25

M = TypeVar("M", bound=BaseModel)

_people = TypeAdapter(list[Person])
_bots = TypeAdapter(list[Bot])
_messages = TypeAdapter(list[Message])


class SandboxApi:
    """One method per endpoint: HTTP in and out, and nothing else."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger

    def routes(self, who: Who) -> list[Route]:
        person = "/sandbox/api/people/{person_id}"
        chat = person + "/chats/{channel}"
        table = [
            ("GET", "/sandbox/api/people", self.people),
            ("POST", "/sandbox/api/people", self.add_person),
            ("PATCH", person, self.change_person),
            ("DELETE", person, self.delete_person),
            ("GET", person + "/state", self.state),
            ("POST", person + "/open", self.open),
            ("GET", chat + "/messages", self.earlier),
            ("POST", chat + "/messages", self.send_text),
            ("POST", chat + "/messages/{ref}/press", self.press),
            ("POST", chat + "/read", self.mark_read),
            ("PUT", chat + "/blocked", self.set_blocked),
            ("GET", "/sandbox/api/bots", self.bots),
            ("GET", "/sandbox/api/bots/{channel}/fault", self.fault),
            ("PUT", "/sandbox/api/bots/{channel}/fault", self.set_fault),
        ]
        return [
            Route(path, admitting(who, handler), methods=[method])
            for method, path, handler in table
        ]

    async def people(self, request: Request) -> Response:
        return _json(_people.dump_json(await self._messenger.people()))

    async def add_person(self, request: Request) -> Response:
        person = await self._messenger.add_person(await _body(request, NewPerson))
        return _json(person.model_dump_json(), status=201)

    async def change_person(self, request: Request) -> Response:
        change = await _body(request, PersonChange)
        person = await self._messenger.change_person(_person_id(request), change)
        return _json(person.model_dump_json())

    async def delete_person(self, request: Request) -> Response:
        await self._messenger.delete_person(_person_id(request))
        return Response(status_code=204)

    async def state(self, request: Request) -> Response:
        state = await self._messenger.state(
            _person_id(request),
            since=_number(request, "since", 0, most=2**62),
            wait_s=_number(request, "wait", 0, most=MAX_WAIT_S),
        )
        return _json(state.model_dump_json())

    async def open(self, request: Request) -> Response:
        link = await _body(request, OpenLink)
        opened = await self._messenger.open(_person_id(request), link)
        return _json(opened.model_dump_json())

    async def earlier(self, request: Request) -> Response:
        messages = await self._messenger.earlier(
            _person_id(request),
            _channel(request),
            before=_number(request, "before", 2**62, most=2**62),
            limit=_number(request, "limit", 50, least=1, most=200),
        )
        return _json(_messages.dump_json(messages))

    async def send_text(self, request: Request) -> Response:
        sent = await _body(request, SentText)
        message = await self._messenger.send_text(_person_id(request), _channel(request), sent.text)
        return _json(message.model_dump_json(), status=201)

    async def press(self, request: Request) -> Response:
        pressed = await _body(request, Press)
        await self._messenger.press(
            _person_id(request),
            _channel(request),
            request.path_params["ref"],
            pressed.row,
            pressed.column,
        )
        return Response(status_code=204)

    async def mark_read(self, request: Request) -> Response:
        await self._messenger.mark_read(_person_id(request), _channel(request))
        return Response(status_code=204)

    async def set_blocked(self, request: Request) -> Response:
        blocking = await _body(request, Blocking)
        await self._messenger.set_blocked(_person_id(request), _channel(request), blocking.blocked)
        return Response(status_code=204)

    async def bots(self, request: Request) -> Response:
        return _json(_bots.dump_json(await self._messenger.bots()))

    async def fault(self, request: Request) -> Response:
        fault = await self._messenger.fault(_channel(request))
        return _json(fault.model_dump_json())

    async def set_fault(self, request: Request) -> Response:
        fault = await self._messenger.set_fault(_channel(request), await _body(request, Fault))
        return _json(fault.model_dump_json())


def _person_id(request: Request) -> str:
    return str(request.path_params["person_id"])


def _channel(request: Request) -> str:
    return str(request.path_params["channel"])


async def _body(request: Request, model: type[M]) -> M:
    """The typed body. It must say that it is JSON, which a form on another site can't."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ValidationFailed("Content-Type: must be application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise _refusal(error) from error


def _refusal(error: ValidationError) -> ApiError:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "body"
    return ValidationFailed(f"{where}: {problem['msg'].removeprefix('Value error, ')}")


def _number(request: Request, name: str, default: int, *, least: int = 0, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        raise ValidationFailed(f"{name}: must be a whole number from {least} to {most}")
    return int(text)


def _json(body: str | bytes, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(body, status, headers, media_type="application/json")
