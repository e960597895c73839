"""Fills a running service through its API alone, as a site and people at a messenger do."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import httpx2

from msgsvc_devkit.deadlines import patient

T = TypeVar("T")

#: What is written to a recording's configuration. Links in answers name `base_url`, whatever listens where.
CONFIGURATION = """\
base_url = "http://127.0.0.1:8000"
plugins = ["sandbox", "telegram", "max", "auth", "billing", "broadcasts", "dashboard", "drip", "forms",
  "helpdesk", "oidc", "otp", "scheduling", "webhooks"]
[channels.messenger_a]
plugin = "sandbox"
[channels.messenger_b]
plugin = "sandbox"
[oidc]
registration = true
[webhooks]
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
[limits]
requests_per_minute = 100000
[log]
level = "warning"
"""

#: Where nobody listens: deliveries to it wait for their next attempts.
NOWHERE = "http://127.0.0.1:9/hook"
CALLBACK = "https://shop.example/back"

#: When what is planned happens. Tests of a recording begin at its moment, so it is after them;
#: a ticket sleeps for a year at most.
LATER = f"{datetime.now(UTC) + timedelta(days=300):%Y-%m-%dT%H:00:00Z}"

#: Of a message to Bob, `Only once`.
IDEMPOTENCY_KEY = "order-1207-paid"

#: Seconds that a message may take to its chat.
PATIENCE_S = patient(30.0)


@dataclass(slots=True)
class Filled:
    """What a program that uses the service would keep: `ids` by the name of the path's parameter that takes
    them, and what has to be presented later."""

    project_id: str
    key: str
    ids: dict[str, list[str]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, value: str) -> str:
        self.ids.setdefault(name, []).append(value)
        return value

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Api:
    """Calls with the project's key; an answer that is no success is an `AssertionError`."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def get(self, path: str, **params: Any) -> Any:
        return self._answered(self._client.get(path, params=params))

    def post(self, path: str, *, idempotency_key: str | None = None, **body: Any) -> Any:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self._answered(self._client.post(path, json=body, headers=headers))

    def put(self, path: str, **body: Any) -> Any:
        return self._answered(self._client.put(path, json=body))

    def patch(self, path: str, **body: Any) -> Any:
        return self._answered(self._client.patch(path, json=body))

    def upload(self, path: str, name: str, content: bytes) -> Any:
        return self._answered(self._client.post(path, files={"file": (name, content)}))

    @staticmethod
    def _answered(answer: httpx2.Response) -> Any:
        assert answer.is_success, f"{answer.request.url}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at the sandbox messenger."""

    api: Api
    person_id: str

    @classmethod
    def new(cls, api: Api, name: str, lang: str = "en") -> "Person":
        made = api.post("/sandbox/api/people", name=name, username=name.lower(), lang=lang)
        return cls(api, made["person_id"])

    def open(self, link: str) -> None:
        self.api.post(f"/sandbox/api/people/{self.person_id}/open", link=link)

    def write(self, text: str, channel: str = "messenger_a") -> None:
        self.api.post(f"/sandbox/api/people/{self.person_id}/chats/{channel}/messages", text=text)

    def messages(self) -> list[dict[str, Any]]:
        state = self.api.get(f"/sandbox/api/people/{self.person_id}/state", since=0)
        return list(state["messages"])

    def received(self, text: str) -> dict[str, Any]:
        """The latest message with that text in it, once it is there."""

        def found() -> dict[str, Any] | None:
            matching = [each for each in self.messages() if text in text_of(each)]
            return matching[-1] if matching else None

        return eventually(found)

    def press(self, message: Mapping[str, Any], label: str) -> None:
        """Presses the button that says so."""
        for row, buttons in enumerate(message["buttons"]):
            for column, button in enumerate(buttons):
                if label in button["text"]:
                    chat = f"/sandbox/api/people/{self.person_id}/chats/{message['channel']}"
                    self.api.post(f"{chat}/messages/{message['ref']}/press", row=row, column=column)
                    return
        raise AssertionError(f"no button {label!r} in {message['buttons']}")


def text_of(message: Mapping[str, Any]) -> str:
    return "".join(span["text"] for span in message["spans"])


def eventually(found: Callable[[], T | None]) -> T:
    """What `found` answers once that is not None."""
    deadline = time.monotonic() + PATIENCE_S
    while (answer := found()) is None:
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.02)
    return answer


def fill(client: httpx2.Client, project_id: str, key: str) -> Filled:
    """Uses every area; returns when what was to be sent has been."""
    made = Filled(project_id, key)
    api = Api(client)
    _settings(api, made)
    ann, bob = _people(api, made)
    _sending(api, made)
    _mailings(api, made)
    _forms(api, made, client)
    _tickets(api, made, bob)
    _openid(api, made)
    _until_settled(api, ann)
    _deliveries(api, made)
    _waiting(api, made, ann)
    return made


def _settings(api: Api, made: Filled) -> None:
    webhook = api.post("/v1/webhooks", url=NOWHERE, description="The shop")
    made.note("webhook_id", webhook["webhook_id"])
    made.secrets["webhook"] = webhook["secret"]
    for key in ("news", "sale"):
        title = {"en": key.title(), "ru": "Новости"}
        made.note("permission_key", api.post("/v1/permissions", key=key, title=title)["key"])
    for name in ("vip", "late"):
        made.note("tag", api.post("/v1/tags", name=name)["name"])
    template = api.post(
        "/v1/templates",
        key="hello",
        text={
            "en": 'Hi, order {{ order | default("0") }}',
            "ru": 'Заказ {{ order | default("0") }}',
        },
        buttons=[[{"text": {"en": "Track"}, "url": "https://shop.example/track"}]],
    )
    made.note("template", template["key"])
    file = api.upload("/v1/files", "price list.txt", "Хлеб 1,20".encode() * 40)
    made.note("file_id", file["file_id"])
    own = api.post("/v1/channels", name="own", plugin="sandbox", settings={"title": "The bot"})
    made.note("name", own["name"])
    link = api.post(
        "/v1/auth/links", slug="shop", name="Shop", callback_url=CALLBACK, number_matching=True
    )
    made.note("slug", link["slug"])


def _people(api: Api, made: Filled) -> tuple[Person, Person]:
    """Three subscribers, of whom one has left, two sign-ins, and a member with a chat."""
    ann, bob, cat = (Person.new(api, name) for name in ("Ann", "Bob", "Cat"))
    for number, person in enumerate((ann, bob, cat)):
        links = api.post(
            "/v1/subscribers/links",
            tags=["vip"] if number else ["vip", "late"],
            permissions=["news"],
            external_id=f"customer-{number}",
        )
        person.open(links["links"]["messenger_a"])
    cat.write("/stop")
    eventually(lambda: api.get("/v1/subscribers", status="unsubscribed")["data"] or None)
    for each in api.get("/v1/subscribers")["data"]:
        made.note("subscriber_id", each["subscriber_id"])
    signed_in = _sign_in(api, made, ann)
    made.secrets["used_code"] = signed_in["code"]
    api.post("/v1/auth/verify", code=signed_in["code"])
    member = api.post("/v1/members", name="Kim", email="kim@shop.example", role="agent")
    made.note("member_id", member["member_id"])
    kim = Person.new(api, "Kim", "ru")
    kim.open(api.post(f"/v1/members/{member['member_id']}/link")["links"]["messenger_b"])
    eventually(lambda: api.get(f"/v1/members/{member['member_id']}")["subscriber_ids"] or None)
    return ann, bob


def _sign_in(api: Api, made: Filled, person: Person) -> dict[str, Any]:
    """A sign-in that the person has confirmed, and whose code nobody has exchanged."""
    session = api.post("/v1/auth/session", state="s", callback_url=CALLBACK)
    path = f"/v1/auth/session/{made.note('session_id', session['session_id'])}/status"
    before = len(person.messages())
    person.open(session["links"]["messenger_a"])
    question = eventually(
        lambda: next((each for each in person.messages()[before:] if each["buttons"]), None)
    )
    person.press(question, question["buttons"][0][0]["text"])
    return dict(
        eventually(lambda: status if (status := api.get(path))["status"] == "confirmed" else None)
    )


def _sending(api: Api, made: Filled) -> None:
    ann, bob, cat = (f"customer-{number}" for number in range(3))
    messages = [
        api.post("/v1/send", external_id=ann, text="**Hi** Ann", metadata={"order": "1"}),
        api.post("/v1/send", external_id=ann, template="hello", variables={"order": 7}),
        api.post("/v1/send", external_id=bob, text="Sale", permission="sale"),
        api.post("/v1/send", external_id=cat, text="Are you there?"),
        api.post(
            "/v1/send",
            external_id=bob,
            text="Call?",
            buttons=[[{"text": "Yes", "data": "call:1"}]],
        ),
    ]
    for each in messages:
        made.note("message_id", each["message_id"])
    batch = api.post(
        "/v1/send/batch",
        messages=[{"external_id": name, "text": "Batch"} for name in (ann, bob, cat)],
    )
    made.note("batch_id", batch["batch_id"])
    api.post("/v1/events", external_id=bob, name="cart.abandoned", properties={"total": 49.9})
    code = api.post("/v1/otp/send", external_id=bob)
    made.note("otp_id", code["otp_id"])


def _mailings(api: Api, made: Filled) -> None:
    everybody = {"audience": {"all": True}}
    done = api.post("/v1/broadcast", **everybody, text="Hi {{ first_name }}", metadata={"c": "1"})
    later = api.post("/v1/broadcast", **everybody, template="hello", send_at=LATER)
    for each in (done, later):
        made.note("job_id", each["job_id"])
    once = api.post("/v1/scheduled", **everybody, text="Good morning", send_at=LATER)
    made.note("scheduled_id", once["scheduled_id"])
    other = api.post("/v1/scheduled", external_id="customer-0", text="No", send_at=LATER)
    api.patch(f"/v1/scheduled/{made.note('scheduled_id', other['scheduled_id'])}", text="Changed")
    often = api.post("/v1/recurring", **everybody, text="Hi", cron="0 9 * * *", starts_at=LATER)
    made.note("recurring_id", often["recurring_id"])
    steps = [
        {"delay": {"minutes": 0}, "message": {"text": "Welcome"}},
        {"delay": {"days": 300}, "message": {"template": "hello"}, "when": {"tags_any": ["vip"]}},
    ]
    drip = api.post("/v1/drips", name="Welcome", trigger={"on": "manual"}, steps=steps)
    made.note("drip_id", drip["drip_id"])
    enrolled = api.post(f"/v1/drips/{drip['drip_id']}/enroll", external_id="customer-0")
    made.note("enrollment_id", enrolled["enrollment_id"])


def _forms(api: Api, made: Filled, client: httpx2.Client) -> None:
    form = api.post(
        "/v1/forms",
        slug="call-back",
        title={"en": "Call me back", "ru": "Перезвоните"},
        fields=[
            {"key": "name", "type": "text", "label": "Name", "required": True},
            {"key": "time", "type": "choice", "label": "When?", "options": ["am", "pm"]},
        ],
        routes=[{"to": {"kind": "ticket", "priority": "high"}}],
        min_fill_seconds=0,
    )
    form_id = made.note("form_id", form["form_id"])
    token = api.get(f"/f/{form_id}/token")["token"]
    submitted = client.post(f"/f/{form_id}", json={"_token": token, "name": "Dan", "time": "pm"})
    assert submitted.status_code == 201, submitted.text
    made.note("submission_id", submitted.json()["submission_id"])


def _tickets(api: Api, made: Filled, bob: Person) -> None:
    member_id = made.ids["member_id"][0]
    ticket = api.post(
        "/v1/tickets", external_id="customer-1", text="Where is it?", subject="Parcel", tags=["dhl"]
    )
    ticket_id = made.note("ticket_id", str(ticket["ticket_id"]))
    api.post(f"/v1/tickets/{ticket_id}/reply", text="Tomorrow.", member_id=member_id)
    api.post(f"/v1/tickets/{ticket_id}/reply", text="A regular.", internal=True)
    api.patch(f"/v1/tickets/{ticket_id}", assignee_id=member_id)
    bob.received("Tomorrow.")
    bob.write("Thank you!")
    other = api.post("/v1/tickets", channel="virtual", text="By phone")
    other_id = made.note("ticket_id", str(other["ticket_id"]))
    api.patch(f"/v1/tickets/{other_id}", snoozed_until=LATER)
    canned = api.post("/v1/tickets/canned-answers", key="hours", title="Hours", text="9 to 5")
    made.note("canned_answer", canned["key"])
    api.put(f"/v1/tickets/blocklist/{made.ids['subscriber_id'][0]}", reason="Spam")


def _openid(api: Api, made: Filled) -> None:
    client = api.post("/v1/oidc/clients", name="The shop", redirect_uris=[CALLBACK])
    client_id = made.note("client_id", client["client_id"])
    made.secrets["oidc_client"] = client["client_secret"]
    secret = api.post(f"/v1/oidc/clients/{client_id}/secrets")
    made.note("secret_id", secret["secret_id"])
    token = api.post("/v1/oidc/registration-tokens", name="Build server")
    made.note("token_id", token["token_id"])
    # The first who asks for the keys has them made.
    api.get(f"/oidc/{made.project_id}/jwks")


def _until_settled(api: Api, ann: Person) -> None:
    """Nothing is on its way any more, but what waits for its time."""

    def settled() -> bool | None:
        messages = api.get("/v1/messages", limit=100)["data"]
        open_ones = [each for each in messages if each["status"] in {"queued", "sending"}]
        first = api.get("/v1/broadcast", limit=100)["data"][-1]
        return True if not open_ones and first["status"] == "completed" else None

    eventually(settled)
    ann.received("Welcome")


def _deliveries(api: Api, made: Filled) -> None:
    """Those of the webhook, which nobody has taken yet."""
    [webhook_id] = made.ids["webhook_id"]
    for each in api.get(f"/v1/webhooks/{webhook_id}/deliveries", limit=3)["data"]:
        made.note("delivery_id", each["delivery_id"])


def _waiting(api: Api, made: Filled, ann: Person) -> None:
    """What has to be presented within minutes."""
    made.secrets["code"] = _sign_in(api, made, ann)["code"]
    pending = api.post("/v1/auth/session", state="waiting", callback_url=CALLBACK)
    made.note("session_id", pending["session_id"])
    made.secrets["pending_session"] = pending["session_id"]
    made.secrets["pending_link"] = pending["links"]["messenger_a"]
    links = api.post("/v1/subscribers/links", tags=["vip"], external_id="customer-9")
    made.secrets["link"] = links["links"]["messenger_a"]
    once = api.post(
        "/v1/send", idempotency_key=IDEMPOTENCY_KEY, external_id="customer-1", text="Only once"
    )
    made.secrets["only_once"] = made.note("message_id", once["message_id"])
    code = api.post("/v1/otp/send", external_id="customer-0")
    otp_id = made.note("otp_id", code["otp_id"])
    eventually(lambda: True if api.get(f"/v1/otp/{otp_id}")["status"] == "sent" else None)
    message = ann.messages()[-1]
    digits = [word for word in text_of(message).replace(".", " ").split() if word.isdigit()]
    made.secrets["otp"] = next(word for word in digits if len(word) >= 4)
    made.secrets["otp_id"] = otp_id
    made.secrets["ann"] = ann.person_id
