"""A provider's HTTP API: SMS by a call that templates describe, and its webhooks."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

import structlog

from msgsvc_core.channels import (
    BotProfile,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    DeliveryReported,
    InvalidWebhook,
    Reason,
    Unreadable,
    UnreadableReason,
    Update,
    WebhookCall,
)
from msgsvc_core.channels.http import PlatformAnswer, PlatformHttp
from msgsvc_core.kernel.storable_text import storable
from msgsvc_sms.channel import TEXT, SmsChannel
from msgsvc_sms.settings import HttpSettings, folded
from msgsvc_sms.templates import at, in_form, in_json, in_url, read_body

#: Statuses by themselves, where the settings say nothing of them.
_STATUSES = {
    401: Reason.BOT_BANNED,
    403: Reason.BOT_BANNED,
    400: Reason.INVALID_MESSAGE,
    413: Reason.INVALID_MESSAGE,
    422: Reason.INVALID_MESSAGE,
    429: Reason.RATE_LIMITED,
    503: Reason.PLATFORM_UNAVAILABLE,
}

log = structlog.get_logger(__name__)


class HttpChannel(SmsChannel):
    """The provider divides long texts itself; the number of parts counts for the limits alone."""

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: HttpSettings
    ) -> None:
        super().__init__(context, identity, settings, receives=settings.receives)
        if settings.receives:
            self.receiving = "webhook"
        self._settings = settings
        proxy = settings.proxy
        self._http = PlatformHttp(
            "",
            headers={**settings.header_lines, **_authorization(settings)},
            proxy=None if proxy is None else proxy.get_secret_value(),
            timeout_s=settings.timeout_s,
            ca_file=None if settings.ca_file is None else str(settings.ca_file),
        )

    # ---- out ------------------------------------------------------------------------------------

    async def deliver(self, number: str, text: str, key: str) -> str:
        settings, secret = self._settings, self._settings.secret
        values = {
            "to": number,
            "digits": number.removeprefix("+"),
            "text": text,
            "sender": settings.sender,
            "key": key,
            "secret": "" if secret is None else secret.get_secret_value(),
        }
        url, body = in_url(settings.url, values), settings.body
        if not body:
            answer = await self._http.call(settings.method, url, template="/sms")
        elif settings.body_format == "json":
            answer = await self._http.call(
                settings.method, url, json=in_json(body, values), template="/sms"
            )
        else:
            answer = await self._http.call(
                settings.method, url, fields=in_form(body, values), template="/sms"
            )
        return self._message_id(answer)

    async def check(self) -> ChannelHealth:
        settings = self._settings
        profile = BotProfile(settings.sender)
        if settings.check_url is None:
            return ChannelHealth(
                ok=True, detail=f"{settings.sender}, not asked: no check_url", profile=profile
            )
        try:
            answer = await self._http.call("GET", settings.check_url, template="/check")
            if not 200 <= answer.status < 300:
                raise self._failure(str(answer.status), answer)
            json.loads(answer.body)
        except ValueError:
            return ChannelHealth(ok=False, detail="the answer can't be read", unreachable=True)
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        return ChannelHealth(ok=True, detail=settings.sender, profile=profile)

    def _message_id(self, answer: PlatformAnswer) -> str:
        settings, found = self._settings, _read(answer)
        code = str(answer.status)
        if settings.status is not None and (given := at(found, settings.status)) is not None:
            code = given
        is_success = 200 <= answer.status < 300
        if code != str(answer.status) and "ok" in settings.meanings.values():
            # The settings say which codes are a success: no other one is.
            is_success = False
        meaning = settings.meanings.get(code, "ok" if is_success else "")
        if meaning != "ok":
            raise self._failure(code, answer)
        if settings.message_id == "text":
            message_id = answer.body.decode("utf-8", "replace").strip()[:200] or None
        else:
            message_id = at(found, settings.message_id)
        if not message_id:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE,
                "the provider did not say which message it is",
                in_doubt=True,
            )
        return message_id

    def _failure(self, code: str, answer: PlatformAnswer) -> DeliveryError:
        """The error for a code; of the answer only the code is told: the rest may repeat the number."""
        meaning = self._settings.meanings.get(code)
        if meaning is not None and meaning != "ok":
            reason = Reason(meaning)
        elif answer.status >= 500:
            reason = Reason.PLATFORM_UNAVAILABLE
        else:
            reason = _STATUSES.get(answer.status, Reason.UNKNOWN)
        wait_s = None
        if reason is Reason.RATE_LIMITED:
            given = answer.headers.get("retry-after", "")
            wait_s = float(given) if given.isdigit() else None
        # Whether a server that failed, or one behind it, has taken the message is not known; 503 says that it
        # has not.
        in_doubt = meaning is None and answer.status >= 500 and answer.status != 503
        shown = code if code.isascii() and code.isprintable() else "unreadable"
        return DeliveryError(
            reason, f"the provider answered {shown[:40]}", wait_s, in_doubt=in_doubt
        )

    # ---- in -------------------------------------------------------------------------------------

    async def set_webhook(self, url: str, secret: str) -> None:
        """The operator enters the address at the provider: there is no one way to do that by a call."""

    def parse_update(self, call: WebhookCall) -> list[Update]:
        self._verify(call)
        if not call.body and not call.query:
            return []
        raw, content_type = call.body, call.headers.get("content-type", "application/json")
        if not raw:
            raw, content_type = json.dumps(dict(call.query)).encode(), "application/json"
        return self._read_body(raw, content_type, f"body-{_digest(call)}")

    async def take_anyway(self, item: Unreadable) -> Sequence[Update]:
        """As the present settings read it, e.g. after a field was named in them."""
        if item.origin == TEXT:
            return await super().take_anyway(item)
        return self._read_body(item.raw, item.origin, item.update_id)

    def _read_body(self, raw: bytes, content_type: str, otherwise_id: str) -> list[Update]:
        """The updates of a call that is the provider's; `otherwise_id` is for a text without an id."""
        try:
            found = read_body(raw, content_type)
        except (ValueError, RecursionError):
            why = "its body can't be read"
            return [Unreadable.of(raw, UnreadableReason.MALFORMED, why, origin=content_type)]
        settings = self._settings
        sender, text = at(found, settings.inbound_from), at(found, settings.inbound_text)
        if sender is not None and text is not None:
            given = at(found, settings.inbound_id)
            update_id = f"in-{given}" if given else otherwise_id
            return self.updates_of(sender, text, update_id)
        message_id, status = at(found, settings.receipt_id), at(found, settings.receipt_status)
        if message_id is not None and status is not None:
            return self._reported(message_id, status)
        why = "it is neither a text nor a receipt, as the settings name their fields"
        return [Unreadable.of(raw, UnreadableReason.UNKNOWN_KIND, why, origin=content_type)]

    def _reported(self, message_id: str, status: str) -> list[Update]:
        word, settings = folded(status), self._settings
        message_id = storable(message_id)
        update_id = storable(f"receipt:{message_id}:{word}")
        if word in settings.delivered:
            return [
                DeliveryReported(update_id=update_id, message_ref=message_id, state="delivered")
            ]
        is_gone = word in settings.gone
        if not is_gone and word not in settings.failed:
            # On the way, or a word that the settings don't have.
            log.debug("report_ignored", channel=self.key)
            return []
        shown = status if status.isascii() and status.isprintable() else "failed"
        log.warning("message_not_delivered", channel=self.key, error=shown[:40])
        return [
            DeliveryReported(
                update_id=update_id,
                message_ref=message_id,
                state="failed",
                reason=Reason.CHAT_NOT_FOUND if is_gone else Reason.UNKNOWN,
                detail=shown[:40],
            )
        ]

    def _verify(self, call: WebhookCall) -> None:
        """Raises `InvalidWebhook` unless the call has every proof that the settings name."""
        settings = self._settings
        if not settings.receives:
            raise InvalidWebhook("this channel takes no calls")
        if settings.inbound_secret is not None:
            known = settings.inbound_secret.get_secret_value()
            if not hmac.compare_digest(call.path.encode(), known.encode()):
                raise InvalidWebhook("the address has another secret")
        if settings.signature_secret is not None and settings.signature_header is not None:
            given = call.headers.get(settings.signature_header.lower(), "")
            key = settings.signature_secret.get_secret_value().encode()
            mac = hmac.new(key, call.body, hashlib.sha256).digest()
            written = given.removeprefix("sha256=").encode()
            as_hex, as_base64 = mac.hex().encode(), base64.b64encode(mac)
            if not (
                hmac.compare_digest(written, as_hex) or hmac.compare_digest(written, as_base64)
            ):
                raise InvalidWebhook("the signature is another one")

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._http.close()


def _read(answer: PlatformAnswer) -> Any:
    try:
        return read_body(answer.body, answer.headers.get("content-type", ""))
    except (ValueError, RecursionError):
        return None


def _authorization(settings: HttpSettings) -> dict[str, str]:
    if settings.username is None or settings.password is None:
        return {}
    pair = f"{settings.username}:{settings.password.get_secret_value()}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _digest(call: WebhookCall) -> str:
    query = json.dumps(sorted(call.query.items())).encode()
    return hashlib.sha256(call.body + query).hexdigest()[:40]
