"""A project's members: roles, invitations, and links to messengers."""

from functools import partial
from typing import cast

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import (
    LINK_EXPIRES_IN_S,
    AddMemberBody,
    Member,
    MemberQuery,
    Role,
    UpdateMemberBody,
)
from msgsvc_core.members.service import Members
from msgsvc_core.pages import qr_code
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.team import Team
from msgsvc_dashboard.team.declared import TEAM
from msgsvc_dashboard.team.labels import roles


@TEAM.get(
    "/members", access="project:write", nav=Nav("Team", icon="team", group="project", order=10)
)
async def members(
    page: PageContext,
    all_members: Members,
    accounts: Accounts,
    projects: Projects,
    team: Team,
    account_links: AccountLinks,
) -> Render:
    """Newest first, after the project's owner."""
    given = {name: page.query[name] for name in ("cursor", "role") if page.query.get(name)}
    query = validate(MemberQuery, given, whole="query")
    project_id = page.project_id
    found = await all_members.page(page.tx, project_id, query)
    listed, cursor = query.cut(found, lambda member: member.member_id)
    owner_id = await projects.owner_of(page.tx, project_id)
    owner = None if owner_id is None else await accounts.find(page.tx, owner_id)
    return Render(
        "members.html",
        {
            "members": listed,
            "accounts": await team.accounts_of(page.tx, project_id),
            "invited": await account_links.invited(page.tx, project_id),
            "owner": owner,
            "roles": roles(page),
            "older": page.url("/members", role=query.role, cursor=cursor) if cursor else "",
            "plan": page.plan,
        },
    )


@TEAM.post(
    "/members", access="project:write", form_page=members, title=lambda _: _("Member invited")
)
async def invite(page: PageContext, team: Team, account_links: AccountLinks) -> Render:
    """The link is shown only once."""
    form = page.form
    values = {name: form.text(name) for name in ("name", "email", "role")}
    member, token = await team.invite(
        page.tx, page.project_id, validate(AddMemberBody, values), by=_role(page)
    )
    page.note(member_id=member.member_id, role=member.role)
    return _invitation(page, account_links, member, token)


@TEAM.get("/members/{member_id}", access="project:write")
async def member(
    page: PageContext,
    all_members: Members,
    subscribers: Subscribers,
    team: Team,
    account_links: AccountLinks,
    channels: Channels,
) -> Render:
    project_id = page.project_id
    found = await all_members.get(page.tx, project_id, page.params["member_id"])
    people = await subscribers.get_many(
        page.tx, [(project_id, each) for each in found.subscriber_ids]
    )
    return Render(
        "member.html",
        {
            "member": found,
            "account": await team.account_of(page.tx, project_id, found.member_id),
            "invited": (await account_links.invited(page.tx, project_id)).get(found.member_id),
            "subscribers": list(people.values()),
            "roles": roles(page),
            "shown_name": partial(channels.display_name, project_id=page.project_id),
        },
    )


@TEAM.post(
    "/members/{member_id}",
    access="project:write",
    form_page=member,
    title=lambda _: _("Member changed"),
)
async def change(page: PageContext, team: Team, all_members: Members) -> Redirect:
    """Name, email and role."""
    project_id = page.project_id
    before = await team.manageable(page.tx, project_id, page.params["member_id"], by=_role(page))
    form = page.form
    values = {name: form.text(name) for name in ("name", "email", "role")}
    body = validate(UpdateMemberBody, values)
    if body.role is not None and body.role != before.role:
        await team.change_role(page.tx, project_id, before.member_id, body.role, by=_role(page))
    others = body.model_dump(include={"name", "email"})
    await all_members.change(page.tx, project_id, before.member_id, UpdateMemberBody(**others))
    page.note(role=body.role, before=before.role)
    return Redirect(page.url(f"/members/{before.member_id}"), page._("Saved."))


@TEAM.post(
    "/members/{member_id}/invitation",
    access="project:write",
    form_page=member,
    title=lambda _: _("Member invited"),
)
async def invite_again(
    page: PageContext, team: Team, all_members: Members, account_links: AccountLinks
) -> Render:
    member_id = page.params["member_id"]
    token = await team.invite_again(page.tx, page.project_id, member_id, by=_role(page))
    found = await all_members.get(page.tx, page.project_id, member_id)
    return _invitation(page, account_links, found, token)


@TEAM.post(
    "/members/{member_id}/remove",
    access="project:write",
    form_page=member,
    title=lambda _: _("Member removed"),
)
async def remove(page: PageContext, team: Team) -> Redirect:
    removed = await team.remove(page.tx, page.project_id, page.params["member_id"], by=_role(page))
    page.note(role=removed.role)
    notice = page._("{name} was removed from the team.", name=removed.name)
    return Redirect(page.url("/members"), notice)


@TEAM.post(
    "/members/{member_id}/messenger",
    access="project:write",
    form_page=member,
    title=lambda _: _("Messenger link created"),
)
async def link_messenger(
    page: PageContext, team: Team, member_links: MemberLinks, all_channels: Channels
) -> Render:
    """Links by which a member replies to customers from a messenger."""
    member_id = page.params["member_id"]
    found = await team.manageable(page.tx, page.project_id, member_id, by=_role(page))
    payload, expires_at_ms = await member_links.create(
        page.tx, page.project_id, member_id, LINK_EXPIRES_IN_S
    )
    channels = all_channels
    links = channels.deep_links(page.project_id, payload)
    await channels.remember_start(page.tx, page.project_id, payload, expires_at_ms)
    typed = channels.start_messages(page.project_id, payload, links)
    return Render(
        "member_messenger.html",
        {
            "member": found,
            "expires_at_ms": expires_at_ms,
            "links": [
                (channels.display_name(name, page.project_id), link, qr_code(link), typed.get(name))
                for name, link in links.items()
            ],
        },
    )


@TEAM.post(
    "/members/{member_id}/messengers/{subscriber_id}/unlink",
    access="project:write",
    form_page=member,
    title=lambda _: _("Messenger unlinked"),
)
async def unlink_messenger(page: PageContext, team: Team, all_members: Members) -> Redirect:
    member_id = page.params["member_id"]
    await team.manageable(page.tx, page.project_id, member_id, by=_role(page))
    await all_members.unlink(page.tx, page.project_id, member_id, page.params["subscriber_id"])
    return Redirect(page.url(f"/members/{member_id}"), page._("Unlinked."))


def _role(page: PageContext) -> Role:
    """Who asks; the page is for owners and admins."""
    return cast("Role", page.role)


def _invitation(
    page: PageContext, account_links: AccountLinks, member: Member, token: str
) -> Render:
    return Render(
        "invited.html",
        {
            "member": member,
            "link": account_links.url(token),
            "role": roles(page)[member.role],
        },
    )
