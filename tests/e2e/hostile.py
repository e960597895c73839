"""Fills a project with texts that try to be more than text, wherever people's texts are kept."""

from collections import Counter
from typing import Any

from msgsvc_devkit import settled
from msgsvc_forms.models import NewSubmission
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from tests.api.resources import HOOK, LATER
from tests.api.subscribing import subscribing
from tests.e2e.furnished import Furnished
from tests.payloads import LONG, NAMES

#: All of them in one text, as long as a message may be.
ALL = "\n".join((*NAMES, *LONG[:8]))

#: The same without what is no template: placeholders that are no names are refused.
TEMPLATE = "\n".join(line for line in ALL.split("\n") if "{" not in line)

#: What lists are asked for, in case one shows again what it was asked: by itself what some refuse, as then
#: they show nothing else, and the rest at once.
ASKED = (
    ("query", "q", "tag", "channel", "text", "external_id", "event", "name"),
    ("status",),
    ("cursor",),
)

#: What runs where it is taken for markup or for an address.
WORST = '"><img src=x onerror=alert(1)><script>alert(1)</script>'


class Filling:
    """Offers each text to the API, which may refuse it; `taken` counts those that it took, by path."""

    def __init__(self, place: Furnished) -> None:
        self._place = place
        self.taken: Counter[str] = Counter()
        self.refused: list[str] = []

    async def offer(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self._place.tenant.client.post(path, json=body)
        assert answer.status_code < 500, answer.text
        if not answer.is_success:
            self.refused.append(f"{path}: {answer.text}")
            return {}
        self.taken[path] += 1
        found: dict[str, Any] = answer.json()
        return found

    async def names(self) -> None:
        """Each text as the name of a person, a member, a permission, a ticket, and so on."""
        subscribe = subscribing(self._place.service, self._place.tenant)
        for number, text in enumerate(NAMES):
            subscriber_id = await subscribe(text)
            self.taken["people"] += 1
            await self.offer("/v1/members", name=text, email=f"m{number}@shop.example")
            await self.offer("/v1/permissions", key=f"p{number}", title=text, description=text)
            await self.offer("/v1/templates", key=f"t{number}", text=text)
            await self.offer("/v1/send", subscriber_id=subscriber_id, text=text)
            await self.offer("/v1/tickets", channel="virtual", text=text)
            await self.offer("/v1/tickets/canned-answers", key=f"c{number}", title=text, text=text)

    async def texts(self) -> dict[str, str]:
        """One resource of each kind with all of them; the ids by which pages name these."""
        place, ids = self._place, {}
        subscriber_id = await subscribing(place.service, place.tenant)(WORST)
        ids["subscriber_id"] = subscriber_id
        message = await self.offer("/v1/send", subscriber_id=subscriber_id, text=ALL)
        ids["message_id"] = message["message_id"]
        template = {"en": TEMPLATE, "ru": TEMPLATE}
        ids["template"] = (await self.offer("/v1/templates", key="worst", text=template))["key"]
        webhook = await self.offer("/v1/webhooks", url=HOOK, description=WORST)
        ids["webhook_id"] = webhook["webhook_id"]
        ticket = await self.offer("/v1/tickets", subscriber_id=subscriber_id, text=ALL)
        ids["ticket_id"] = ticket["ticket_id"]
        await self.offer(f"/v1/tickets/{ticket['ticket_id']}/reply", text=ALL, internal=True)
        audience = {"audience": {"all": True}, "text": TEMPLATE, "send_at": LATER}
        ids["job_id"] = (await self.offer("/v1/broadcast", **audience))["job_id"]
        ids["scheduled_id"] = (await self.offer("/v1/scheduled", **audience))["scheduled_id"]
        steps = [{"delay": {"days": 1}, "message": {"text": TEMPLATE}}]
        chain = await self.offer("/v1/drips", name=WORST, trigger={"on": "manual"}, steps=steps)
        ids["drip_id"] = chain["drip_id"]
        ids |= await self._form()
        upload = {"file": (f"{NAMES[4]}.txt", b"Hi", "text/plain")}
        answer = await place.tenant.client.post("/v1/files", files=upload)
        assert answer.is_success, answer.text
        await settled(place.service)
        return ids

    async def _form(self) -> dict[str, str]:
        place, project_id = self._place, self._place.tenant.project.project_id
        fields = [
            {"key": "name", "type": "text", "label": WORST},
            {
                "key": "pick",
                "type": "choice",
                "label": WORST,
                "options": [{"value": "a", "label": WORST}, {"value": "b", "label": NAMES[0]}],
            },
        ]
        body = {"slug": "worst", "title": WORST, "fields": fields, "min_fill_seconds": 0}
        made = await self.offer("/v1/forms", **body)
        forms = place.service.get(Forms)
        async with place.service.db.transaction() as tx:
            form = await forms.get(tx, project_id, made["form_id"])
            new = NewSubmission(
                form=form, source="web", answers={"name": ALL, "pick": "a"}, lang="en"
            )
            submission = await place.service.get(Submissions).submit(tx, new)
        return {"form_id": made["form_id"], "submission_id": submission.submission_id}
