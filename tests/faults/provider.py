"""An OpenID provider to be raced for: a client, grants of one person, and requests to the token endpoint."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from msgsvc_auth.service import SignIn
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Row
from msgsvc_oidc.clients.models import CreateOidcClientBody
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.grants.references import References, RefreshToken
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.people import People
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session
from msgsvc_oidc.protocol.clients import CIBA, DEVICE_CODE, Client
from msgsvc_oidc.protocol.discovery import BACKCHANNEL, TOKEN
from msgsvc_oidc.settings import OidcSettings
from tests.faults.sign_in_desk import HUNG_S, Desk, Outcome

CALLBACK = "https://app.example/callback"

SCOPES = ("openid", "offline_access")

#: Grants that are made in one transaction.
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Provider:
    """A client of the desk's project, and the objects that make what it presents."""

    desk: Desk
    client: Client
    secret: str
    session: Session
    references: References
    grants: Grants
    devices: DeviceRequests

    async def codes(self, count: int) -> list[str]:
        """So many authorization codes."""
        request = AuthorizationRequest(
            client_id=self.client.client_id,
            redirect_uri=CALLBACK,
            response_mode="query",
            scopes=SCOPES,
        )
        made: list[str] = []
        while len(made) < count:
            async with self.desk.service.db.transaction() as tx:
                made += [
                    await self.grants.issue_code(tx, self.client, request, self.session)
                    for _ in range(min(AT_ONCE, count - len(made)))
                ]
        return made

    async def refresh_tokens(self, count: int) -> list[str]:
        """So many refresh tokens, each the first of its grant."""
        made: list[str] = []
        while len(made) < count:
            async with self.desk.service.db.transaction() as tx:
                for _ in range(min(AT_ONCE, count - len(made))):
                    grant = await self.grants.issue(
                        tx,
                        self.client,
                        subscriber_id=self.session.subscriber_id,
                        scopes=SCOPES,
                        auth_time_ms=self.session.auth_time_ms,
                        method=self.session.method,
                        proves=self.session.proves,
                    )
                    token = RefreshToken(grant.grant_id, grant.refresh_number)
                    made.append(self.references.refresh_token(grant.project_id, token))
        return made

    async def device_codes(self, count: int) -> list[str]:
        """So many device codes that a person has approved."""
        made: list[str] = []
        for _ in range(count):
            started = await self.devices.start(self.client, SCOPES, ())
            made.append(started.device_code)
            async with self.desk.service.db.transaction() as tx:
                request_id = started.device_code.partition(".")[0]
                await self.devices.approve(tx, self.client, request_id, self.session)
        return made

    async def backchannel_requests(self, people: Mapping[str, str]) -> list[str]:
        """An `auth_req_id` for each of the people, by subscriber id with their chat: all have said Yes."""
        service = self.desk.service
        sign_in = service.get(SignIn)
        async with self.callers(1) as callers:
            made = [await callers.ask(subscriber_id) for subscriber_id in people]
        asked = await self.desk.query("SELECT subscriber_id, session_id FROM oidc_ciba_requests")
        async with service.db.transaction() as tx:
            for row in asked:
                if row["subscriber_id"] not in people:
                    continue
                chat_id = people[row["subscriber_id"]]
                user = ChannelUser(chat_id.replace("chat", "user"), "Person")
                session = await sign_in.get(self.desk.project_id, row["session_id"], tx)
                confirmed = await sign_in.confirm(tx, session, "messenger_a", user, chat_id)
                assert confirmed is not None
        return made

    async def grants_by_state(self) -> list[Row]:
        """How many grants there are of each number of refresh tokens and reason of an end."""
        return await self.desk.query(
            "SELECT refresh_number, revoked_reason, COUNT(*) AS grants FROM oidc_grants"
            " GROUP BY refresh_number, revoked_reason"
        )

    @asynccontextmanager
    async def callers(self, at_once: int) -> AsyncIterator["Callers"]:
        """Callers who authenticate as the client, over `at_once` connections that are kept."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=at_once),
            headers={
                "Authorization": aiohttp.encode_basic_auth(self.client.client_id, self.secret)
            },
            timeout=aiohttp.ClientTimeout(total=HUNG_S),
        ) as session:
            path = f"/oidc/{self.desk.project_id}{TOKEN}"
            yield Callers(session, [server.url + path for server in self.desk.servers])


@dataclass(frozen=True, slots=True)
class Callers:
    """Post the same form at the same time, evenly to all servers."""

    session: aiohttp.ClientSession
    urls: Sequence[str]

    async def exchange(self, code: str, times: int) -> list[tuple[Outcome, dict[str, Any]]]:
        """Exchanges an authorization code."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        return await self.post(form, times)

    async def refresh(self, token: str, times: int) -> list[tuple[Outcome, dict[str, Any]]]:
        """Uses a refresh token."""
        return await self.post({"grant_type": "refresh_token", "refresh_token": token}, times)

    async def poll(self, device_code: str, times: int) -> list[tuple[Outcome, dict[str, Any]]]:
        """Asks for the tokens of a device."""
        return await self.post({"grant_type": DEVICE_CODE, "device_code": device_code}, times)

    async def ask_for(self, auth_req_id: str, times: int) -> list[tuple[Outcome, dict[str, Any]]]:
        """Asks for the tokens of a backchannel request."""
        return await self.post({"grant_type": CIBA, "auth_req_id": auth_req_id}, times)

    async def ask(self, subscriber_id: str) -> str:
        """Has a person asked; returns the `auth_req_id`."""
        form = {"scope": " ".join(SCOPES), "login_hint": subscriber_id}
        url = self.urls[0].removesuffix(TOKEN) + BACKCHANNEL
        async with self.session.post(url, data=form) as response:
            answer: dict[str, str] = await response.json()
            assert response.status == 200, answer
            return answer["auth_req_id"]

    async def post(
        self, form: Mapping[str, str], times: int
    ) -> list[tuple[Outcome, dict[str, Any]]]:
        """What each of `times` requests was answered, all of them sent at once."""

        async def one(number: int) -> tuple[Outcome, dict[str, Any]]:
            url = self.urls[number % len(self.urls)]
            async with self.session.post(url, data=form) as response:
                answer: dict[str, Any] = await response.json()
                return (response.status, answer.get("error")), answer

        return await asyncio.gather(*(one(number) for number in range(times)))


async def open_provider(desk: Desk) -> Provider:
    """A provider in the desk's database."""
    service = desk.service
    settings, references = service.section(OidcSettings), References(service.secrets)
    body = CreateOidcClientBody(
        name="Grafana",
        redirect_uris=[CALLBACK],
        scopes=list(SCOPES),
        grant_types=["authorization_code", "refresh_token", DEVICE_CODE, CIBA],
        # Devices look at consent again, which is not what is raced for.
        first_party=True,
    )
    async with service.db.transaction() as tx:
        new = await service.get(Clients).create(tx, desk.project_id, body)
    assert new.secret is not None
    [subscriber_id] = await desk.people(1)
    session = Session(
        session_id="sid_1",
        subscriber_id=subscriber_id,
        auth_time_ms=service.clock.now_ms(),
        method="button",
    )
    return Provider(
        desk=desk,
        client=new.client,
        secret=new.secret,
        session=session,
        references=references,
        grants=Grants(
            clock=service.clock,
            db=service.db,
            settings=settings,
            references=references,
            keys=service.get(SigningKeys),
            people=People(
                db=service.db, subscribers=service.subscribers, contacts=service.contacts
            ),
        ),
        devices=DeviceRequests(
            clock=service.clock,
            db=service.db,
            secrets=service.secrets,
            settings=settings,
            references=references,
            journal=service.get(SignInJournal),
        ),
    )
