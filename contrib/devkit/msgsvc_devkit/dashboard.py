"""A signed-in dashboard user, for tests of pages."""

import re
from typing import Any

import httpx2

from msgsvc_core.members.models import AddMemberBody, Role
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_dashboard.frame.browser import CSRF_FIELD, SESSION_COOKIE, csrf_token


class Visitor:
    """A user with a role in a project: `get` and `post` take paths inside it, e.g. `/tickets`."""

    def __init__(self, service: Service, project_id: str, account_id: str) -> None:
        self._service = service
        self.project_id = project_id
        self.account_id = account_id
        self.session_id = ""
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=service.app), base_url="http://msgsvc.test"
        )

    async def sign_in(self) -> None:
        async with self._service.db.transaction() as tx:
            session, token = await self._service.get(Accounts).open_session(
                tx, self.account_id, ip="127.0.0.1", user_agent="test"
            )
        self.session_id = session.session_id
        self.client.cookies.set(SESSION_COOKIE, token)

    def url(self, path: str) -> str:
        """Paths that begin with `/dashboard` are unchanged."""
        inside = path.startswith("/dashboard")
        return path if inside else f"/dashboard/projects/{self.project_id}{path}"

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        return await self.client.get(self.url(path), params=query)

    async def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> Any:
        """Submits a form as a page does, with its CSRF token."""
        token = csrf_token(self._service.secrets, self.session_id)
        return await self.client.post(
            self.url(path), data={CSRF_FIELD: token, **(data or {})}, **more
        )


async def visitor(service: Service, project_id: str, role: Role = "owner") -> Visitor:
    """Signs in a user with that role in the project; close its `client` afterwards."""
    accounts = service.get(Accounts)
    name = re.sub(r"\W", "", f"{role}{project_id}").lower()
    async with service.db.transaction() as tx:
        account = await accounts.create(tx, email=f"{name}@example.com", name=role.title())
        if role == "owner":
            await accounts.give_project(tx, project_id, account.account_id)
        else:
            body = AddMemberBody(name=role.title(), email=account.email, role=role)
            member = await service.members.add(tx, project_id, body)
            await service.members.link_account(tx, project_id, member.member_id, account.account_id)
    made = Visitor(service, project_id, account.account_id)
    await made.sign_in()
    return made


async def stranger(service: Service, project_id: str, *, is_operator: bool = False) -> Visitor:
    """Signs in a user without a role in the project, or an operator."""
    name = "operator" if is_operator else "stranger"
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(
            tx, email=f"{name}@example.com", name=name.title(), is_operator=is_operator
        )
    made = Visitor(service, project_id, account.account_id)
    await made.sign_in()
    return made
