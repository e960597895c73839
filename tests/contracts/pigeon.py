"""A channel that keeps the whole contract, for a messenger that can do everything."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

import structlog
from pydantic import Field, SecretStr

from msgsvc_core.channels import (
    Blocked,
    BotCommand,
    BotProfile,
    Button,
    ButtonPressed,
    Capabilities,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    ChannelUser,
    DeliveryError,
    DeliveryReported,
    InvalidMiniApp,
    InvalidWebhook,
    MediaType,
    MessageEdited,
    MessageReceived,
    MiniAppUser,
    OutgoingMessage,
    Polled,
    Reason,
    ReceivedFile,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
    WebhookCall,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.content.markup import to_spans
from msgsvc_devkit import Fault, Messenger, Shown
from tests.contracts.pigeons import (
    HEADER,
    MAX_CAPTION,
    MAX_TEXT,
    MAX_TITLE,
    PERSON,
    SIGNATURE,
    TOKEN,
    Pigeons,
    signature_of,
)

log = structlog.get_logger(__name__)


#: What the platform's codes mean.
REASONS = {
    "blocked": Reason.USER_BLOCKED_BOT,
    "no_chat": Reason.CHAT_NOT_FOUND,
    "banned": Reason.BOT_BANNED,
    "invalid": Reason.INVALID_MESSAGE,
    "gone": Reason.INVALID_MESSAGE,
    "slow_down": Reason.RATE_LIMITED,
    "maintenance": Reason.PLATFORM_UNAVAILABLE,
}
CODES = {reason: code for code, reason in REASONS.items() if code != "gone"}


class PigeonSettings(Section):
    """One bot."""

    token: SecretStr = Field(description="Of the bot.")
    receiving: Literal["poll", "webhook"] = Field("poll", description="How updates come.")
    base_url: str = Field("https://pigeon.example", description="Where the platform is.")


class PigeonChannel(Channel):
    """Keeps the contract."""

    settings: type[PigeonSettings] = PigeonSettings
    operator_settings = frozenset({"base_url"})

    capabilities = Capabilities(
        max_text_length=MAX_TEXT,
        max_caption_length=MAX_CAPTION,
        text_unit="utf16",
        mini_app=True,
        receives_files=True,
        tells_replies=True,
        commands=True,
        reports=frozenset({"delivered", "read"}),
        threads=True,
    )

    def __init__(
        self, identity: ChannelIdentity, pigeons: Pigeons, settings: PigeonSettings
    ) -> None:
        super().__init__(identity)
        self.receiving = settings.receiving
        self.pigeons = pigeons
        self.token = settings.token.get_secret_value()

    async def call(self, method: str, *, fine: Sequence[str] = (), **fields: Any) -> Any:
        """The result; None for a refusal that is as good as success."""
        try:
            status, body = await self.pigeons.call(self.token, method, **fields)
        except ConnectionRefusedError:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "nobody listens") from None
        except ConnectionError:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True
            ) from None
        if status >= 500:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, f"status {status}", in_doubt=status == 504
            )
        try:
            answer = json.loads(body)
        except ValueError:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no JSON", in_doubt=True) from None
        if answer["ok"]:
            return answer["result"]
        code = answer["code"]
        if code in fine:
            return None
        reason = REASONS.get(code, Reason.UNKNOWN)
        raise DeliveryError(reason, f"refused: {code}", answer.get("retry_after"))

    def body(self, message: OutgoingMessage) -> dict[str, Any]:
        return {
            "text": "".join(span.text for span in to_spans(message.text, message.format)),
            "buttons": [[[b.text, b.url, b.data] for b in row] for row in message.buttons],
            "media": message.media and message.media.type,
            "silent": message.silent,
            "thread": message.thread,
        }

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return await self.post(chat_id, message)

    async def post(self, chat_id: str, message: OutgoingMessage, **more: Any) -> str:
        """Beside its thread if that is gone."""
        body = self.body(message)
        fine = [] if message.thread is None else ["no_thread"]
        ref = await self.call("send", fine=fine, chat=chat_id, body=body, **more)
        if ref is None:
            body = {**body, "thread": None}
            ref = await self.call("send", chat=chat_id, body=body, **more)
        return str(ref)

    async def open_thread(self, chat_id: str, title: str) -> str | None:
        return str(await self.call("thread", chat=chat_id, title=title[:MAX_TITLE]))

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self.call("edit", fine=["not_modified"], ref=message_ref, body=self.body(message))

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await self.call("delete", fine=["gone"], ref=message_ref)

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await self.call("answer", fine=["too_old"], press=button_ref, text=text)

    def deep_link(self, payload: str) -> str:
        return f"https://pigeon.example/{self.known_profile().username}?start={payload}"

    async def check(self) -> ChannelHealth:
        try:
            me = await self.call("me")
        except DeliveryError as error:
            return ChannelHealth(False, error.text, revoked=error.reason is Reason.BOT_BANNED)
        return ChannelHealth(True, me["name"], BotProfile(me["name"], me["username"]))

    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        langs = {"": default_lang} | {lang: lang for one in commands for lang in one.about}
        menus = {
            shown_to: {one.name: one.about[lang] for one in commands}
            for shown_to, lang in langs.items()
        }
        await self.call("commands", menus=menus)

    async def set_webhook(self, url: str, secret: str) -> None:
        await self.call("webhook_is", url=url, secret=secret)

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if not call.has_secret(HEADER):
            raise InvalidWebhook("wrong secret")
        try:
            update = json.loads(call.body)
        except (ValueError, RecursionError):
            update = None
        read = self.read(update)
        return [read] if read else []

    async def poll_updates(self, cursor: str | None) -> Polled:
        if cursor is None:
            await self.call("webhook_is", url=None)
        found = await self.call("updates", after=int(cursor or 0))
        updates = [read for update in found if (read := self.read(update))]
        return Polled(tuple(updates), str(found[-1]["id"]))

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        content = base64.b64decode(await self.call("file", ref=file_ref))
        if len(content) > max_bytes:
            raise DeliveryError(Reason.INVALID_MESSAGE, "too large")
        into.write(content)

    def read(self, update: Any) -> Update | None:
        try:
            return self.typed(update)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Unreadable.of(update, UnreadableReason.MALFORMED, type(error).__name__)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        read = self.read(json.loads(item.raw))
        return [read] if read else []

    def typed(self, update: Any) -> Update:
        person = update["from"]
        user = ChannelUser(person["id"], person["name"], person["username"], person["lang"])
        common: dict[str, Any] = {
            "update_id": str(update["id"]),
            "chat_id": f"c{user.user_id}",
            "user": user,
            "thread": update.get("thread"),
        }
        match update["kind"]:
            case "start":
                return Started(**common, payload=update["payload"])
            case "text":
                return MessageReceived(
                    **common,
                    text=self.text(update["text"]),
                    files=tuple(ReceivedFile(*file) for file in update["files"]),
                    message_ref=str(update["message"]),
                    reply_to=update["answers"],
                )
            case "edit":
                return MessageEdited(
                    **common, message_ref=str(update["message"]), text=update["text"]
                )
            case "press":
                return ButtonPressed(
                    **common,
                    data=update["data"],
                    message_ref=str(update["message"]),
                    button_ref=update["press"],
                )
            case "block" | "unblock" as kind:
                return (Blocked if kind == "block" else Unblocked)(**common)
            case "report":
                return self.report(common, update)
            case kind:
                raise ValueError(kind)

    def text(self, found: Any) -> str:
        if not isinstance(found, str):
            raise TypeError(found)
        return found

    def report(self, common: dict[str, Any], update: Any) -> Update:
        if update["state"] not in {"delivered", "read", "failed"}:
            raise ValueError(update["state"])
        return DeliveryReported(
            **common,
            message_ref=update["message"],
            state=update["state"],
            at_ms=update["at_s"] * 1000,
            reason=REASONS.get(update["code"], Reason.UNKNOWN),
            detail=f"reported: {update['code']}",
        )

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        data, _, signature = init_data.rpartition("&hash=")
        if not hmac.compare_digest(_signature(self.token, data).encode(), signature.encode()):
            raise InvalidMiniApp("not signed for this bot")
        found = parse_qs(data)
        user = ChannelUser(found["id"][0], found["name"][0])
        return MiniAppUser(user, int(found["at"][0]), found.get("start", [""])[0])


class RepeatablePigeonChannel(PigeonChannel):
    """Hands each message's key on, by which the platform drops repeats."""

    capabilities = replace(PigeonChannel.capabilities, repeatable=True)

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        key = message.key or None
        return await self.post(chat_id, message, key=key)


class RepeatingPigeonChannel(RepeatablePigeonChannel):
    """Makes a call again by itself when its answer is lost, as the key allows."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            if not error.in_doubt:
                raise
        try:
            return await super().send(chat_id, message)
        except DeliveryError as error:
            # Whatever becomes of the second call, the first may have been done.
            error.in_doubt = True
            raise


class PigeonMessenger(Messenger):
    """The person of the platform in memory."""

    user = ChannelUser(PERSON["id"], PERSON["name"], PERSON["username"], PERSON["lang"])
    chat_id = f"c{PERSON['id']}"

    def __init__(self, pigeons: Pigeons, receiving: str = "poll") -> None:
        self._pigeons = pigeons
        self.settings = {"token": TOKEN, "receiving": receiving}

    def signed(self, call: WebhookCall) -> WebhookCall:
        return replace(call, headers={**call.headers, SIGNATURE: signature_of(call.body)})

    async def follow(self, link: str) -> None:
        parts = urlsplit(link)
        if (parts.hostname, parts.path) != ("pigeon.example", "/pigeon_bot"):
            raise ValueError(f"{parts.hostname}{parts.path}")
        await self.start(parse_qs(parts.query)["start"][0])

    async def start(self, payload: str = "") -> None:
        self._pigeons.chats.add(self.chat_id)
        await self._pigeons.tell("start", payload=payload)

    async def write(self, text: str) -> None:
        await self._write(text)

    async def reply(self, ref: str, text: str) -> None:
        await self._write(text, answers=ref)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        ref = f"photo-{self._pigeons.number()}-of-a-pigeon"
        self._pigeons.files[ref] = base64.b64encode(content).decode()
        await self._write(text, files=[(media_type, ref, filename)])

    async def edit_text(self, text: str) -> None:
        await self._pigeons.tell("edit", message=self._written, text=text)

    async def write_in(self, thread: str, text: str) -> None:
        await self._write(text, thread=thread)

    async def end_thread(self, thread: str) -> None:
        self._pigeons.threads.remove(thread)

    async def _write(
        self, text: str, *, files: Any = (), answers: str | None = None, thread: str | None = None
    ) -> None:
        self._written = self._pigeons.number()
        told = {"text": text, "files": files, "answers": answers, "thread": thread}
        await self._pigeons.tell("text", message=self._written, **told)

    async def press(self, ref: str, data: str) -> None:
        message = self._pigeons.messages[int(ref)]
        assert any(data == button[2] for row in message["buttons"] for button in row)
        press = f"p{self._pigeons.number()}"
        self._pigeons.presses.add(press)
        await self._pigeons.tell("press", data=data, message=int(ref), press=press)

    async def menu(self, lang: str) -> Mapping[str, str]:
        return self._pigeons.menus.get(lang) or self._pigeons.menus.get("", {})

    async def block(self) -> None:
        self._pigeons.blocked = True
        await self._pigeons.tell("block")

    async def unblock(self) -> None:
        self._pigeons.blocked = False
        await self._pigeons.tell("unblock")

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                str(number),
                body["text"],
                tuple(tuple(Button(*one) for one in row) for row in body["buttons"]),
                body["media"],
                body["silent"],
                body["thread"],
            )
            for number, body in self._pigeons.messages.items()
        ]

    async def notices(self) -> Sequence[str]:
        return self._pigeons.notices

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        self._pigeons.next_failure = (CODES.get(reason, "what is this"), retry_after_s)

    async def break_next(self, fault: Fault) -> None:
        self._pigeons.next_failure = fault

    async def kill(self) -> None:
        self._pigeons.dead.set()
        await asyncio.sleep(0)

    async def restart(self) -> None:
        self._pigeons.dead.clear()

    async def leave(self) -> None:
        self._pigeons.chats.discard(self.chat_id)

    async def revoke(self) -> None:
        self._pigeons.revoked = True

    async def puzzle(self) -> None:
        await self._pigeons.tell("dance", partner=None)
        await self._pigeons.tell("text", text=7, **{"from": []})
        message = self._pigeons.number()
        await self._pigeons.tell("text", text=None, message=message, files=[], answers=None)

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        code = "no_chat" if state == "failed" else ""
        await self._pigeons.tell("report", message=ref, state=state, code=code, at_s=1_790_000_000)

    async def forget_presses(self) -> None:
        self._pigeons.presses.clear()

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        fields = {"id": PERSON["id"], "name": PERSON["name"], "at": 1_790_000_000_000}
        data = urlencode({**fields, "start": payload} if payload else fields)
        return f"{data}&hash={_signature('other' if of_other_bot else TOKEN, data)}"


def _signature(token: str, data: str) -> str:
    return hmac.new(token.encode(), data.encode(), hashlib.sha256).hexdigest()
