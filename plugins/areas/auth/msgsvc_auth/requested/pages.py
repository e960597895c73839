"""Pages of other plugins' sign-ins: opens and finds them."""

from msgsvc_auth.page_requests import PageRequest
from msgsvc_auth.requested import store
from msgsvc_auth.requested.requesters import Requester
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.sign_ins import PageSignIn


class RequestedPages:
    """A page each for one request, which runs out after `auth.request_lifetime_s`."""

    def __init__(
        self, *, clock: Clock, settings: AuthSettings, base_url: str, sign_in: SignIn
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._base_url = base_url.rstrip("/")
        self._sign_in = sign_in

    async def open(self, tx: Tx, request: PageSignIn) -> str:
        """The URL of a new page.

        Raises `ValidationFailed` for a channel that is unknown, can't receive answers or does not prove what
        is asked for, and for a requester that can't be shown, `Unavailable` while no bot is ready.
        """
        requester = Requester.of(request.requester_name, request.requester_url)
        self._sign_in.check_channel(request.project_id, request.channel, request.must_prove)
        now_ms = self._clock.now_ms()
        page = PageRequest(
            project_id=request.project_id,
            request_id=new_id("arq"),
            token=PageRequest.new_token(),
            source=request.source,
            source_id=request.source_id,
            requester_name=requester.name,
            requester_url=requester.url,
            return_url=request.return_url,
            state=request.state,
            lang=request.lang,
            channel=request.channel,
            number_matching=request.number_matching,
            must_prove=tuple(request.must_prove),
            created_at_ms=now_ms,
            expires_at_ms=now_ms + self._settings.request_lifetime_s * 1000,
        )
        await store.insert_request(tx, page)
        return f"{self._base_url}/login/{page.path}"

    async def find(self, tx: Tx, token: str) -> PageRequest | None:
        """The request of a page's address, as long as a sign-in that was started in time may need the page:
        until its Yes, then until its code dies."""
        needed_s = self._settings.session_lifetime_s + self._settings.code_lifetime_s
        since_ms = self._clock.now_ms() - needed_s * 1000
        return await store.find_request(tx, token, expired_after_ms=since_ms)


async def purge_requests(tx: Tx, expired_before_ms: int, limit: int) -> int:
    """Deletes up to `limit` requests that have expired; returns how many."""
    return await store.purge_requests(tx, expired_before_ms, limit)
