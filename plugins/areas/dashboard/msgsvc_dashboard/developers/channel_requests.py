"""Bots that a messenger makes for the project in one tap, in place of a token."""

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.project_channels.models import CreateChannelRequestBody
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.pages import qr_code
from msgsvc_dashboard.developers.area import pages
from msgsvc_dashboard.developers.channels import new_channel


@pages.post(
    "/channels/requests/new",
    access="project:write",
    form_page=new_channel,
    title=lambda _: _("Bot requested from a messenger"),
)
async def request_channel(page: PageContext, channel_requests: ChannelRequests) -> Redirect:
    body = validate(
        CreateChannelRequestBody,
        {"name": page.form.text("name").strip(), "plugin": page.form.text("plugin")},
    )
    made = await channel_requests.create(page.tx, page.project_id, body.name, body.plugin)
    page.note(channel=body.name)
    return Redirect(page.url(f"/channels/requests/{made.request_id}"))


@pages.get("/channels/requests/{channel_request_id}", access="project:write")
async def requested_channel(
    page: PageContext, channel_requests: ChannelRequests, all_channels: Channels
) -> Render:
    found = await channel_requests.get(page.tx, page.project_id, page.params["channel_request_id"])
    title = page.project.name if page.project else found.name
    link = channel_requests.link(found, title)
    kind = all_channels.kinds.for_projects.get(found.plugin)
    values = {
        "request": found,
        "messenger": (kind.title if kind else "") or found.plugin,
        "expired": channel_requests.has_expired(found),
        "link": link,
        "code": qr_code(link) if link else None,
    }
    template = "channel_request_state.html" if page.fragment == "state" else "channel_request.html"
    return Render(template, values)
