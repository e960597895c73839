"""The rules of accounts: one e-mail, one account; a session is a secret that only its browser has."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from msgsvc_core.accounts import store
from msgsvc_core.accounts.models import Account, AccountSession, Plan
from msgsvc_core.db import Tx
from msgsvc_core.errors import Conflict, NotFound
from msgsvc_core.ids import new_id, new_token
from msgsvc_core.members.models import Role
from msgsvc_core.record import record

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Milliseconds for which a browser stays signed in: two weeks.
SESSION_MS = 14 * 24 * 3600 * 1000


@record
class Belonging:
    """A project of somebody's, and what they are in it."""

    project_id: str
    name: str
    role: Role


class Accounts:
    """`service.accounts`."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    async def create(self, tx: Tx, *, email: str, name: str, is_operator: bool = False) -> Account:
        """A new account, which can't sign in by a password yet. Raises `Conflict` for a known e-mail."""
        account = Account(
            account_id=new_id("acc"),
            email=email,
            name=name,
            status="active",
            is_operator=is_operator,
            lang=None,
            timezone=None,
            created_at_ms=self._service.clock.now_ms(),
        )
        if not await store.insert(tx, account):
            raise Conflict(f"email: there is an account {email!r} already")
        return account

    async def find(self, tx: Tx, account_id: str) -> Account:
        """Raises `NotFound`."""
        account = await store.find(tx, account_id)
        if account is None:
            raise NotFound(f"there is no account {account_id!r}")
        return account

    async def speak(self, tx: Tx, account_id: str, lang: str) -> None:
        """The language in which the account reads its pages from now on."""
        await store.set_lang(tx, account_id, lang)

    async def open_session(
        self, tx: Tx, account_id: str, *, ip: str, user_agent: str
    ) -> tuple[AccountSession, str]:
        """Signs a browser in, whatever it has shown before; the session and its secret."""
        now_ms = self._service.clock.now_ms()
        account = await self.find(tx, account_id)
        token = new_token()
        session = AccountSession(
            session_id=new_id("ase"),
            account=account,
            created_at_ms=now_ms,
            seen_at_ms=now_ms,
            expires_at_ms=now_ms + SESSION_MS,
            ip=ip,
            user_agent=user_agent,
        )
        await store.insert_session(tx, session, digest_of(token))
        return session, token

    async def session_of(self, tx: Tx, token: str) -> AccountSession | None:
        """Who is signed in by this secret; None if nobody is any more."""
        return await store.find_session(tx, digest_of(token), self._service.clock.now_ms())

    async def role_in(self, tx: Tx, account_id: str, project_id: str) -> Role | None:
        """What somebody is in a project; None where they are nobody, or where there is none."""
        return cast("Role | None", await store.find_role(tx, account_id, project_id))

    async def projects_of(self, tx: Tx, account_id: str) -> Sequence[Belonging]:
        """The oldest first."""
        found = await store.list_projects(tx, account_id)
        return [Belonging(id_, name, cast("Role", role)) for id_, name, role in found]

    async def owner_of(self, tx: Tx, project_id: str) -> str | None:
        """The account that a project belongs to; None where it is the operator's alone."""
        return await store.find_owner(tx, project_id)

    async def give_project(self, tx: Tx, project_id: str, account_id: str | None) -> None:
        """Makes an account the owner of a project. Raises `NotFound`."""
        if account_id is not None:
            await self.find(tx, account_id)
        if not await store.set_owner(tx, project_id, account_id):
            raise NotFound(f"there is no project {project_id!r}")

    async def make_member(self, tx: Tx, project_id: str, member_id: str, account_id: str) -> None:
        """Says that a member of a project is this account. Raises `NotFound`, and `Conflict` where the
        account is another member there."""
        if not await store.set_member(tx, project_id, member_id, account_id):
            raise NotFound(f"there is no active member {member_id!r}")

    async def plan_of(self, tx: Tx, account_id: str | None) -> Plan | None:
        """What the account may do by its plan; None where nothing is billed: then it may do all."""
        if account_id is None:
            return None
        deciding = self._service.plugins.hook.decide_plan(
            service=self._service, tx=tx, account_id=account_id
        )
        return None if deciding is None else await deciding


def digest_of(token: str) -> str:
    """What stands for a secret in the database: it has 128 random bits, so it can't be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()
