"""The sandbox messenger over HTTP, for tests and programs outside the service's process."""

from collections.abc import Mapping
from typing import IO, Any, TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel

from msgsvc_core.kernel.errors import CORE_ERRORS, ApiError, InternalError
from msgsvc_sandbox.models import (
    Blocking,
    ChangedText,
    Fault,
    Message,
    NewPerson,
    Opened,
    OpenedMiniApp,
    OpenLink,
    Person,
    PersonState,
    Press,
    SentText,
)

#: Seconds after the requested wait before a call times out.
GRACE_S = 10

_BY_CODE = {error.code: error for error in CORE_ERRORS}

M = TypeVar("M", bound=BaseModel)


class HttpMessenger:
    """The same calls as `Messenger`, with the same errors, against `<base_url>/sandbox/api`."""

    def __init__(self, base_url: str) -> None:
        self._api = f"{base_url.rstrip('/')}/sandbox/api"
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def add_person(self, new: NewPerson) -> Person:
        return await self._request(Person, "POST", "/people", new)

    async def state(self, person_id: str, since: int = 0, wait_s: float = 0) -> PersonState:
        query = {"since": str(since), "wait": str(min(25, int(wait_s)))}
        path = f"{_person(person_id)}/state"
        return await self._request(PersonState, "GET", path, query=query, wait_s=wait_s)

    async def open(self, person_id: str, link: OpenLink) -> Opened:
        return await self._request(Opened, "POST", f"{_person(person_id)}/open", link)

    async def open_mini_app(self, person_id: str, channel: str, payload: str = "") -> OpenedMiniApp:
        path = f"{_chat(person_id, channel)}/mini-app"
        return await self._request(OpenedMiniApp, "GET", path, query={"payload": payload})

    async def send_text(
        self, person_id: str, channel: str, text: str, reply_to: str | None = None
    ) -> Message:
        path = f"{_chat(person_id, channel)}/messages"
        return await self._request(Message, "POST", path, SentText(text=text, reply_to=reply_to))

    async def send_file(
        self, person_id: str, channel: str, filename: str, content: IO[bytes], text: str = ""
    ) -> Message:
        path, form = f"{_chat(person_id, channel)}/files", aiohttp.FormData(quote_fields=False)
        form.add_field("file", content, filename=filename)
        return Message.model_validate(await self._call("POST", path, form, {"text": text}))

    async def edit_text(self, person_id: str, channel: str, ref: str, text: str) -> Message:
        path = f"{_chat(person_id, channel)}/messages/{quote(ref, safe='')}"
        return await self._request(Message, "PATCH", path, ChangedText(text=text))

    async def press(self, person_id: str, channel: str, ref: str, row: int, column: int) -> None:
        path = f"{_chat(person_id, channel)}/messages/{quote(ref, safe='')}/press"
        await self._call("POST", path, Press(row=row, column=column))

    async def set_blocked(self, person_id: str, channel: str, blocked: bool) -> None:
        path = f"{_chat(person_id, channel)}/blocked"
        await self._call("PUT", path, Blocking(blocked=blocked))

    async def set_fault(self, channel: str, fault: Fault) -> Fault:
        return await self._request(Fault, "PUT", f"/bots/{quote(channel, safe='')}/fault", fault)

    async def _request(
        self,
        model: type[M],
        method: str,
        path: str,
        body: BaseModel | None = None,
        *,
        query: Mapping[str, str] | None = None,
        wait_s: float = 0,
    ) -> M:
        return model.model_validate(await self._call(method, path, body, query, wait_s))

    async def _call(
        self,
        method: str,
        path: str,
        body: BaseModel | aiohttp.FormData | None = None,
        query: Mapping[str, str] | None = None,
        wait_s: float = 0,
    ) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        async with self._session.request(
            method,
            self._api + path,
            params=query,
            json=body.model_dump(mode="json") if isinstance(body, BaseModel) else None,
            data=body if isinstance(body, aiohttp.FormData) else None,
            timeout=aiohttp.ClientTimeout(total=wait_s + GRACE_S),
        ) as answer:
            if answer.status == 204:
                return None
            data = await answer.json()
            if answer.status >= 400:
                raise _refusal(data)
            return data


def _refusal(envelope: Mapping[str, Any]) -> ApiError:
    kind = _BY_CODE.get(envelope.get("code", ""), InternalError)
    return kind(envelope.get("error"))


def _person(person_id: str) -> str:
    return f"/people/{quote(person_id, safe='')}"


def _chat(person_id: str, channel: str) -> str:
    return f"{_person(person_id)}/chats/{quote(channel, safe='')}"
