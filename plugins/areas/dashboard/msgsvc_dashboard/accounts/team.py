"""Members of a project, managed by its owners and admins: invitations, roles, removal.

Whoever accepts an invitation becomes a member, with an account of their own. It gives no access to an
existing account: the inviter has the link too, and could sign in as somebody else.
"""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound
from msgsvc_core.members.models import AddMemberBody, Member, Role, UpdateMemberBody
from msgsvc_core.members.service import Members
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.models import Account, OneTimeLink
from msgsvc_dashboard.accounts.service import Accounts


class Team:
    """`service.get(Team)`. `by` is the role of the acting member: only owners appoint and remove owners."""

    def __init__(
        self, *, members: Members, accounts: Accounts, account_links: AccountLinks
    ) -> None:
        self._members = members
        self._accounts = accounts
        self._account_links = account_links

    async def invite(
        self, tx: Tx, project_id: str, body: AddMemberBody, *, by: Role
    ) -> tuple[Member, str]:
        """A new member, and the secret of their invitation.

        Raises `Conflict` for an email that is a member's, and beyond the plan's number of members.
        """
        self._check(by, body.role)
        member = await self._members.add(tx, project_id, body)
        token = await self._account_links.for_member(tx, project_id, member.member_id)
        return member, token

    async def invite_again(self, tx: Tx, project_id: str, member_id: str, *, by: Role) -> str:
        """A new link in place of the old one. Raises `Conflict` for who has joined, or was removed."""
        await self._lock(tx, project_id)
        member = await self._members.get(tx, project_id, member_id)
        self._check(by, member.role)
        if member.status != "active" or await self.account_of(tx, project_id, member_id):
            raise Conflict("{name} has joined, or was removed", name=member.name)
        return await self._account_links.for_member(tx, project_id, member_id)

    async def invitation(self, tx: Tx, link: OneTimeLink) -> tuple[Member, Account | None]:
        """Who is invited, and the account of their email if there is one. Raises `NotFound`."""
        assert link.project_id is not None
        assert link.member_id is not None
        member = await self._members.get(tx, link.project_id, link.member_id)
        if member.status != "active":
            raise NotFound("this invitation was taken back")
        return member, await self._accounts.find_by_email(tx, member.email)

    async def join(self, tx: Tx, token: str, account: Account) -> Member:
        """Makes an account the member that a link invites. Raises `NotFound`, `Forbidden` for another
        account than that of the email which is invited, and `Conflict` for who is a member already, and
        for one more person than the plan has."""
        link = await self._account_links.use(tx, token)
        if link.purpose != "invitation" or link.project_id is None:
            raise NotFound("this link is no invitation")
        await self._lock(tx, link.project_id)
        member, known = await self.invitation(tx, link)
        if known is None or known.account_id != account.account_id:
            raise Forbidden(
                "this invitation is for another email; sign in with the account of that one"
            )
        if await self._members.find_by_account(tx, member.project_id, account.account_id):
            raise Conflict("you are a member of this project already")
        await self._members.link_account(
            tx, member.project_id, member.member_id, account.account_id
        )
        return member

    async def manageable(self, tx: Tx, project_id: str, member_id: str, *, by: Role) -> Member:
        """A member whom somebody of that role may change: their email, and who speaks as them in
        messengers. Raises `NotFound` and `Forbidden`."""
        member = await self._members.get(tx, project_id, member_id)
        self._check(by, member.role)
        return member

    async def change_role(
        self, tx: Tx, project_id: str, member_id: str, role: Role, *, by: Role
    ) -> Member:
        """Raises `Forbidden`, and `Conflict` where the project would have no owner any more."""
        await self._lock(tx, project_id)
        before = await self._members.get(tx, project_id, member_id)
        self._check(by, before.role, role)
        if before.role == "owner" and role != "owner":
            await self._keep_an_owner(tx, project_id, member_id)
        return await self._members.change(tx, project_id, member_id, UpdateMemberBody(role=role))

    async def remove(self, tx: Tx, project_id: str, member_id: str, *, by: Role) -> Member:
        """Ends what somebody may do here, in the dashboard from the next page on. Raises as above."""
        await self._lock(tx, project_id)
        member = await self._members.get(tx, project_id, member_id)
        self._check(by, member.role)
        if member.role == "owner":
            await self._keep_an_owner(tx, project_id, member_id)
        await self._account_links.end_of_member(tx, project_id, member_id)
        await self._members.remove(tx, project_id, member_id)
        return member

    async def check_by_key(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None = None
    ) -> None:
        """Whether an API key may give a member that role, or remove them (None).

        Admins make keys: by one they could make themselves owners, and end those that there are. Raises
        `Conflict` for an owner, and for another owner to be, who signs in or is invited to.
        """
        await self._lock(tx, project_id)
        member = await self._members.get(tx, project_id, member_id)
        if member.role == role or "owner" not in {member.role, role}:
            return
        if await self._signs_in(tx, project_id, member_id):
            raise Conflict(
                "whoever signs in becomes an owner, or ends as one, in the dashboard", field="role"
            )

    async def check_owner_by_key(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Whether an API key may change who a member is, and who speaks as them in messengers.

        By a key an admin could make an owner's email and messenger their own. Raises `Conflict` for an
        owner who signs in, or is invited to.
        """
        member = await self._members.get(tx, project_id, member_id)
        if member.role == "owner" and await self._signs_in(tx, project_id, member_id):
            raise Conflict("an owner who signs in to the dashboard is changed, and linked, there")

    async def _signs_in(self, tx: Tx, project_id: str, member_id: str) -> bool:
        """Whether a member has an account, or is invited to."""
        if await self.account_of(tx, project_id, member_id) is not None:
            return True
        return member_id in await self._account_links.invited(tx, project_id)

    async def accounts_of(self, tx: Tx, project_id: str) -> dict[str, Account]:
        """The account of each member that has one, by the member's id."""
        by_member = await self._members.accounts_of(tx, project_id)
        found = await self._accounts.find_many(tx, by_member.values())
        return {
            member_id: found[account_id]
            for member_id, account_id in by_member.items()
            if account_id in found
        }

    async def account_of(self, tx: Tx, project_id: str, member_id: str) -> Account | None:
        """The account of a member; None until they join."""
        account_id = (await self._members.accounts_of(tx, project_id, member_id)).get(member_id)
        if account_id is None:
            return None
        return (await self._accounts.find_many(tx, [account_id])).get(account_id)

    async def _keep_an_owner(self, tx: Tx, project_id: str, member_id: str) -> None:
        if not await self._members.has_other_owner(tx, project_id, member_id):
            raise Conflict("this is the project's last owner; make another member owner first")

    async def _lock(self, tx: Tx, project_id: str) -> None:
        # Two owners who remove each other at once would both see that one is left.
        await tx.lock(f"owners of {project_id}")

    def _check(self, by: Role, *roles: Role) -> None:
        if by not in {"owner", "admin"} or ("owner" in roles and by != "owner"):
            raise Forbidden("only owners make owners, change them and remove them")
