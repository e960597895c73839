"""A stopped service with one resource of every kind, and what must work in a copy of its database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Scope
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import AccountLinks
from msgsvc_dashboard.frame.browser import SESSION_COOKIE
from msgsvc_devkit import RecordingPlugin
from msgsvc_webhooks import store as webhooks_store
from msgsvc_webhooks.service import Webhooks
from tests.api.resources import HOOK, MiniAppPlugin
from tests.e2e.furnished import Furnished, ShiftedClock


@dataclass(frozen=True, slots=True)
class Original:
    """`link` is a one-time link of somebody who is also signed in, by `session`."""

    service: Service
    project_id: str
    api_key: str
    page: str
    session: str
    link: str
    webhook_id: str
    webhook_secret: str

    @classmethod
    async def of(cls, made: Furnished) -> "Original":
        answer = await made.tenant.client.post("/v1/webhooks", json={"url": HOOK})
        webhook = answer.json()
        async with made.service.db.transaction() as tx:
            links = made.service.get(AccountLinks)
            link = await links.for_account(tx, made.owner.account_id, "sign_in")
        return cls(
            made.service,
            made.tenant.project.project_id,
            made.tenant.key,
            made.owner.url("/webhooks"),
            made.owner.client.cookies[SESSION_COOKIE],
            link,
            webhook["webhook_id"],
            webhook["secret"],
        )

    @property
    def url(self) -> str:
        return self.service.settings.database_url

    @property
    def scope(self) -> Scope:
        return Scope(self.service.migrations, CORE_NOT_COPIED)

    @asynccontextmanager
    async def served_from(self, url: str) -> AsyncIterator[Service]:
        settings = self.service.settings.model_copy(update={"database_url": url})
        plugins = [("recording", RecordingPlugin()), ("mini_app", MiniAppPlugin())]
        async with Service(settings, clock=ShiftedClock(), extra_plugins=plugins) as service:
            yield service

    async def works_in(self, url: str) -> None:
        """The API key, somebody's session and one-time link, and a webhook's secret work in a copy."""
        async with self.served_from(url) as service:
            transport = httpx2.ASGITransport(app=service.app)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://msgsvc.test"
            ) as client:
                key = {"Authorization": f"Bearer {self.api_key}"}
                people = await client.get("/v1/subscribers", headers=key)
                client.cookies.set(SESSION_COOKIE, self.session)
                page = await client.get(self.page)
            async with service.db.transaction() as tx:
                link = await service.get(AccountLinks).use(tx, self.link)
                _, sealed = await webhooks_store.find_with_secrets(
                    tx, self.project_id, self.webhook_id, service.clock.now_ms()
                )
            secrets = service.get(Webhooks).unseal(self.webhook_id, sealed)

        assert people.json()["data"]
        assert page.status_code == 200
        assert link.purpose == "sign_in"
        assert secrets == [self.webhook_secret]
