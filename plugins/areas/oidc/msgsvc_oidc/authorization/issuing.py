"""The end of a request: a code for the client, or an error."""

from collections.abc import Mapping

from msgsvc_core.db import Tx
from msgsvc_oidc.authorization.models import ClientRedirect
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session, answer_parameters
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError


class CodeIssuer:
    """Makes the redirect to the client, and records how the sign-in ended."""

    def __init__(
        self, *, issuers: Issuers, consents: Consents, grants: Grants, journal: SignInJournal
    ) -> None:
        self._issuers = issuers
        self._consents = consents
        self._grants = grants
        self._journal = journal

    async def issue(
        self,
        tx: Tx,
        client: Client,
        request: AuthorizationRequest,
        session: Session,
        *,
        agreed: bool,
    ) -> ClientRedirect:
        """A redirect with a code for what the person agreed to: for this very request if `agreed`.

        An earlier consent does not allow messages again: the person may have turned them off since.
        """
        if "notify" in request.scopes:
            await self._consents.allow_messages(tx, client, session.subscriber_id, agreed=agreed)
        code = await self._grants.issue_code(tx, client, request, session)
        await self._journal.signed_in(tx, client, "code", session.subscriber_id)
        return self._redirect(client, request, {"code": code}, session)

    async def refuse(
        self, tx: Tx, client: Client, request: AuthorizationRequest, error: RedirectError
    ) -> ClientRedirect:
        """A redirect with an error."""
        await self._journal.failed(tx, client, "code", error)
        return self._redirect(client, request, error.body(), None)

    def _redirect(
        self,
        client: Client,
        request: AuthorizationRequest,
        values: Mapping[str, str],
        session: Session | None,
    ) -> ClientRedirect:
        issuer = self._issuers.url(client.project_id)
        return ClientRedirect(
            redirect_uri=request.redirect_uri,
            response_mode=request.response_mode,
            parameters=answer_parameters(request.state, issuer, values),
            session=session,
        )
