"""Accounts, one per email, and their sessions, each with a secret that only its browser has."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from zoneinfo import available_timezones

from msgsvc_core.billing import BillingGate
from msgsvc_core.dashboard import Viewer
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.members.models import AddMemberBody, Membership
from msgsvc_core.members.service import Members
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts import session_store, store
from msgsvc_dashboard.accounts.models import NAME_LENGTH, Account, AccountSession

DAY_MS = 24 * 3600 * 1000

#: Milliseconds after which it is noted anew that a browser was here.
SEEN_EVERY_MS = 60_000

#: Characters of a user agent that are kept.
AGENT_LENGTH = 512


class Accounts:
    """`service.get(Accounts)`."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        session_days: int,
        projects: Projects,
        members: Members,
        billing: BillingGate,
    ) -> None:
        self._clock = clock
        self._db = db
        self._session_days = session_days
        self._projects = projects
        self._members = members
        self._billing = billing
        #: Awaited, in its transaction, when an account is disabled: to end ways in of other owners.
        self.on_disabled: list[Callable[[Tx, str], Awaitable[None]]] = []

    async def create(self, tx: Tx, *, email: str, name: str, is_operator: bool = False) -> Account:
        """A new account, which can't sign in by a password yet. Raises `Conflict` for a known email,
        and `ValidationFailed` for what is none."""
        account = Account(
            account_id=new_id("acc"),
            email=_address(email),
            name=_name(name),
            status="active",
            is_operator=is_operator,
            lang=None,
            timezone=None,
            created_at_ms=self._clock.now_ms(),
        )
        if not await store.insert(tx, account):
            raise Conflict(
                "there is an account {email!r} already", field="email", email=account.email
            )
        return account

    async def find(self, tx: Tx, account_id: str) -> Account:
        """Raises `NotFound`."""
        account = await store.find(tx, account_id)
        if account is None:
            raise NotFound("there is no account {account_id!r}", account_id=account_id)
        return account

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> dict[str, Account]:
        """Those that there are, by their id."""
        return await store.find_many(tx, account_ids)

    async def speak(self, tx: Tx, account_id: str, lang: str) -> None:
        """The language in which the account reads its pages from now on."""
        await self.change(tx, account_id, lang=lang)

    async def learn_timezone(self, account: Account, timezone: str) -> None:
        """Keeps the browser's IANA time zone for an account that has none; nothing is kept of another
        text."""
        if account.timezone is None and timezone in available_timezones():
            async with self._db.transaction() as tx:
                await store.learn_timezone(tx, account.account_id, timezone)

    async def by_email(self, tx: Tx, email: str) -> Account:
        """Raises `NotFound`."""
        account = await store.find_by_email(tx, _address(email))
        if account is None:
            raise NotFound("there is no account {email!r}", email=email)
        return account

    async def find_by_email(self, tx: Tx, email: str) -> Account | None:
        """The account that has an email, in the form in which it is kept; else None."""
        return await store.find_by_email(tx, email)

    async def page(
        self, tx: Tx, after: str | None, most: int, email_prefix: str = ""
    ) -> list[Account]:
        """Accounts whose email begins so, the newest first."""
        return await store.list_page(tx, after, most, email_prefix)

    async def change(self, tx: Tx, account_id: str, **changes: str | bool | None) -> None:
        """Changes `name`, `lang`, `timezone` and `is_operator`. Raises `NotFound`."""
        assert set(changes) <= {"name", "lang", "timezone", "is_operator"}
        if "name" in changes:
            changes["name"] = _name(str(changes["name"]))
        if not await store.update(tx, account_id, changes):
            raise NotFound("there is no account {account_id!r}", account_id=account_id)

    async def set_active(self, tx: Tx, account_id: str, active: bool) -> None:
        """Lets somebody in or not; who is disabled is out everywhere at once. Raises `NotFound`."""
        status = "active" if active else "disabled"
        if not await store.update(tx, account_id, {"status": status}):
            raise NotFound("there is no account {account_id!r}", account_id=account_id)
        if not active:
            await session_store.end_all(tx, account_id)
            for end in self.on_disabled:
                await end(tx, account_id)

    async def open_session(
        self, tx: Tx, account_id: str, *, ip: str, user_agent: str
    ) -> tuple[AccountSession, str]:
        """Signs a browser in, whatever it has shown before; the session and its secret. The account says
        from now on when that was."""
        now_ms = self._clock.now_ms()
        account = await self.find(tx, account_id)
        token = new_token(256)
        session = AccountSession(
            session_id=new_id("ase"),
            account=account,
            created_at_ms=now_ms,
            seen_at_ms=now_ms,
            expires_at_ms=now_ms + self._session_days * DAY_MS,
            ip=ip,
            user_agent=user_agent[:AGENT_LENGTH],
        )
        await session_store.insert(tx, session, digest_of(token))
        await store.update(tx, account_id, {"signed_in_at_ms": now_ms})
        return session, token

    async def session_of(self, tx: Tx, token: str) -> AccountSession | None:
        """Who is signed in by this secret; None if nobody is any more."""
        return await session_store.find(tx, digest_of(token), self._clock.now_ms())

    async def visit(self, token: str) -> AccountSession | None:
        """The same, for a browser that asks for a page; once a minute it is noted that it was there."""
        async with self._db.read() as tx:
            session = await self.session_of(tx, token)
        now_ms = self._clock.now_ms()
        if session is not None and session.seen_at_ms <= now_ms - SEEN_EVERY_MS:
            async with self._db.transaction() as tx:
                await session_store.saw(
                    tx,
                    session.session_id,
                    session.account.account_id,
                    now_ms,
                    now_ms - SEEN_EVERY_MS,
                )
        return session

    async def sessions_of(self, tx: Tx, account_id: str) -> list[AccountSession]:
        """The browsers in which somebody is signed in, the newest first."""
        return await session_store.list_of(tx, account_id, self._clock.now_ms())

    async def end_session(self, tx: Tx, account_id: str, session_id: str) -> None:
        """Signs one browser out. Raises `NotFound`."""
        if not await session_store.end(tx, account_id, session_id):
            raise NotFound("that browser is not signed in any more")

    async def end_others(self, tx: Tx, account_id: str, session_id: str) -> int:
        """Signs out all browsers but that of `session_id`; how many they were."""
        return await session_store.end_all(tx, account_id, but=session_id)

    async def projects_of(self, tx: Tx, account_id: str) -> Sequence[Membership]:
        """The oldest first."""
        return await self._members.projects_of(tx, account_id)

    async def create_project(self, tx: Tx, account: Viewer, name: str) -> Project:
        """A new project of somebody's, in which they are a member too: their name stands beside what
        they answer. Raises `Conflict` beyond their plan's number, `ValidationFailed` for the name."""
        await tx.lock(f"projects of {account.account_id}")
        plan = await self._billing.plan_of_account(tx, account.account_id)
        owned = await self._projects.count_owned(tx, account.account_id)
        if plan is not None and plan.max_projects is not None and owned >= plan.max_projects:
            raise Conflict(
                "your plan {name!r} has {limit} project(s); another plan has more, and the"
                " operator of the service changes it",
                name=plan.name,
                limit=plan.max_projects,
            )
        project = await self._projects.add(tx, name)
        await self.give_project(tx, project.project_id, account.account_id)
        body = AddMemberBody(name=account.name, email=account.email, role="owner")
        member = await self._members.add(tx, project.project_id, body)
        await self._members.link_account(
            tx, project.project_id, member.member_id, account.account_id
        )
        return project

    async def all_projects(
        self, tx: Tx, after: str | None, most: int, prefix: str = ""
    ) -> list[tuple[Project, Account | None]]:
        """Every project whose name or id begins with `prefix`, with its owner, the newest first; for the
        operator."""
        listed = await self._projects.list_newest(tx, after, most, prefix)
        owners = await store.find_many(tx, {owner for _, owner in listed if owner is not None})
        return [(project, owners.get(owner or "")) for project, owner in listed]

    async def give_project(self, tx: Tx, project_id: str, account_id: str | None) -> None:
        """Makes an account the owner of a project. Raises `NotFound`."""
        if account_id is not None:
            await self.find(tx, account_id)
        await self._projects.set_owner(tx, project_id, account_id)


def digest_of(token: str) -> str:
    """The digest of a secret for the database; a secret has 128 random bits, so it can't be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


def _address(email: str) -> str:
    try:
        return normalized(email)
    except ValueError as error:
        raise ValidationFailed.because(error, field="email") from None


def _name(name: str) -> str:
    text = " ".join(name.split())
    if not 0 < len(text) <= NAME_LENGTH or not text.isprintable():
        raise ValidationFailed("must have 1-{limit} characters", field="name", limit=NAME_LENGTH)
    return text
