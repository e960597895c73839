"""Client of the Graph API: one method per call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote, urlsplit

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformHttp
from msgsvc_core.http_client import Upload
from msgsvc_core.security import OutboundGuard
from msgsvc_whatsapp.failures import read_answer, to_refusal
from msgsvc_whatsapp.settings import WhatsAppSettings

#: Seconds for sending or fetching a file of the largest size.
FILE_S = 120.0

#: Characters of a file's name.
MAX_NAME = 200

#: Domains of the platform's own hosts of files, which ask for the token.
FILE_DOMAINS = ("fbsbx.com", "facebook.com", "fbcdn.net", "whatsapp.net")

#: What `number` asks for (Graph API, WhatsApp Business Phone Number).
NUMBER_FIELDS = "display_phone_number,verified_name,quality_rating,health_status"


class WhatsAppClient:
    """Calls for one phone number. Each raises `DeliveryError`, and no other error, on failure."""

    def __init__(self, settings: WhatsAppSettings, guard: OutboundGuard) -> None:
        proxy = settings.proxy.get_secret_value() if settings.proxy else None
        token = {"Authorization": f"Bearer {settings.token.get_secret_value()}"}
        self._number = f"/{settings.phone_number_id}"
        self._number_id = settings.phone_number_id
        base_url = f"{settings.base_url.rstrip('/')}/{settings.api_version}"
        self._http = PlatformHttp(
            base_url, headers=token, proxy=proxy, timeout_s=settings.timeout_s
        )
        # Where files are is told by the platform. Its own hosts get the token; any other host gets none.
        self._own_origin = _origin_of(settings.base_url)
        self._own_files = PlatformHttp("", headers=token, proxy=proxy, timeout_s=FILE_S)
        self._other_files = PlatformHttp("", proxy=proxy, timeout_s=FILE_S, guard=guard)

    async def number(self) -> dict[str, Any]:
        """The phone number: `id`, `display_phone_number`, `verified_name`, `health_status`."""
        return await self._call("GET", self._number, params={"fields": NUMBER_FIELDS})

    async def webhooks(self) -> dict[str, Any]:
        """The addresses of webhooks: of the `phone_number`, the `whatsapp_business_account`, the
        `application`; the first of these that is set is called."""
        found = await self._call("GET", self._number, params={"fields": "webhook_configuration"})
        webhooks = found.get("webhook_configuration")
        return webhooks if isinstance(webhooks, dict) else {}

    async def set_webhook(self, url: str, verify_token: str) -> None:
        """Sets the number's own address (Webhook overrides); the platform calls it before it answers."""
        override = {"override_callback_uri": url, "verify_token": verify_token}
        await self._call("POST", self._number, json={"webhook_configuration": override})

    async def send(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What became of the message: `messages[].id`."""
        return await self._request("POST", f"{self._number}/messages", json=body)

    async def upload(self, file: IO[bytes], filename: str, mime_type: str) -> str:
        """The id by which messages name the file; the platform keeps it for 30 days."""
        form = Upload()
        form.add_field("messaging_product", "whatsapp")
        form.add_field("type", mime_type)
        form.add_file("file", file, filename=printable(filename), content_type=mime_type)
        made = await self._call("POST", f"{self._number}/media", form=form, timeout_s=FILE_S)
        media_id = made.get("id")
        if not isinstance(media_id, str) or not media_id:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the platform gave no id for the file")
        return media_id

    async def media(self, media_id: str) -> dict[str, Any]:
        """Where a user's file is: `url`, for five minutes, `mime_type`, `file_size`."""
        return await self._call(
            "GET", f"/{quote(media_id, safe='')}", params={"phone_number_id": self._number_id}
        )

    async def download(self, url: str, into: IO[bytes], max_bytes: int) -> None:
        """Writes a file into `into` that a user sent."""
        with _harmless_again():
            http = self._own_files if self._is_own(url) else self._other_files
            answer = await http.download(url, into, max_bytes)
            if answer.status == 200:
                return
            if answer.status in {401, 429} or answer.status >= 500:
                raise to_refusal(answer.status, answer.headers, {})
            raise DeliveryError(Reason.INVALID_MESSAGE, f"the file's host answered {answer.status}")

    async def close(self) -> None:
        await self._http.close()
        await self._own_files.close()
        await self._other_files.close()

    def _is_own(self, url: str) -> bool:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_platform = parts.scheme == "https" and any(
            host == domain or host.endswith(f".{domain}") for domain in FILE_DOMAINS
        )
        return is_platform or _origin_of(url) == self._own_origin

    async def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Any call but `send`."""
        with _harmless_again():
            return await self._request(method, path, **options)

    async def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        template = path.replace(self._number, "/{number}") if self._number in path else "/{media}"
        try:
            answer = await self._http.call(method, path, template=template, **options)
        except ValueError:
            # The encoder's: JSON has no way to say half of a surrogate pair.
            raise DeliveryError(Reason.INVALID_MESSAGE, "text: holds half of a character") from None
        return read_answer(answer)


@contextmanager
def _harmless_again() -> Iterator[None]:
    """Around what may be done twice: nobody sees a file that no message names. Only a message is in doubt
    where a connection broke."""
    try:
        yield
    except DeliveryError as error:
        error.in_doubt = False
        raise


def printable(filename: str) -> str:
    """A name that can stand in a header."""
    return "".join(filter(str.isprintable, filename))[:MAX_NAME] or "file"


def _origin_of(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
