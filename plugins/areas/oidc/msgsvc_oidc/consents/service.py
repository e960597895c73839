"""Remembers what people agreed to, per client, and takes it back."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import LANGUAGES, Texts
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.consents import store
from msgsvc_oidc.consents.models import Consent
from msgsvc_oidc.grants.service import BY_PERSON, Grants
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.scopes import SCOPES

#: The permission of a project that the scope `notify` grants.
NOTIFY_PERMISSION = "notify"

#: Consents of one person that are listed.
MOST_LISTED = 50


class Consents:
    """Consents of all clients. One of the project itself needs none; its right to write is noted as one."""

    def __init__(
        self,
        *,
        clock: Clock,
        grants: Grants,
        logouts: LogoutDeliveries,
        subscribers: Subscribers,
        permissions: Permissions,
        texts: Texts,
    ) -> None:
        self._clock = clock
        self._grants = grants
        self._logouts = logouts
        self._subscribers = subscribers
        self._permissions = permissions
        self._texts = texts

    async def scopes_of(self, tx: Tx, client: Client, subscriber_id: str) -> tuple[str, ...]:
        """The scopes that the person agreed to."""
        return await store.find_consent(tx, *client.row, subscriber_id)

    async def give(self, tx: Tx, client: Client, subscriber_id: str, scopes: Sequence[str]) -> None:
        """Adds scopes to those that the person agreed to."""
        known = {*await self.scopes_of(tx, client, subscriber_id), *scopes}
        ordered = [scope for scope in SCOPES if scope in known]
        now_ms = self._clock.now_ms()
        await store.put_consent(tx, *client.row, subscriber_id, ordered, now_ms=now_ms)

    async def allow_messages(
        self, tx: Tx, client: Client, subscriber_id: str, *, agreed: bool
    ) -> None:
        """Grants the project's permission `notify`, which is made with the first person.

        Only if the person agreed just now, or signs in to a client of the project itself for the first time:
        that is noted as a consent, so that messages which they turn off later stay off.
        """
        project_id = client.project_id
        await tx.lock(_messages_of(subscriber_id))
        if not agreed:
            if not client.first_party or "notify" in await self.scopes_of(
                tx, client, subscriber_id
            ):
                return
            await self.give(tx, client, subscriber_id, ["notify"])
        if not await self._permissions.exists(tx, project_id, NOTIFY_PERMISSION):
            title = {
                lang: self._texts.into(lang, __name__)("Messages of connected apps")
                for lang in LANGUAGES
            }
            body = CreatePermissionBody.model_validate({"key": NOTIFY_PERMISSION, "title": title})
            await self._permissions.create(tx, project_id, body)
        await self._subscribers.set_permission(
            tx, project_id, subscriber_id, NOTIFY_PERMISSION, granted=True
        )

    async def list_of(self, tx: Tx, project_id: str, subscriber_id: str) -> list[Consent]:
        """What a person agreed to, by the clients' names."""
        return await self.list_of_people(tx, [(project_id, subscriber_id)])

    async def list_of_people(self, tx: Tx, people: Sequence[tuple[str, str]]) -> list[Consent]:
        """What somebody who is known to several projects agreed to; `people` are project and subscriber."""
        return await store.list_consents(tx, people, MOST_LISTED)

    async def take_back(self, tx: Tx, project_id: str, client_id: str, subscriber_id: str) -> bool:
        """Ends the client's access: its tokens are no longer valid, and it has to ask again. The permission
        `notify` goes with the last client that has it. False if there was no consent."""
        scopes = await store.delete_consent(tx, project_id, client_id, subscriber_id)
        if scopes is None:
            return False
        await self._logouts.consent_ended(tx, project_id, client_id, subscriber_id)
        await self._grants.revoke_of_person(tx, project_id, client_id, subscriber_id, BY_PERSON)
        if "notify" in scopes:
            await self._forbid_messages(tx, project_id, subscriber_id)
        return True

    async def _forbid_messages(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        await tx.lock(_messages_of(subscriber_id))
        now_ms = self._clock.now_ms()
        if await store.some_client_may(tx, project_id, subscriber_id, "notify", now_ms=now_ms):
            return
        if await self._permissions.exists(tx, project_id, NOTIFY_PERMISSION):
            await self._subscribers.set_permission(
                tx, project_id, subscriber_id, NOTIFY_PERMISSION, granted=False
            )


def _messages_of(subscriber_id: str) -> str:
    """A lock, so that an app that may write is not overlooked while another one is taken back."""
    return f"oidc.notify of {subscriber_id}"
