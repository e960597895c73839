"""The project member of a dashboard account: the author of replies."""

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_core.members import Members
from msgsvc_core.members.models import AddMemberBody, Member


async def who_reads(page: PageContext, members: Members) -> Member | None:
    """The member who has this page open; None for an owner who has not replied to anyone yet."""
    if page.member is not None or page.role != "owner":
        return page.member
    # They may have been added by their email, without an invitation.
    agents = await members.list_agents(page.tx, page.project_id)
    return next((one for one in agents if one.email == page.viewer.email), None)


def viewer_of(page: PageContext) -> str:
    """Who looks at tickets: the member, or the account of an owner who is none."""
    return page.viewer.account_id if page.member is None else page.member.member_id


async def who_acts(page: PageContext, members: Members) -> Member:
    """The member who submits a form. An owner who is no member becomes one.

    Raises `Forbidden` for anyone else who is not a member.
    """
    if page.member is not None:
        return page.member
    # Two concurrent forms create one member.
    await page.tx.lock(f"member {page.viewer.email} of {page.project_id}")
    known = await who_reads(page, members)
    if known is not None:
        return known
    if page.role != "owner":
        raise Forbidden("only members of the project answer its customers")
    body = {"name": page.viewer.name or page.viewer.email, "email": page.viewer.email}
    member = await members.add(
        page.tx, page.project_id, validate(AddMemberBody, {**body, "role": "owner"})
    )
    account_id = page.viewer.account_id
    await members.link_account(page.tx, page.project_id, member.member_id, account_id)
    return member
