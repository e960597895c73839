"""Calls of the Bot API: one method, its parameters, its result or its error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from pydantic_core import PydanticSerializationError

from msgsvc_core.channels import DeliveryError, MediaFile, Reason
from msgsvc_core.channels.http import PlatformAnswer, PlatformHttp
from msgsvc_core.http_client import Upload
from msgsvc_core.kernel.json import read_json, to_json
from msgsvc_telegram.failures import refusal
from msgsvc_telegram.settings import TelegramSettings

#: Seconds for a call that carries a file of up to 50 MB.
UPLOAD_S = 180.0

#: Statuses of a proxy before the API by which it says that the call did not get through.
NOT_PASSED_ON = frozenset({502, 503})


class BotApi:
    """Client of the Bot API for one bot.

    The token is part of every URL. It is known only here, and never in an error: errors contain neither URLs
    nor bodies that are not the API's own.
    """

    def __init__(self, settings: TelegramSettings) -> None:
        self._token = settings.token.get_secret_value()
        self._timeout_s = settings.timeout_s
        self._http = PlatformHttp(
            settings.base_url,
            proxy=settings.proxy.get_secret_value() if settings.proxy else None,
            timeout_s=settings.timeout_s,
        )

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, wait_s: float = 0
    ) -> Any:
        """What the method returns. `wait_s` is for how long the API itself waits before it answers.

        Raises `BotApiError` when the API refuses, and `DeliveryError` when it can't be asked.
        """
        timeout_s = self._timeout_s + wait_s
        answer = await self._post(method, json=params or {}, timeout_s=timeout_s)
        return self._result(answer, _chat_of(params))

    async def upload(
        self, method: str, params: Mapping[str, Any], field: str, media: MediaFile
    ) -> Any:
        """The same, with a file as the parameter `field`."""
        with _whole_characters():
            form = _form(params, field, media)
        timeout_s = max(UPLOAD_S, self._timeout_s)
        answer = await self._post(method, form=form, timeout_s=timeout_s)
        return self._result(answer, _chat_of(params))

    async def download(self, file_path: str, into: IO[bytes], most_bytes: int) -> None:
        """Writes the file that `getFile` has named into `into`. Raises `DeliveryError`."""
        answer = await self._http.download(
            f"/file/bot{self._token}/{file_path}",
            into,
            most_bytes,
            timeout_s=max(UPLOAD_S, self._timeout_s),
        )
        if answer.status == 404:
            # Not the token's 404: that has just been good for `getFile`.
            raise DeliveryError(Reason.INVALID_MESSAGE, "Telegram has the file no more")
        if answer.status != 200:
            self._result(answer, None)
            raise _not_the_api(answer)

    async def close(self) -> None:
        await self._http.close()

    async def _post(self, method: str, **body: Any) -> PlatformAnswer:
        with _whole_characters():
            return await self._http.call(
                "POST", f"/bot{self._token}/{method}", template=f"/bot{{token}}/{method}", **body
            )

    def _result(self, answer: PlatformAnswer, chat_id: int | None) -> Any:
        body = _json_of(answer)
        if body.get("ok") is True and answer.status == 200 and "result" in body:
            return body["result"]
        if body.get("ok") is not False:
            raise _not_the_api(answer)
        status = body.get("error_code")
        description = str(body.get("description") or "")
        parameters = body.get("parameters")
        raise refusal(
            status if type(status) is int else answer.status,
            # The API repeats no token, but a server in between could.
            description.replace(self._token, "<token>"),
            parameters if isinstance(parameters, dict) else {},
            chat_id,
        )


@contextmanager
def _whole_characters() -> Iterator[None]:
    """Refuses what can't be written as UTF-8: a lone surrogate, which JSON can spell."""
    try:
        yield
    except (UnicodeEncodeError, PydanticSerializationError):
        raise DeliveryError(
            Reason.INVALID_MESSAGE, "text: holds half of a character (a lone surrogate)"
        ) from None


def _form(params: Mapping[str, Any], field: str, media: MediaFile) -> Upload:
    form = Upload()
    for name, value in params.items():
        form.add_field(name, value if isinstance(value, str) else to_json(value))
    # It becomes part of a header.
    filename = "".join(letter for letter in media.filename if letter.isprintable()) or "file"
    form.add_file(field, media.file, filename=filename, content_type=media.mime_type)
    return form


def _json_of(answer: PlatformAnswer) -> dict[str, Any]:
    try:
        body = read_json(answer.body)
    except (ValueError, RecursionError):
        raise _not_the_api(answer) from None
    if not isinstance(body, dict):
        raise _not_the_api(answer)
    return body


def _not_the_api(answer: PlatformAnswer) -> DeliveryError:
    """Something between us and the API answered; it may not be known how far the call came."""
    if answer.status == 413:
        return DeliveryError(Reason.INVALID_MESSAGE, "media: too large for the server")
    refused = 300 <= answer.status < 500 or answer.status in NOT_PASSED_ON
    return DeliveryError(
        Reason.PLATFORM_UNAVAILABLE,
        f"status {answer.status}, and no answer of the Bot API; is base_url right?",
        in_doubt=not refused,
    )


def _chat_of(params: Mapping[str, Any] | None) -> int | None:
    chat_id = (params or {}).get("chat_id")
    return chat_id if isinstance(chat_id, int) else None
