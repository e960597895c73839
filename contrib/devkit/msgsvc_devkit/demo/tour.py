"""The tour: runs the main use cases against the demo and checks the result of each."""

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
from rich.console import Console

from msgsvc_devkit.demo.actors import Api, Browser, Person
from msgsvc_devkit.demo.conversations import answer_ticket, fill_in_form, open_dashboard
from msgsvc_devkit.demo.openid import sign_in_with_openid
from msgsvc_devkit.demo.parts import PROJECT, SLUG, Parts
from msgsvc_devkit.demo.stage import Stage, StepFailed, appears, expect

#: Name, username and language of the two people of the tour.
ANN, BORIS = ("Ann", "ann", "en"), ("Борис", "boris", "ru")


@dataclass(slots=True)
class Cast:
    """The people, clients and processes that the steps use."""

    stage: Stage
    parts: Parts
    api: Api
    plain: aiohttp.ClientSession
    ann: Person
    boris: Person
    new_browser: Callable[..., Awaitable[Browser]]


async def play(console: Console, parts: Parts) -> None:
    """Runs all steps. Raises `StepFailed` at the first failure."""
    console.print("[bold]A tour of msgsvc[/bold], one line per step")
    stage = Stage(console)
    started = time.perf_counter()
    async with AsyncExitStack() as stack:
        cast = await _gather(stage, parts, stack)
        subscriber_id = await _subscribe(cast)
        await _notify(cast, subscriber_id)
        await _template(cast, subscriber_id)
        await _choose(cast, subscriber_id)
        await fill_in_form(cast)
        await answer_ticket(cast)
        await _static_link(cast)
        await _button(cast)
        await _cancel(cast)
        await _qr_code(cast)
        await _verify_twice(cast)
        await sign_in_with_openid(cast)
        await _webhooks(cast)
        await open_dashboard(cast)
    seconds = time.perf_counter() - started
    console.print(f"[green]All {stage.steps} steps held[/green], in {seconds:.1f} s")


async def _gather(stage: Stage, parts: Parts, stack: AsyncExitStack) -> Cast:
    async def browser(lang: str = "en") -> Browser:
        # By default aiohttp ignores cookies of IP addresses such as 127.0.0.1.
        jar = aiohttp.CookieJar(unsafe=True)
        reads = {"Accept-Language": lang}
        http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar, headers=reads))
        return Browser(http, parts.site_url)

    key = {"Authorization": f"Bearer {parts.api_key}"}
    api = await stack.enter_async_context(aiohttp.ClientSession(parts.service_url, headers=key))
    plain = await stack.enter_async_context(aiohttp.ClientSession(parts.service_url))
    async with stage.step("Two people open the messenger: Ann (en) and Борис (ru)"):
        ann = await Person.arrive(plain, *ANN)
        boris = await Person.arrive(plain, *BORIS)
    return Cast(stage, parts, Api(api), plain, ann, boris, browser)


async def _subscribe(cast: Cast) -> str:
    async with cast.stage.step("Ann subscribes with a link that sets a tag: subscription.created"):
        links = (await cast.api.post("/v1/subscribers/links", {"tags": ["tour"]}))["links"]
        await cast.ann.open(links["messenger_a"])
        await cast.ann.sees("messenger_a", PROJECT)
        event = await cast.api.event("subscription.created", first_name="Ann")
        expect(event["tags"], ["tour"], "the tags of the link")
    return str(event["subscriber_id"])


async def _notify(cast: Cast, subscriber_id: str) -> None:
    body = {
        "subscriber_id": subscriber_id,
        "text": "Your book **is ready**. When will you come?",
        "format": "markdown",
        "buttons": [[{"text": "Today", "data": "today"}, {"text": "Tomorrow", "data": "tomorrow"}]],
        "metadata": {"book": 42},
    }
    async with cast.stage.step(
        "A notification is sent twice with one idempotency key: one message"
    ):
        key = secrets.token_hex(8)
        first = await cast.api.call("POST", "/v1/send", body, key=key)
        again = await cast.api.call("POST", "/v1/send", body, key=key)
        expect(first[0], 202, "status of POST /v1/send")
        expect(again, first, "the answer to the repeated call")
    async with cast.stage.step("The message arrives in Ann's chat: delivery.success"):
        message = await cast.ann.sees("messenger_a", "Your book is ready", button="Today")
        event = await cast.api.event("delivery.success", message_id=first[1]["message_id"])
        expect(event["metadata"], {"book": 42}, "metadata")
    async with cast.stage.step("Ann presses the button Today: button.clicked"):
        await cast.ann.press(message, "Today")
        await cast.api.event("button.clicked", data="today", subscriber_id=subscriber_id)


async def _template(cast: Cast, subscriber_id: str) -> None:
    template = {
        "key": "due",
        "text": {
            "en": "{{ name }}, **{{ book }}** is due",
            "ru": "{{ name }}, пора вернуть «{{ book }}»",
        },
        "format": "markdown",
        "buttons": [[{"text": {"en": "Keep it", "ru": "Продлить"}, "data": "keep {{ book }}"}]],
    }
    async with cast.stage.step("A template with a button is sent in a batch: batch.completed"):
        await cast.api.post("/v1/templates", template)
        variables = {"name": "Ann*", "book": "Emma"}
        send = {"subscriber_id": subscriber_id, "template": "due", "variables": variables}
        batch = await cast.api.post("/v1/send/batch", {"messages": [send]}, status=202)
        message = await cast.ann.sees("messenger_a", "Ann*, Emma is due", button="Keep it")
        event = await cast.api.event("batch.completed", batch_id=batch["batch_id"])
        expect((event["sent"], event["total"]), (1, 1), "messages sent")
    async with cast.stage.step("Ann presses Keep it: button.clicked carries the book's name"):
        await cast.ann.press(message, "Keep it")
        await cast.api.event("button.clicked", data="keep Emma", subscriber_id=subscriber_id)


async def _choose(cast: Cast, subscriber_id: str) -> None:
    async with cast.stage.step(
        "Ann sends /settings and grants a permission; the message is edited"
    ):
        title = {"en": "New books", "ru": "Новые книги"}
        await cast.api.post("/v1/permissions", {"key": "new_books", "title": title})
        await cast.ann.say("messenger_a", "/settings")
        settings = await cast.ann.sees("messenger_a", "New books: off")
        await cast.ann.press(settings, "☐ New books: off")
        await cast.api.event("subscription.permission_changed", permission="new_books")
        changed = await cast.ann.sees("messenger_a", "New books: on")
        expect(changed["ref"], settings["ref"], "the edited message")
    async with cast.stage.step("Ann unsubscribes with /stop and resubscribes with /start"):
        await cast.ann.say("messenger_a", "/stop")
        await cast.api.event("subscription.deleted", reason="stop", subscriber_id=subscriber_id)
        await cast.ann.say("messenger_a", "/start")
        path = f"/v1/subscribers/{subscriber_id}"

        async def active() -> bool:
            return bool((await cast.api.get(path))["status"] == "active")

        await appears("her subscription", active)
        found = await cast.api.get(path)
        expect(found["permissions"], ["new_books"], "the permissions she had granted")


async def _static_link(cast: Cast) -> None:
    async with cast.stage.step("Static link: Ann opens it, presses Yes and is signed in"):
        browser = await cast.new_browser()
        links = (await cast.api.get(f"/v1/auth/links/{SLUG}"))["links"]
        await cast.ann.open(links["messenger_a"])
        await _press_yes(cast.ann, "messenger_a", "Yes")
        expect(await browser.follow(await _confirmed(cast.ann, "messenger_a")), 200, "the site")
        expect(await browser.signed_in_as(), "Ann", "whom the site greets")


async def _button(cast: Cast) -> None:
    browser = await cast.new_browser("ru")
    async with cast.stage.step("Sign-in button: Борис opens his messenger, chooses the number"):
        begun = await browser.begin()
        await cast.boris.open(begun["links"]["messenger_b"])
        await _press_yes(cast.boris, "messenger_b", str(begun["match_number"]))
        event = await cast.api.event("auth.completed", first_name="Борис")
        if not event["state"]:
            raise StepFailed("auth.completed does not carry the state")
    async with cast.stage.step("Another browser can't finish his sign-in"):
        stranger = await cast.new_browser()
        stranger.status_url = browser.status_url
        expect(await stranger.finish(), 400, "the site's answer to the stranger")
        expect(await stranger.signed_in_as(), None, "whom the site greets")
    async with cast.stage.step("His own browser goes on by itself, and Борис is signed in"):
        await browser.waits_for("confirmed")
        expect(await browser.finish(), 200, "the site")
        expect(await browser.signed_in_as(), "Борис", "whom the site greets")


async def _cancel(cast: Cast) -> None:
    async with cast.stage.step("Борис presses Cancel: the button's status becomes denied"):
        browser = await cast.new_browser("ru")
        begun = await browser.begin()
        await cast.boris.open(begun["links"]["messenger_a"])
        question = await cast.boris.sees("messenger_a", PROJECT, button="Отмена")
        await cast.boris.press(question, "Отмена")
        await browser.waits_for("denied")
        expect(await browser.finish(), 400, "the site")
        expect(await browser.signed_in_as(), None, "whom the site greets")


async def _qr_code(cast: Cast) -> None:
    async with cast.stage.step("QR code: the service draws it, and Ann's phone opens its link"):
        session = await cast.api.post("/v1/auth/session", {"state": "screen"})
        async with cast.plain.get(session["qr"]["messenger_a"]) as answer:
            svg = await answer.text()
            expect((answer.status, "<svg" in svg), (200, True), "the QR code")
        await cast.ann.open(session["links"]["messenger_a"])
        await _press_yes(cast.ann, "messenger_a", "Yes")
        path = f"/v1/auth/session/{session['session_id']}/status?wait=5"

        async def confirmed() -> bool:
            return bool((await cast.api.get(path))["status"] == "confirmed")

        await appears("her confirmation", confirmed)


async def _verify_twice(cast: Cast) -> None:
    async with cast.stage.step(
        "The site verifies a code and receives the subscriber and the state"
    ):
        session = await cast.api.post("/v1/auth/session", {"state": "tour"})
        await cast.ann.open(session["links"]["messenger_b"])
        await _press_yes(cast.ann, "messenger_b", "Yes")
        path = f"/v1/auth/session/{session['session_id']}/status"

        async def code() -> str | None:
            found: str | None = (await cast.api.get(path)).get("code")
            return found

        body = {"code": await appears("the code", code)}
        person = await cast.api.post("/v1/auth/verify", body, status=200)
        expect((person["first_name"], person["state"]), ("Ann", "tour"), "name and state")
    async with cast.stage.step("The same code is rejected the second time: auth_code_used"):
        status, answer = await cast.api.call("POST", "/v1/auth/verify", body)
        expect((status, answer["code"]), (409, "auth_code_used"), "the second verify")


async def _webhooks(cast: Cast) -> None:
    wanted = {"subscription.created", "delivery.success", "button.clicked", "auth.completed"}
    events_url = f"{cast.parts.site_url}/events.json"
    async with cast.stage.step(
        "The site received all these events by webhook, with valid signatures"
    ):

        async def heard() -> list[dict[str, Any]] | None:
            async with cast.plain.get(events_url) as answer:
                found = json.loads(await answer.text())
            names = [one["event"] for one in found]
            complete = wanted <= set(names) and names.count("auth.completed") == 5
            return found if complete else None

        received = await appears("webhooks of all four events", heard)
        expect({one["signature_valid"] for one in received}, {True}, "signatures")
        ids = [one["delivery_id"] for one in received]
        expect(len(ids), len(set(ids)), "distinct delivery ids")
    async with cast.stage.step("The delivery log lists each webhook and its response, 204"):
        [endpoint] = (await cast.api.get("/v1/webhooks"))["data"]
        journal = f"/v1/webhooks/{endpoint['webhook_id']}/deliveries?status=delivered&limit=100"

        async def written() -> list[dict[str, Any]] | None:
            deliveries = (await cast.api.get(journal))["data"]
            return deliveries if set(ids) <= {one["delivery_id"] for one in deliveries} else None

        deliveries = await appears("every delivery that arrived", written)
        last = {one["attempts"][-1]["status_code"] for one in deliveries}
        expect(last, {204}, "the site's answers")
    async with cast.stage.step("The site rejects a webhook with a forged signature"):
        forged = {"X-Service-Signature": f"t={int(time.time())},v1={'0' * 64}"}
        url = f"{cast.parts.site_url}/webhooks"
        async with cast.plain.post(url, data=b'{"event":"x","data":{}}', headers=forged) as answer:
            expect(answer.status, 400, "the answer to the forgery")


async def _press_yes(person: Person, channel: str, yes: str) -> None:
    question = await person.sees(channel, PROJECT, button=yes)
    await person.press(question, yes)


async def _confirmed(person: Person, channel: str) -> dict[str, Any]:
    """The bot's confirmation, after it was edited to show a button with the link to the site."""

    async def look() -> dict[str, Any] | None:
        for message in await person.messages(channel):
            if any(button.get("url") for row in message["buttons"] for button in row):
                return message
        return None

    return await appears(f"{person.name}: the confirmation in {channel}", look)
