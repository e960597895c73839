"""What projects of the tests of isolation have: one resource of every kind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgsvc_auth.service import SignIn
from msgsvc_core.channels import (
    BotProfile,
    Channel,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    MiniAppUser,
    Unreadable,
    UnreadableReason,
)
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.config.sections import Section
from msgsvc_core.jobs import NewJob, inspection
from msgsvc_core.jobs.inspection import Filter
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.channel import RecordingBotMaker
from msgsvc_devkit.fixtures import Tenant
from msgsvc_forms.models import NewSubmission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from tests.api.subscribing import Subscribe

PLUGINS = (
    "auth",
    "broadcasts",
    "drip",
    "forms",
    "gateway",
    "helpdesk",
    "oidc",
    "otp",
    "scheduling",
    "webhooks",
)

#: A shared channel with mini apps, whose `init_data` is the name of who opened one.
MINI_APP, MINI_APP_KIND = "mini", "mini_app"

#: Webhooks may lead to this machine, where nothing listens: no test calls another host.
SETTINGS: dict[str, Any] = {
    "plugins": PLUGINS,
    "channels": {
        **{name: {"plugin": "recording"} for name in ("messenger_a", "messenger_b")},
        MINI_APP: {"plugin": MINI_APP_KIND},
    },
    "oidc": {"registration": True},
    "webhooks": {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
}
HOOK = "http://127.0.0.1:9/hook"
CALLBACK = "https://shop.example/back"

#: A time at which nothing of these tests happens.
LATER = "2026-02-01T00:00:00Z"
LATER_MS = 1_769_904_000_000

#: One resource of every kind that a project has, by the name of the field or parameter that names it.
Resources = Mapping[str, str]


async def resources_of(
    service: Service, tenant: Tenant, subscribe: Subscribe, person: str
) -> dict[str, str]:
    """Makes one resource of every kind; the names that projects choose begin with `person`'s."""
    low = person.lower()

    async def post(path: str, **body: Any) -> Any:
        answer = await tenant.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    webhook = await post("/v1/webhooks", url=HOOK)
    session = await post("/v1/auth/session", state="s")
    link = await post("/v1/auth/links", slug=f"{low}-shop", name="Shop", callback_url=CALLBACK)
    channel = await post("/v1/channels", name=f"{low}_bot", plugin="recording")
    item_id = await _shelved(service, channel["channel_id"], f"Dear {person}, your text is null")
    shared_item_id = await _shelved(service, "messenger_a", f"From: {low}@people.example")
    tag, external_id = f"{low}-tag", f"{low}-customer"
    granted, other = f"{low}-news", f"{low}-sale"
    for key in (granted, other):
        await post("/v1/permissions", key=key, title="News")
    subscriber_id = await subscribe(
        person, to=tenant, tags=[tag], permissions=[granted], external_id=external_id
    )
    message = await post("/v1/send", subscriber_id=subscriber_id, text="Hi")
    batch = await post("/v1/send/batch", messages=[{"subscriber_id": subscriber_id, "text": "Hi"}])
    # It waits for its confirmation, and is about nobody.
    nobody = {"action": "erase", "subscriber_ids": ["sub_0000000000000000000000"]}
    bulk = await post("/v1/subscribers/bulk-actions", **nobody)
    people = {"file": ("people.csv", b"address\nnot an address\n")}
    imported = await tenant.client.post("/v1/people/imports", files=people)
    assert imported.is_success, imported.text
    code = await post("/v1/otp/send", subscriber_id=subscriber_id)
    template = await post("/v1/templates", key=f"{low}-hello", text="Hi")
    on_both = [{"channel": channel["name"]}, {"channel": "messenger_a"}]
    route = await post("/v1/routes", name=person, steps=on_both)
    # It waits for its time, so it can be cancelled, and not paused.
    broadcast = await post("/v1/broadcast", audience={"all": True}, text="Hi", send_at=LATER)
    scheduled = await post("/v1/scheduled", audience={"all": True}, text="Hi", send_at=LATER)
    again = {"cron": "0 9 * * *", "starts_at": LATER}
    recurring = await post("/v1/recurring", audience={"all": True}, text="Hi", **again)
    steps = [{"delay": {"days": 1}, "message": {"text": "Hi"}}]
    chain = await post("/v1/drips", name="Welcome", trigger={"on": "manual"}, steps=steps)
    enrollment = await post(f"/v1/drips/{chain['drip_id']}/enroll", subscriber_id=subscriber_id)
    member = await post("/v1/members", name=person, email=f"{low}@shop.example")
    async with service.db.transaction() as tx:
        await service.members.bind(
            tx, tenant.project.project_id, member["member_id"], subscriber_id
        )
    file = await tenant.client.post("/v1/files", files={"file": (f"{low}.txt", b"Hi")})
    ticket = await post("/v1/tickets", channel="virtual", text="Hi", tags=[tag])
    assignee_id = member["member_id"]
    await post("/v1/tickets", subscriber_id=subscriber_id, text="Hi", assignee_id=assignee_id)
    canned = await post("/v1/tickets/canned-answers", key=f"{low}-hello", text="Hi")
    close = {"action": "close", "ticket_ids": ["tkt_0000000000000000000000"]}
    ticket_bulk = await post("/v1/tickets/bulk-actions", **close)
    blocked = await tenant.client.put(f"/v1/tickets/blocklist/{subscriber_id}", json={})
    assert blocked.is_success, blocked.text
    field = {"key": "name", "type": "text", "label": "Name"}
    form = await post(
        "/v1/forms", slug=f"{low}-form", title="Form", fields=[field], min_fill_seconds=0
    )
    async with service.db.transaction() as tx:
        submission = await service.get(Submissions).submit(
            tx,
            NewSubmission(
                form=await service.get(Forms).get(tx, tenant.project.project_id, form["form_id"]),
                source="web",
                answers={"name": person},
                lang="en",
            ),
        )
        trial = await service.get(SignIn).open_trial(tx, tenant.project.project_id)
        # It waits for its time, as an operator sees it.
        waiting = NewJob("message.deliver", {}, lane="default", run_at_ms=LATER_MS)
        await service.jobs.enqueue(tx, waiting)
        queued = await inspection.list_jobs(tx, Filter("ready", "default", waiting.name), 100)
    gateway = await post("/v1/gateways", name=person, sender="novu", channels=["messenger_a"])
    request = await post("/v1/channel-requests", name=f"{low}_new", plugin=MINI_APP_KIND)
    openid = await post("/v1/oidc/clients", name=person, redirect_uris=[CALLBACK])
    # Of two secrets one can be deleted.
    secret = await post(f"/v1/oidc/clients/{openid['client_id']}/secrets")
    registration = await post("/v1/oidc/registration-tokens", name=person)
    [api_key] = await service.projects.list_keys(tenant.project.project_id)
    await settled(service)
    journal = await tenant.client.get(f"/v1/webhooks/{webhook['webhook_id']}/deliveries")
    events = await tenant.client.get("/v1/events", params={"after_event_id": "", "limit": 1})
    return {
        "ticket_id": ticket["ticket_id"],
        "assignee_id": assignee_id,
        "key_id": api_key.key.key_id,
        "waiting_job_id": queued[-1].job_id,
        "canned_answer": canned["key"],
        "subscriber_id": subscriber_id,
        "external_id": external_id,
        "tag": tag,
        "ticket_tag": tag,
        "permission": granted,
        # One that people granted can't be removed.
        "permission_key": other,
        "message_id": message["message_id"],
        "webhook_id": webhook["webhook_id"],
        "gateway_id": gateway["gateway_id"],
        "delivery_id": journal.json()["data"][0]["delivery_id"],
        "session_id": session["session_id"],
        "trial_id": trial.session.session_id,
        "slug": link["slug"],
        "otp_id": code["otp_id"],
        "client_id": openid["client_id"],
        "secret_id": secret["secret_id"],
        "token_id": registration["token_id"],
        "drip_id": chain["drip_id"],
        "enrollment_id": enrollment["enrollment_id"],
        "file_id": file.json()["file_id"],
        "form_id": form["form_id"],
        "submission_id": submission.submission_id,
        "template": template["key"],
        "route_id": route["route_id"],
        "batch_id": batch["batch_id"],
        "bulk_action_id": bulk["bulk_action_id"],
        "import_id": imported.json()["import_id"],
        "ticket_bulk_action_id": ticket_bulk["bulk_action_id"],
        "job_id": broadcast["job_id"],
        "scheduled_id": scheduled["scheduled_id"],
        "recurring_id": recurring["recurring_id"],
        "name": channel["name"],
        "channel": channel["name"],
        "after_event_id": events.json()["data"][0]["event_id"],
        "member_id": member["member_id"],
        "channel_request_id": request["channel_request_id"],
        "item_id": item_id,
        "shared_item_id": shared_item_id,
    }


class MiniAppChannel(RecordingChannel):
    """Takes everyone for who they say they are, and knows people by their address too."""

    capabilities = replace(
        RecordingChannel.capabilities, mini_app=True, addresses=True, identity="mailbox"
    )

    def __init__(self, identity: ChannelIdentity) -> None:
        super().__init__(identity)
        self.bot_maker = RecordingBotMaker()
        self.profile = BotProfile(self.name)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        person = ChannelUser(f"user-{init_data}", init_data, None, "en")
        return MiniAppUser(person, signed_at_ms=2**50, chat_id=f"chat-{init_data}")


class MiniAppPlugin:
    """Brings the kind `mini_app`."""

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
            return MiniAppChannel(identity)

        return [ChannelKind("mini_app", Section, create)]


async def _shelved(service: Service, channel: str, text: str) -> str:
    """An item on a channel's shelf."""
    raw = text.encode()
    await service.inbound.receive(
        channel,
        Unreadable(
            update_id=Unreadable.id_of(raw),
            raw=raw,
            reason=UnreadableReason.MALFORMED,
            detail="text: is no text",
        ),
    )
    async with service.db.read() as tx:
        [item] = await service.get(Shelf).page(tx, channel, None, 1)
    return item.item_id
