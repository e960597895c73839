"""The sign-in page of a request, and who comes back from it."""

from contextlib import suppress
from dataclasses import replace

from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Unavailable, ValidationFailed
from msgsvc_core.kernel.i18n import LANGUAGES, Language, closest
from msgsvc_core.plugins.sign_ins import PageSignIn, SignedIn, SignIns
from msgsvc_oidc.authorization.models import PendingRequest
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, asks_for_number
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import UnusableRequest

#: What names these sign-ins to the plugin that provides them.
SOURCE = "oidc"


class SignInPages:
    """Opens pages of the plugin that signs people in, and exchanges their codes."""

    def __init__(self, *, issuers: Issuers, sign_ins: SignIns, channels: Channels) -> None:
        self._issuers = issuers
        self._sign_ins = sign_ins
        self._channels = channels

    async def open(self, tx: Tx, client: Client, pending: PendingRequest) -> str:
        """The URL of the page. Raises what `SignIns.open_page` raises.

        A `login_hint` that is the name of a messenger of the project, e.g. `telegram`, offers that one alone;
        any other is ignored: it says who the person may be, which the messenger knows for certain.
        """
        request, issuer = pending.request, self._issuers.url(client.project_id)
        page = PageSignIn(
            project_id=client.project_id,
            source=SOURCE,
            source_id=pending.request_id,
            requester_name=client.name,
            # Who signs in for a device has not come from the client's site.
            requester_url=(client.site if pending.device_id is None else None) or issuer,
            return_url=f"{issuer}/return",
            state=pending.request_id,
            lang=page_language(request),
            must_prove=client.must_prove,
            # Of a device the person reads a code anyway: a number costs them little more.
            number_matching=asks_for_number(request, client) or pending.device_id is not None,
        )
        if self._is_channel(client.project_id, request.login_hint):
            # One that can sign nobody in, or not now, is no hint either.
            with suppress(ValidationFailed, Unavailable):
                async with tx.savepoint():
                    hinted = replace(page, channel=request.login_hint)
                    return await self._sign_ins.open_page(tx, hinted)
        return await self._sign_ins.open_page(tx, page)

    async def exchange(self, tx: Tx, project_id: str, request_id: str, code: str) -> SignedIn:
        """Who signed in for a request. Raises `UnusableRequest` for a code of another sign-in."""
        person = await self._sign_ins.exchange(tx, project_id, code)
        if person is None or (person.source, person.source_id) != (SOURCE, request_id):
            raise UnusableRequest("the sign-in is not that of this request")
        return person

    def _is_channel(self, project_id: str, hint: str | None) -> bool:
        return hint is not None and self._channels.resolve(project_id, hint) is not None


def page_language(request: AuthorizationRequest) -> Language | None:
    """The first of the languages in `ui_locales` that the service speaks."""
    return next(
        (found for tag in request.ui_locales if (found := closest(tag, LANGUAGES)) is not None),
        None,
    )
