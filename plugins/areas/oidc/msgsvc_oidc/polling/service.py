"""Answers polls: the client waits, fails, or gets its grant."""

from dataclasses import dataclass

from msgsvc_core.channels import Identity
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.journal.models import Flow
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.polling import store
from msgsvc_oidc.polling.store import Table
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.polling import (
    P,
    PolledRequest,
    PolledStatus,
    authorization_pending,
    check_poll,
    code_used,
    slow_down,
)
from msgsvc_oidc.protocol.token import Grant

#: Where requests of each flow are stored.
TABLES: dict[Flow, Table] = {"device": "oidc_device_requests", "ciba": "oidc_ciba_requests"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Who allowed it, when and how, and what that proved; `messages` says whether the scope `notify`, if
    there, was part of the question that the person answered."""

    subscriber_id: str
    auth_time_ms: int
    method: SignInMethod
    proves: Identity | None = None
    messages: bool = True


class Polls:
    """Errors are returned, not raised, for what they record has to be committed."""

    def __init__(
        self, *, clock: Clock, consents: Consents, grants: Grants, journal: SignInJournal
    ) -> None:
        self._clock = clock
        self._consents = consents
        self._grants = grants
        self._journal = journal

    async def check(self, tx: Tx, client: Client, flow: Flow, found: P | None) -> P | OAuthError:
        """The request, if it is still pending or was approved, else what became of it."""
        try:
            return check_poll(found, client.client_id, self._clock.now_ms())
        except OAuthError as error:
            if found is not None and error.error == "expired_token":
                await self.fail(tx, client, flow, found, error, before=found.status)
            return error

    async def wait(self, tx: Tx, flow: Flow, request: PolledRequest) -> OAuthError:
        """The person has not answered; a client that polls too often has to wait for longer."""
        now_ms = self._clock.now_ms()
        grown_s = await store.record_poll(tx, TABLES[flow], request, now_ms=now_ms)
        return authorization_pending() if grown_s is None else slow_down(grown_s)

    async def fail(
        self,
        tx: Tx,
        client: Client,
        flow: Flow,
        request: PolledRequest,
        error: OAuthError,
        *,
        before: PolledStatus = "pending",
    ) -> OAuthError:
        """The request ends; the journal is told once."""
        after: PolledStatus = "expired" if error.error == "expired_token" else "denied"
        if before != after and await store.move(tx, TABLES[flow], request, before, after):
            await self._journal.failed(tx, client, flow, error)
        return error

    async def issue(
        self,
        tx: Tx,
        client: Client,
        flow: Flow,
        request: PolledRequest,
        approval: Approval,
        *,
        before: PolledStatus = "pending",
    ) -> Grant | OAuthError:
        """The grant of a request: of concurrent polls one gets it."""
        if not await store.move(tx, TABLES[flow], request, before, "used"):
            return code_used()
        if "notify" in request.scopes:
            await self._consents.allow_messages(
                tx, client, approval.subscriber_id, agreed=approval.messages
            )
        await self._journal.signed_in(tx, client, flow, approval.subscriber_id)
        return await self._grants.issue(
            tx,
            client,
            subscriber_id=approval.subscriber_id,
            scopes=request.scopes,
            auth_time_ms=approval.auth_time_ms,
            method=approval.method,
            proves=approval.proves,
        )
