"""Actors of the tour: people in the messengers, their browsers, and the site's back end."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from msgsvc_devkit.demo.stage import StepFailed, appears

#: Hidden fields of a form.
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


class Api:
    """The integrator's back end, with its API key."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of a response; `key` is an Idempotency-Key."""
        headers = {} if key is None else {"Idempotency-Key": key}
        async with self._http.request(method, path, json=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.status != 204 else None

    async def get(self, path: str) -> Any:
        return await self._expect("GET", path, 200)

    async def post(self, path: str, body: Any, status: int = 201) -> Any:
        return await self._expect("POST", path, status, body)

    async def patch(self, path: str, body: Any, status: int = 200) -> Any:
        return await self._expect("PATCH", path, status, body)

    async def _expect(self, method: str, path: str, status: int, body: Any = None) -> Any:
        found, answer = await self.call(method, path, body)
        if found != status:
            raise StepFailed(f"{method} {path} answered {found}: {answer}")
        return answer

    async def event(self, name: str, **fields: Any) -> dict[str, Any]:
        """Waits until the feed has an event of that name whose data has these fields."""

        async def look() -> dict[str, Any] | None:
            events = (await self.get(f"/v1/events?event={name}&limit=20"))["data"]
            return next((e["data"] for e in events if _has(e["data"], fields)), None)

        return await appears(f"event {name}", look)


class Person:
    """A person with an account in the sandbox messenger."""

    def __init__(self, http: aiohttp.ClientSession, person_id: str, name: str) -> None:
        self._http = http
        self._path = f"/sandbox/api/people/{person_id}"
        self.name = name

    @classmethod
    async def arrive(
        cls, http: aiohttp.ClientSession, name: str, username: str, lang: str
    ) -> "Person":
        body = {"name": name, "username": username, "lang": lang}
        async with http.post("/sandbox/api/people", json=body) as answer:
            if answer.status != 201:
                raise StepFailed(f"no person could be made: {await answer.text()}")
            return cls(http, (await answer.json())["person_id"], name)

    async def open(self, link: str) -> None:
        """Opens a bot's link and presses Start."""
        await self._post("/open", {"link": link})

    async def say(self, channel: str, text: str) -> None:
        """Writes to a bot."""
        await self._post(f"/chats/{channel}/messages", {"text": text})

    async def sees(self, channel: str, text: str, *, button: str | None = None) -> dict[str, Any]:
        """Waits for a message of the bot that contains `text` and has the button; newest first."""

        async def look() -> dict[str, Any] | None:
            for message in await self.messages(channel):
                words = "".join(span["text"] for span in message["spans"])
                if text in words and (button is None or _place(message, button)):
                    return message
            return None

        return await appears(f"{self.name} in {channel}: a message with {text!r}", look)

    async def press(self, message: Mapping[str, Any], button: str) -> None:
        """Presses a button by its label."""
        place = _place(message, button)
        if place is None:
            raise StepFailed(f"there is no button {button!r} under the message")
        path = f"/chats/{message['channel']}/messages/{quote(message['ref'])}/press"
        await self._post(path, {"row": place[0], "column": place[1]})

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        """The bot's messages in that chat, newest first."""
        async with self._http.get(f"{self._path}/state") as answer:
            found = (await answer.json())["messages"]
        from_bot = [m for m in found if m["channel"] == channel and m["author"] == "bot"]
        return sorted(from_bot, key=lambda m: (m["sent_at_ms"], m["revision"]), reverse=True)

    async def _post(self, path: str, body: Any) -> None:
        async with self._http.post(self._path + path, json=body) as answer:
            if answer.status >= 400:
                raise StepFailed(f"the messenger refused {path}: {await answer.text()}")


class Browser:
    """A person's browser at the example site."""

    def __init__(self, http: aiohttp.ClientSession, site_url: str) -> None:
        self._http = http
        self._site_url = site_url
        #: Where the button asks how the sign-in stands.
        self.status_url = ""

    async def begin(self) -> dict[str, Any]:
        """Presses the sign-in button; returns what it shows."""
        async with self._http.post(f"{self._site_url}/signin") as answer:
            if answer.status != 200:
                raise StepFailed(f"the site did not begin a sign-in: {await answer.text()}")
            begun: dict[str, Any] = await answer.json()
            self.status_url = self._site_url + begun["status_url"]
            return begun

    async def waits_for(self, wanted: str) -> None:
        """Asks, as the button does, until the sign-in has the status `wanted`."""

        async def look() -> str | None:
            async with self._http.get(self.status_url, params={"wait": 5}) as answer:
                found: str = (await answer.json())["status"]
                return found if found == wanted else None

        await appears(f"the site's status {wanted!r}", look)

    async def finish(self) -> int:
        """Goes where the button leads once the person has confirmed; returns the HTTP status."""
        async with self._http.get(f"{self.status_url}/finish") as answer:
            return answer.status

    async def follow(self, message: Mapping[str, Any]) -> int:
        """Opens the link button of the bot's confirmation; returns the site's HTTP status."""
        urls = [b["url"] for row in message["buttons"] for b in row if b.get("url")]
        if not urls:
            raise StepFailed("the confirmation has no button that leads back to the site")
        async with self._http.get(urls[0]) as answer:
            return answer.status

    async def read(self, url: str) -> str:
        """The HTML of a page."""
        async with self._http.get(url) as answer:
            return await answer.text()

    async def press(self, url: str) -> int:
        """Opens a page with one form and submits it; returns the HTTP status of the response."""
        hidden = dict(_HIDDEN.findall(await self.read(url)))
        async with self._http.post(url, data=hidden) as answer:
            return answer.status

    async def signed_in_as(self) -> str | None:
        """The first name of the signed-in person; None if nobody is signed in."""
        async with self._http.get(f"{self._site_url}/session.json") as answer:
            name: str | None = (await answer.json()).get("first_name")
            return name


def _place(message: Mapping[str, Any], button: str) -> tuple[int, int] | None:
    for row, buttons in enumerate(message["buttons"]):
        for column, one in enumerate(buttons):
            if one["text"] == button:
                return row, column
    return None


def _has(data: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(data.get(name) == value for name, value in fields.items())
