"""A project's people: who they are, what they may do, and the links by which they join."""

from functools import partial
from typing import cast

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Moved, Nav, PageContext, Shown
from msgsvc_core.members.models import (
    LINK_EXPIRES_IN_S,
    AddMemberBody,
    Member,
    MemberQuery,
    Role,
    UpdateMemberBody,
)
from msgsvc_core.pages import qr_code
from msgsvc_dashboard.team.declared import TEAM
from msgsvc_dashboard.team.words import roles


@TEAM.get("/members", access="manage", nav=Nav("Team", icon="team", group="project", order=10))
async def members(page: PageContext) -> Shown:
    """The newest first, before them whose project it is."""
    given = {name: page.query[name] for name in ("cursor", "role") if page.query.get(name)}
    query = validate(MemberQuery, given, whole="query")
    service, project_id = page.service, page.project_id
    found = await service.members.page(page.tx, project_id, query)
    listed, cursor = query.cut(found, lambda member: member.member_id)
    owner_id = await service.accounts.owner_of(page.tx, project_id)
    owner = None if owner_id is None else await service.accounts.find(page.tx, owner_id)
    return Shown(
        "members.html",
        {
            "members": listed,
            "accounts": await service.team.accounts_of(page.tx, project_id),
            "invited": await service.account_links.invited(page.tx, project_id),
            "owner": owner,
            "roles": roles(page),
            "older": page.url("/members", role=query.role, cursor=cursor) if cursor else "",
            "plan": page.plan,
        },
    )


@TEAM.post("/members", access="manage", again=members)
async def invite(page: PageContext) -> Shown:
    """The link is shown this once."""
    form = page.form
    values = {name: form.text(name) for name in ("name", "email", "role")}
    member, token = await page.service.team.invite(
        page.tx, page.project_id, validate(AddMemberBody, values), by=_role(page)
    )
    page.note(member_id=member.member_id, role=member.role)
    return _invitation(page, member, token)


@TEAM.get("/members/{member_id}", access="manage")
async def member(page: PageContext) -> Shown:
    service, project_id = page.service, page.project_id
    found = await service.members.find(page.tx, project_id, page.params["member_id"])
    people = await service.subscribers.find_many(
        page.tx, [(project_id, each) for each in found.subscriber_ids]
    )
    return Shown(
        "member.html",
        {
            "member": found,
            "account": await service.team.account_of(page.tx, project_id, found.member_id),
            "invited": (await service.account_links.invited(page.tx, project_id)).get(
                found.member_id
            ),
            "subscribers": list(people.values()),
            "roles": roles(page),
            "shown_name": partial(page.service.channels.display_name, project_id=page.project_id),
        },
    )


@TEAM.post("/members/{member_id}", access="manage", again=member)
async def change(page: PageContext) -> Moved:
    """Name, e-mail and role."""
    service, project_id = page.service, page.project_id
    before = await service.team.manageable(
        page.tx, project_id, page.params["member_id"], by=_role(page)
    )
    form = page.form
    values = {name: form.text(name) for name in ("name", "email", "role")}
    body = validate(UpdateMemberBody, values)
    if body.role is not None and body.role != before.role:
        await service.team.change_role(
            page.tx, project_id, before.member_id, body.role, by=_role(page)
        )
    others = body.model_dump(include={"name", "email"})
    await service.members.change(page.tx, project_id, before.member_id, UpdateMemberBody(**others))
    page.note(role=body.role, before=before.role)
    return Moved(page.url(f"/members/{before.member_id}"), page._("Saved."))


@TEAM.post("/members/{member_id}/invitation", access="manage", again=member)
async def invite_again(page: PageContext) -> Shown:
    member_id = page.params["member_id"]
    token = await page.service.team.invite_again(
        page.tx, page.project_id, member_id, by=_role(page)
    )
    found = await page.service.members.find(page.tx, page.project_id, member_id)
    return _invitation(page, found, token)


@TEAM.post("/members/{member_id}/remove", access="manage", again=member)
async def remove(page: PageContext) -> Moved:
    removed = await page.service.team.remove(
        page.tx, page.project_id, page.params["member_id"], by=_role(page)
    )
    page.note(role=removed.role)
    notice = page._("{name} works here no more.", name=removed.name)
    return Moved(page.url("/members"), notice)


@TEAM.post("/members/{member_id}/messenger", access="manage", again=member)
async def link_messenger(page: PageContext) -> Shown:
    """Links by which somebody answers customers from a messenger."""
    member_id = page.params["member_id"]
    found = await page.service.team.manageable(page.tx, page.project_id, member_id, by=_role(page))
    payload, expires_at_ms = await page.service.member_links.create(
        page.tx, page.project_id, member_id, LINK_EXPIRES_IN_S
    )
    channels = page.service.channels
    links = channels.deep_links(page.project_id, payload)
    return Shown(
        "member_messenger.html",
        {
            "member": found,
            "expires_at_ms": expires_at_ms,
            "links": [
                (channels.display_name(name, page.project_id), link, qr_code(link))
                for name, link in links.items()
            ],
        },
    )


@TEAM.post("/members/{member_id}/messengers/{subscriber_id}/unlink", access="manage", again=member)
async def unlink_messenger(page: PageContext) -> Moved:
    member_id = page.params["member_id"]
    await page.service.team.manageable(page.tx, page.project_id, member_id, by=_role(page))
    await page.service.members.unlink(
        page.tx, page.project_id, member_id, page.params["subscriber_id"]
    )
    return Moved(page.url(f"/members/{member_id}"), page._("Unlinked."))


def _role(page: PageContext) -> Role:
    """Who asks; the page is for owners and admins."""
    return cast("Role", page.role)


def _invitation(page: PageContext, member: Member, token: str) -> Shown:
    return Shown(
        "invited.html",
        {
            "member": member,
            "link": page.service.account_links.url(token),
            "role": roles(page)[member.role],
        },
    )
