"""The fake's HTTP API: the calls of Meta's OpenAPI document that the plugin makes, strictly validated."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import BodyPartReader, web

from msgsvc_devkit.platforms.whatsapp import checks
from msgsvc_devkit.platforms.whatsapp.calls import Call
from msgsvc_devkit.platforms.whatsapp.refusals import (
    Refused,
    malformed,
    no_such_object,
    token_refused,
)

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.whatsapp.platform import FakeWhatsApp

#: Maximum bytes of a request.
MOST_BYTES = 110 * 1024 * 1024

#: The JSON of a request.
BODY: web.RequestKey[Any] = web.RequestKey("body", object)

#: Fields of a phone number that can be asked for (Graph API, WhatsApp Business Phone Number). The fake has
#: values for the first five of them, and for the health.
FIELDS = frozenset(
    {
        "id",
        "display_phone_number",
        "verified_name",
        "quality_rating",
        "webhook_configuration",
        "account_mode",
        "certificate",
        "code_verification_status",
        "conversational_automation",
        "country_code",
        "country_dial_code",
        "eligibility_for_api_business_global_search",
        "health_status",
        "is_official_business_account",
        "is_on_biz_app",
        "is_pin_enabled",
        "is_preverified_number",
        "last_onboarded_time",
        "name_status",
        "new_certificate",
        "new_name_status",
        "platform_type",
        "quality_score",
        "search_visibility",
        "status",
        "throughput",
        "whatsapp_business_manager_messaging_limit",
    }
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(platform: "FakeWhatsApp") -> web.Application:
    """The API of one phone number."""
    api = _Api(platform)
    version, number = platform.api_version, platform.phone_number_id
    app = web.Application(middlewares=[api.around], client_max_size=MOST_BYTES)
    app.add_routes(
        [
            web.get(f"/{version}/{number}", api.number, allow_head=False, name="number"),
            web.post(f"/{version}/{number}", api.configure),
            web.post(f"/{version}/{number}/messages", api.messages, name="messages"),
            web.post(f"/{version}/{number}/media", api.upload, name="media"),
            web.get(f"/{version}/{{media_id}}", api.media, allow_head=False, name="file"),
            web.get("/attachments/{media_id}", api.download, allow_head=False, name="download"),
        ]
    )
    return app


class _Api:
    def __init__(self, platform: "FakeWhatsApp") -> None:
        self._platform = platform

    @property
    def around(self) -> Any:
        """Logs each call, applies injected faults, and returns errors."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            route = request.match_info.route.name or "number"
            call = Call(request.method, request.path, dict(request.query))
            call.name, call.headers = f"{request.method} {route}", dict(request.headers)
            self._platform.calls.append(call)
            try:
                answer = await self._done(request, call, handler)
            except Refused as refused:
                answer, call.code = _refusal(refused), refused.code
            except web.HTTPException:
                answer = _refusal(Refused(400, 2500, f"Unknown path components: {request.path}"))
            call.status = answer.status
            return answer

        return around

    async def _done(self, request: web.Request, call: Call, handler: Handler) -> web.StreamResponse:
        platform = self._platform
        if platform.revoked or request.headers.get("Authorization") != f"Bearer {platform.token}":
            raise token_refused()
        how = platform.faults.of_call()
        if how == "reset":
            await request.read()
            return _broken(request)
        if request.content_type == "application/json" and request.can_read_body:
            request[BODY] = call.body = _json(await request.read())
        answer = await handler(request)
        if how == "hang":
            await asyncio.sleep(3600)
        if how == "gateway":
            return web.Response(status=504, text="<html>Gateway Time-out</html>")
        if how == "garbage":
            return web.Response(text="<html>Sorry, something went wrong</html>")
        return _broken(request) if how == "lost" else answer

    async def number(self, request: web.Request) -> web.Response:
        platform = self._platform
        wanted = request.query.get("fields", "display_phone_number,verified_name").split(",")
        for name in wanted:
            if name not in FIELDS:
                raise malformed(f"fields: tried accessing nonexisting field ({name})")
        about: dict[str, Any] = {
            "id": platform.phone_number_id,
            "display_phone_number": platform.display_phone_number,
            "verified_name": platform.verified_name,
            "quality_rating": "GREEN",
            "health_status": _health_of(platform),
        }
        webhooks = {
            "phone_number": platform.webhooks.override,
            "application": platform.webhooks.of_app,
        }
        about["webhook_configuration"] = {name: url for name, url in webhooks.items() if url}
        return web.json_response({name: about[name] for name in ("id", *wanted) if name in about})

    async def configure(self, request: web.Request) -> web.Response:
        override = checks.webhook_body(request.get(BODY))
        if override["url"]:
            await self._platform.webhooks.verify(override["url"], override["token"])
        self._platform.webhooks.override = override["url"]
        return web.json_response({"success": True})

    async def messages(self, request: web.Request) -> web.Response:
        body = request.get(BODY)
        if (read := checks.read_body(body)) is not None:
            self._platform.mark_read(read["message_id"])
            return web.json_response({"success": True})
        message = checks.message_body(body)
        person, ref = self._platform.send(message)
        contact = {"input": message.get("to") or message["recipient"]}
        contact |= {"wa_id": person.number} if "to" in message else {"user_id": person.user_id}
        answer = {"messaging_product": "whatsapp", "contacts": [contact], "messages": [{"id": ref}]}
        return web.json_response(answer)

    async def upload(self, request: web.Request) -> web.Response:
        fields: dict[str, str] = {}
        content, filename, mime_type = b"", "", ""
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                raise malformed("media: a part is no form field")
            if part.name == "file":
                content, filename = bytes(await part.read()), part.filename or ""
                mime_type = part.headers.get("Content-Type", "")
            else:
                fields[str(part.name)] = await part.text()
        if fields.get("messaging_product") != "whatsapp":
            raise malformed("messaging_product: must be whatsapp")
        if not content or not filename or fields.get("type") != mime_type:
            raise malformed("file: must be given, with a name and its type in `type`")
        return web.json_response({"id": self._platform.files.upload(content, filename, mime_type)})

    async def media(self, request: web.Request) -> web.Response:
        media_id = request.match_info["media_id"]
        file = self._platform.files.by_id.get(media_id)
        if file is None:
            raise no_such_object(media_id)
        return web.json_response(
            {
                "messaging_product": "whatsapp",
                "url": f"{self._platform.url}/attachments/{media_id}",
                "mime_type": file.mime_type,
                "sha256": file.sha256,
                "file_size": len(file.content),
                "id": media_id,
            }
        )

    async def download(self, request: web.Request) -> web.Response:
        file = self._platform.files.by_id.get(request.match_info["media_id"])
        if file is None:
            return web.Response(status=404)
        return web.Response(body=file.content, content_type=file.mime_type.partition(";")[0])


def _health_of(platform: "FakeWhatsApp") -> dict[str, Any]:
    """Whether messages are taken ("Messaging Health Status")."""
    number = {"entity_type": "PHONE_NUMBER", "id": platform.phone_number_id}
    number["can_send_message"] = "AVAILABLE"
    account: dict[str, Any] = {"entity_type": "WABA", "id": "102290129340398"}
    account["can_send_message"] = "BLOCKED" if platform.unpaid else "AVAILABLE"
    if platform.unpaid:
        account["errors"] = [
            {
                "error_code": 141006,
                "error_description": "There is an error with the payment method. This will block"
                " business initiated conversations.",
                "possible_solution": "Please add a new payment method to the account.",
            }
        ]
    return {"can_send_message": account["can_send_message"], "entities": [number, account]}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise malformed("the body is not JSON") from None


def _refusal(refused: Refused) -> web.Response:
    headers = {}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = f"{refused.retry_after_s:g}"
    return web.json_response(refused.body, status=refused.status, headers=headers)


def _broken(request: web.Request) -> web.Response:
    """No response: the connection is closed."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
