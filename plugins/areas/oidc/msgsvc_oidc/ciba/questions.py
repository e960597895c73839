"""The question that a person is sent for a backchannel request."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, SubscriberNotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.plugins.sign_ins import AskedSignIn, DirectSignIn, SignIns
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Recipient
from msgsvc_oidc.authorization.scope_texts import scope_texts
from msgsvc_oidc.authorization.sign_in_pages import SOURCE
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.ciba import (
    BackchannelRequest,
    invalid_binding_message,
    unknown_user_id,
    unreachable,
)
from msgsvc_oidc.protocol.clients import Client


class BackchannelQuestions:
    """Names the client, its message, and what it learns that the person has not agreed to yet: Yes is the
    consent."""

    def __init__(
        self,
        *,
        texts: Texts,
        issuers: Issuers,
        projects: Projects,
        consents: Consents,
        sign_ins: SignIns,
    ) -> None:
        self._texts = texts
        self._issuers = issuers
        self._projects = projects
        self._consents = consents
        self._sign_ins = sign_ins

    async def ask(
        self,
        tx: Tx,
        client: Client,
        request: BackchannelRequest,
        person: Recipient,
        *,
        request_id: str,
        lifetime_s: int,
    ) -> AskedSignIn:
        """Has it sent after the commit. Raises `OAuthError`, and `RateLimitProject` for too many questions
        to the same person."""
        question = DirectSignIn(
            project_id=client.project_id,
            source=SOURCE,
            source_id=request_id,
            subscriber_id=person.subscriber_id,
            requester_name=client.name,
            requester_url=client.site or self._issuers.url(client.project_id),
            text=request.binding_message,
            details=await self._details(tx, client, request, person),
            number_matching=request.number_matching,
            must_prove=client.must_prove,
            lifetime_s=lifetime_s,
        )
        try:
            return await self._sign_ins.ask(tx, question)
        except SubscriberNotFound:
            raise unknown_user_id() from None
        except Conflict:
            raise unreachable() from None
        except ValidationFailed:
            raise invalid_binding_message("the message can not be shown") from None

    async def _details(
        self, tx: Tx, client: Client, request: BackchannelRequest, person: Recipient
    ) -> list[str]:
        if client.first_party:
            return []
        known = await self._consents.scopes_of(tx, client, person.subscriber_id)
        project = await self._projects.get(tx, client.project_id)
        _ = self._texts.into(person.lang, __name__)
        lines = scope_texts(_, set(request.scopes) - set(known), project.public_name)
        head = _("{client} may then:", client=client.name)
        return [head, *(f"• {line}" for line in lines)] if lines else []
