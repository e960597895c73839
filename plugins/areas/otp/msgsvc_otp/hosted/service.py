"""Hosted pages for codes: who has the address may guess at its code, within the code's own limits.

What the page gives the site is a result, which the site's server takes once and which names the code that it
was made for: a result of somebody else's page does not fit the browser's session at the site.
"""

from urllib.parse import urlsplit

from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidUrl, NotFound
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.projects.service import Projects
from msgsvc_core.security import SecretBox, digest
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import store as code_store
from msgsvc_otp.errors import OtpInvalid
from msgsvc_otp.hosted import store
from msgsvc_otp.hosted.models import CodePage, OpenedPage, PageState
from msgsvc_otp.models import OneTimeCode, Verdict, VerifyOtpBody
from msgsvc_otp.service import OneTimeCodes
from msgsvc_otp.settings import OtpSettings

#: What the token of a result is derived for: a page that is opened again leads to the same one.
RESULT = "otp.result"

#: Hosts of a developer's own machine, which need no TLS.
_LOCAL = ("localhost", "127.0.0.1", "::1")


class CodePages:
    """Makes pages, and does what people do on them."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        settings: OtpSettings,
        projects: Projects,
        subscribers: Subscribers,
        channels: Channels,
        codes: OneTimeCodes,
        base_url: str,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._settings = settings
        self._projects = projects
        self._subscribers = subscribers
        self._channels = channels
        self._codes = codes
        self._base_url = base_url.rstrip("/")

    def check_return_url(self, url: str) -> None:
        """Raises `InvalidUrl`."""
        parts = urlsplit(url)
        may_be_http = self._settings.allow_http_returns or parts.hostname in _LOCAL
        if parts.scheme != "https" and not may_be_http:
            raise InvalidUrl("must be an https URL", field="return_url")
        if parts.fragment:
            raise InvalidUrl("must not have a fragment", field="return_url")

    async def create(self, tx: Tx, code: OneTimeCode, return_url: str) -> str:
        """The address of a page that asks for a code that was just sent."""
        token = new_token()
        page = CodePage(
            token_digest=digest(token),
            project_id=code.project_id,
            first_otp_id=code.otp_id,
            otp_id=code.otp_id,
            return_url=return_url,
            lang=code.lang,
            expires_at_ms=self._clock.now_ms() + self._settings.page_lifetime_s * 1000,
        )
        await store.insert(tx, page)
        return f"{self._base_url}/code/{token}"

    async def open(self, tx: Tx, token: str) -> OpenedPage:
        """Raises `NotFound`: the same for a page that is over and one that never was."""
        return await self._opened(tx, token, await self._found(tx, token))

    async def enter(self, tx: Tx, token: str, typed: str) -> OpenedPage | OtpInvalid:
        """The page after a guess; a wrong one is returned, so that the caller commits its attempt.

        Raises what `open` and `OneTimeCodes.verify` do.
        """
        page = await self._found(tx, token, locked=True)
        body = VerifyOtpBody(otp_id=page.otp_id, code=typed)
        verdict = await self._codes.verify(tx, page.project_id, body)
        if isinstance(verdict, OtpInvalid):
            return verdict
        await store.set_result(tx, page, digest(self._result(page)))
        return await self._opened(tx, token, page)

    async def send_again(self, tx: Tx, token: str) -> None:
        """Sends another code, on the terms of the one before.

        Raises what `open` and `OneTimeCodes.send` do, `NotFound` for a page whose code was right.
        """
        page = await self._found(tx, token, locked=True)
        code = await self._codes.get(tx, page.project_id, page.otp_id)
        if code.stored_status == "verified":
            raise NotFound("there is no page at this address")
        sent = await self._codes.send_again(tx, code)
        await store.set_code(tx, page, sent.otp_id)

    async def take(self, tx: Tx, project_id: str, result: str) -> tuple[str, Verdict]:
        """The result of a page, once: the id of the code that the page was made for, and who gave it.

        Raises `OtpInvalid` for a result that is unknown, too old, or was taken before.
        """
        now_ms = self._clock.now_ms()
        page = await store.take_result(tx, project_id, digest(result), valid_after_ms=now_ms)
        if page is None:
            raise OtpInvalid("unknown, too old, or taken before", field="result")
        code = await self._codes.get(tx, project_id, page.otp_id)
        assert code.subscriber_id is not None, "a code that was right was sent to somebody"
        subscriber = await self._subscribers.get(tx, project_id, code.subscriber_id)
        return page.first_otp_id, await self._codes.verdict(tx, code, subscriber)

    async def _found(self, tx: Tx, token: str, *, locked: bool = False) -> CodePage:
        page = await (store.lock if locked else store.find)(tx, digest(token))
        if page is None or page.expires_at_ms <= self._clock.now_ms():
            raise NotFound("there is no page at this address")
        return page

    async def _opened(self, tx: Tx, token: str, page: CodePage) -> OpenedPage:
        code = await self._codes.get(tx, page.project_id, page.otp_id)
        project = await self._projects.get(tx, page.project_id)
        if project.status != "active" or code.subscriber_id is None:
            raise NotFound("there is no page at this address")
        subscriber = await self._subscribers.get(tx, page.project_id, code.subscriber_id)
        now_ms = self._clock.now_ms()
        state = _state(code, now_ms)
        return OpenedPage(
            token=token,
            page=page,
            code=code,
            project=project,
            messenger=self._channels.display_name(subscriber.channel, page.project_id),
            state=state,
            resend_in_s=await self._resend_in_s(tx, code, now_ms),
            expires_in_s=max(0, (code.expires_at_ms - now_ms) // 1000),
            back=self._back(page) if state == "verified" else None,
        )

    async def _resend_in_s(self, tx: Tx, code: OneTimeCode, now_ms: int) -> int:
        """By the code that was sent last for the purpose, also from elsewhere."""
        assert code.subscriber_id is not None
        last = await code_store.find_last(tx, code.project_id, [code.subscriber_id], code.purpose)
        if last is None or last.issued_at_ms is None:
            return 0
        left_ms = last.issued_at_ms + self._settings.resend_after_s * 1000 - now_ms
        return max(0, -(-left_ms // 1000))

    def _back(self, page: CodePage) -> str:
        if page.result_taken:
            return page.return_url
        return page.returning(result=self._result(page), otp_id=page.first_otp_id)

    def _result(self, page: CodePage) -> str:
        return self._secrets.derive(RESULT, page.project_id, page.token_digest, page.otp_id).hex()


def _state(code: OneTimeCode, now_ms: int) -> PageState:
    match code.status(now_ms):
        case "verified":
            return "verified"
        case "max_attempts_reached":
            return "spent"
        case "pending" | "queued" | "sent" | "failed":
            return "asks"
        case _:
            return "expired"
