"""/v1/members."""

from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Query, Router
from msgsvc_core.api.types import SubscriberId
from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import (
    AddMemberBody,
    LinkMemberBody,
    MemberAnswer,
    MemberId,
    MemberList,
    MemberQuery,
    UpdateMemberBody,
)
from msgsvc_core.members.owners import OwnerProtection
from msgsvc_core.members.service import Members
from msgsvc_core.subscribers.models import LinkAnswer

router = Router(area="members", description="The project's team.", group="project")


class RemovingQuery(Query):
    """Whether to erase the member too."""

    erase: bool = Field(
        default=False, description="Also erase name and email permanently.", examples=[False]
    )


@router.get("/v1/members", errors=(BadRequest,))
async def list_members(ctx: Context, query: MemberQuery, members: Members) -> MemberList:
    """Lists the project's members, newest first; removed ones with `status=removed`."""
    found = await members.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda member: member.member_id)
    return MemberList(data=[MemberAnswer.of(one) for one in page], next_cursor=following)


@router.post("/v1/members", status=201, errors=(Conflict,), audited=lambda _: _("Member added"))
async def add_member(ctx: Context, body: AddMemberBody, members: Members) -> MemberAnswer:
    """Adds a member. An email, in any case, identifies one member of a project."""
    return MemberAnswer.of(await members.add(ctx.tx, ctx.project_id, body))


@router.get("/v1/members/{member_id}", errors=(NotFound,))
async def get_member(ctx: Context, member_id: MemberId, members: Members) -> MemberAnswer:
    """Shows one member, including a removed one."""
    return MemberAnswer.of(await members.get(ctx.tx, ctx.project_id, member_id))


@router.patch(
    "/v1/members/{member_id}", errors=(NotFound, Conflict), audited=lambda _: _("Member changed")
)
async def update_member(
    ctx: Context,
    member_id: MemberId,
    body: UpdateMemberBody,
    owners: OwnerProtection,
    members: Members,
) -> MemberAnswer:
    """Changes a member's name, email and role; omitted fields stay unchanged.

    For members who sign in to the dashboard, the owner role can only be granted or revoked there; the
    name and email of such an owner can also only be changed there.
    """
    if body.name is not None or body.email is not None:
        await owners.check_owner_by_key(ctx.tx, ctx.project_id, member_id)
    if body.role is not None:
        await owners.check_by_key(ctx.tx, ctx.project_id, member_id, body.role)
    return MemberAnswer.of(await members.change(ctx.tx, ctx.project_id, member_id, body))


@router.delete(
    "/v1/members/{member_id}", errors=(NotFound, Conflict), audited=lambda _: _("Member removed")
)
async def delete_member(
    ctx: Context,
    member_id: MemberId,
    query: RemovingQuery,
    owners: OwnerProtection,
    members: Members,
) -> None:
    """Removes a member; they can no longer answer customers, including in messengers.

    They are still shown in past activity; `erase=true` also deletes their name and email. Remove an
    owner who signs in to the dashboard there.
    """
    await owners.check_by_key(ctx.tx, ctx.project_id, member_id)
    end = members.erase if query.erase else members.remove
    await end(ctx.tx, ctx.project_id, member_id)


@router.post(
    "/v1/members/{member_id}/link",
    status=201,
    errors=(NotFound, Conflict),
    audited=lambda _: _("Messenger linked"),
)
async def link_member(
    ctx: Context,
    member_id: MemberId,
    body: LinkMemberBody,
    owners: OwnerProtection,
    member_links: MemberLinks,
    channels: Channels,
) -> LinkAnswer:
    """Creates a link that connects a member to a messenger account: the first person to open it.

    One link per channel, also as a QR code; only one of them can be used, once. Keep them secret. Link
    an owner who signs in to the dashboard there.
    """
    await owners.check_owner_by_key(ctx.tx, ctx.project_id, member_id)
    payload, expires_at_ms = await member_links.create(
        ctx.tx, ctx.project_id, member_id, body.expires_in
    )
    links = channels.deep_links(ctx.project_id, payload)
    await channels.remember_start(ctx.tx, ctx.project_id, payload, expires_at_ms)
    return LinkAnswer(
        links=links,
        qr=channels.qr_links(links, ctx.project_id, payload),
        start_messages=channels.start_messages(ctx.project_id, payload, links) or None,
        expires_at=to_rfc3339(expires_at_ms),
    )


@router.delete(
    "/v1/members/{member_id}/subscribers/{subscriber_id}",
    errors=(NotFound,),
    audited=lambda _: _("Messenger unlinked"),
)
async def unlink_member(
    ctx: Context, member_id: MemberId, subscriber_id: SubscriberId, members: Members
) -> None:
    """Unlinks a member from one messenger; they stay a subscriber there."""
    await members.unlink(ctx.tx, ctx.project_id, member_id, subscriber_id)
