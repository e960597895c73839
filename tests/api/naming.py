"""Where requests name resources: in the path, in the query string, in the body.

`tests/api/test_isolation.py` asks each of these places for another project's resource. What a new route
needs is said here: a body in `BODIES` where it has one, and a request in `NAMING_BODIES` for every field of a
body that names a resource. `tests/api/resources.py` makes a resource of each kind.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import Settings
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from tests.api.naming_forms import FORM_BODIES
from tests.api.resources import LATER, MINI_APP, PLUGINS, SETTINGS, Resources
from tests.paths import by_kind, kinds_in

#: What each route with an id in its path needs as its body.
BODIES: dict[str, Any] = {
    "update_oidc_client": {"name": "mine now"},
    "update_webhook": {"description": "mine now"},
    "update_gateway": {"name": "mine now"},
    "update_auth_link": {"name": "mine now"},
    "update_channel": {"settings": {}},
    "update_subscriber": {"lang": "ru"},
    "rename_tag": {"name": "mine-now"},
    "update_permission": {"title": "Mine now"},
    "update_template": {"text": "mine now"},
    "preview_template": {},
    "update_route": {"name": "mine now"},
    "edit_message": {"text": "mine now"},
    "replay_webhook": {"since": "2026-01-15T11:00:00Z"},
    "confirm_bulk_action": {"total": 1},
    "choose_broadcast_winner": {"variant": "A"},
    "update_scheduled": {"text": "mine now"},
    "update_recurring": {"text": "mine now"},
    "update_drip": {"name": "mine now"},
    "update_member": {"name": "Mine now"},
    "link_member": {},
    "reply_to_ticket": {"text": "mine now", "internal": True},
    "add_customer_reply": {"text": "mine now"},
    "update_ticket": {"priority": "low"},
    # The second ticket of whoever asks.
    "merge_ticket": {"into": "2"},
    "update_canned_answer": {"title": "mine now"},
    "block_customer": {},
    "update_ticket_agent": {"available": False},
    "record_ticket_viewer": {"typing": True},
    "update_form": {"title": "mine now"},
    # That of the resources made for "Ann".
    "enroll_in_drip": {"external_id": "ann-customer"},
}


def _step(place: str, it: str) -> dict[str, Any]:
    """A step of a chain that names a resource in its message or its conditions."""
    if place == "route_id":
        return {"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": it}
    part, name = place.split(".")
    message: dict[str, Any] = {"text": "Hi"}
    if part == "message":
        message = {"template": it} if name == "template" else {"text": "Hi", name: it}
    step: dict[str, Any] = {"delay": {"hours": 1}, "message": message}
    if part == "when":
        step["when"] = {name: [it] if name.startswith("tags") else it}
    return step


#: Where a step names resources.
_IN_STEPS = (
    "route_id",
    "message.template",
    "message.permission",
    *(f"when.{name}" for name in ("tags_any", "tags_none", "permission", "channel")),
)

#: What the routes of scheduling are asked for beside a message and its receivers.
WHEN: dict[str, dict[str, Any]] = {
    "schedule_message": {"send_at": LATER},
    "create_recurring": {"cron": "0 9 * * *", "starts_at": LATER},
}

#: A body for every field that names a resource: `it` is what is named, `own` is the asker's.
NAMING_BODIES: dict[str, Callable[[str, Resources], Any]] = {
    "start_ticket_bulk_action.ticket_ids": lambda it, own: {"action": "close", "ticket_ids": [it]},
    **{
        f"start_ticket_bulk_action.filters.{name}": lambda it, own, name=name: {
            "action": "close",
            "filters": {name: it},
        }
        for name in ("assignee_id", "channel", "subscriber_id", "tag")
    },
    "create_route.steps.channel": lambda it, own: {"name": "New", "steps": [{"channel": it}]},
    "update_route.steps.channel": lambda it, own: {"steps": [{"channel": it}]},
    "start_bulk_action.subscriber_ids": lambda it, own: {
        "action": "erase",
        "subscriber_ids": [it],
    },
    **{
        f"start_bulk_action.filters.{name}": lambda it, own, name=name: {
            "action": "erase",
            "filters": {name: it},
        }
        for name in ("channel", "external_id", "permission", "tag")
    },
    "set_person_consent.external_id": lambda it, own: {
        "external_id": it,
        "channel": "messenger_a",
        "consent": "subscribed",
    },
    "set_person_consent.channel": lambda it, own: {
        "external_id": own["external_id"],
        "channel": it,
        "consent": "subscribed",
    },
    # Who it is merged into is nobody, so that one's own person stays.
    "merge_people.external_id": lambda it, own: {"external_id": it, "into": "nobody"},
    "split_person.subscriber_id": lambda it, own: {"subscriber_id": it},
    "create_gateway.channels": lambda it, own: {
        "name": "Mine",
        "sender": "novu",
        "channels": [it],
    },
    "update_gateway.channels": lambda it, own: {"channels": [it]},
    "send.subscriber_id": lambda it, own: {"subscriber_id": it, "text": "Hi"},
    "send.external_id": lambda it, own: {"external_id": it, "text": "Hi"},
    "send.channel": lambda it, own: {
        "external_id": own["external_id"],
        "channel": it,
        "text": "Hi",
    },
    **{
        f"{name}.route_id": lambda it, own, when=when: {
            "external_id": own["external_id"],
            "route_id": it,
            "text": "Hi",
            **when,
        }
        for name, when in WHEN.items()
    },
    "send.route_id": lambda it, own: {
        "external_id": own["external_id"],
        "route_id": it,
        "text": "Hi",
    },
    "send.template": lambda it, own: {"subscriber_id": own["subscriber_id"], "template": it},
    **{
        f"send_batch.messages.{name}": lambda it, own, name=name: {
            "messages": [NAMING_BODIES[f"send.{name}"](it, own)]
        }
        for name in (
            "subscriber_id",
            "external_id",
            "channel",
            "permission",
            "template",
            "route_id",
        )
    },
    "broadcast.template": lambda it, own: {"audience": {"all": True}, "template": it},
    "broadcast.variants.template": lambda it, own: {
        "audience": {"all": True},
        "variants": [{"text": "Hi"}, {"template": it}],
    },
    "broadcast.permission": lambda it, own: {
        "audience": {"all": True},
        "permission": it,
        "text": "Hi",
    },
    "broadcast.route_id": lambda it, own: {"audience": {"all": True}, "route_id": it, "text": "Hi"},
    "send_broadcast_test.subscriber_id": lambda it, own: {"subscriber_id": it, "text": "Hi"},
    "send_broadcast_test.template": lambda it, own: {
        "subscriber_id": own["subscriber_id"],
        "template": it,
    },
    "send_broadcast_test.permission": lambda it, own: {
        "subscriber_id": own["subscriber_id"],
        "text": "Hi",
        "permission": it,
    },
    "broadcast.audience.permission": lambda it, own: {
        "audience": {"permission": it},
        "text": "Hi",
    },
    **{
        f"broadcast.audience.{name}": lambda it, own, name=name: {
            "audience": {name: [it]},
            "text": "Hi",
            "dry_run": True,
        }
        for name in ("tags_any", "tags_all", "tags_none", "channels", "subscriber_ids")
    },
    **{
        f"{route}.{name}": lambda it, own, name=name, when=when: {name: it, "text": "Hi", **when}
        for route, when in WHEN.items()
        for name in ("subscriber_id", "external_id")
    },
    **{
        f"{route}.channel": lambda it, own, when=when: {
            "external_id": own["external_id"],
            "channel": it,
            "text": "Hi",
            **when,
        }
        for route, when in WHEN.items()
    },
    **{
        f"{route}.template": lambda it, own, when=when: {
            "audience": {"all": True},
            "template": it,
            **when,
        }
        for route, when in WHEN.items()
    },
    **{
        f"{route}.permission": lambda it, own, when=when: {
            "audience": {"all": True},
            "permission": it,
            "text": "Hi",
            **when,
        }
        for route, when in WHEN.items()
    },
    **{
        f"{route}.audience.permission": lambda it, own, when=when: {
            "audience": {"permission": it},
            "text": "Hi",
            **when,
        }
        for route, when in WHEN.items()
    },
    **{
        f"{route}.audience.{name}": lambda it, own, name=name, when=when: {
            "audience": {name: [it]},
            "text": "Hi",
            **when,
        }
        for route, when in WHEN.items()
        for name in ("tags_any", "tags_all", "tags_none", "channels", "subscriber_ids")
    },
    "update_scheduled.template": lambda it, own: {"template": it},
    "update_scheduled.permission": lambda it, own: {"permission": it},
    "update_scheduled.route_id": lambda it, own: {"route_id": it},
    "update_recurring.route_id": lambda it, own: {"route_id": it},
    "update_recurring.template": lambda it, own: {"template": it},
    "update_recurring.permission": lambda it, own: {"permission": it},
    "create_link.tags": lambda it, own: {"tags": [it]},
    "create_link.permissions": lambda it, own: {"permissions": [it]},
    "create_link.external_id": lambda it, own: {"external_id": it},
    "update_subscriber.external_id": lambda it, own: {"external_id": it},
    "update_subscriber.tags": lambda it, own: {"tags": [it]},
    "add_subscriber.channel": lambda it, own: {"channel": it, "address": "cat@shop.example"},
    **{
        f"add_subscriber.{name}": lambda it, own, name=name: {
            "channel": MINI_APP,
            "address": "cat@shop.example",
            name: [it] if name.endswith("s") else it,
        }
        for name in ("external_id", "tags", "permissions")
    },
    "create_session.channel": lambda it, own: {"state": "s", "channel": it},
    "send.permission": lambda it, own: {
        "subscriber_id": own["subscriber_id"],
        "permission": it,
        "text": "Hi",
    },
    "send_otp.subscriber_id": lambda it, own: {"subscriber_id": it},
    "send_otp.external_id": lambda it, own: {"external_id": it},
    "send_otp.channel": lambda it, own: {"external_id": own["external_id"], "channel": it},
    "send_otp.route_id": lambda it, own: {
        "external_id": own["external_id"],
        "purpose": "other",
        "route_id": it,
    },
    "request_otp.channel": lambda it, own: {"channel": it},
    "verify_otp.otp_id": lambda it, own: {"otp_id": it, "code": "wrong"},
    "verify_otp.subscriber_id": lambda it, own: {"subscriber_id": it, "code": "wrong"},
    "verify_otp.external_id": lambda it, own: {"external_id": it, "code": "wrong"},
    "verify_otp.channel": lambda it, own: {
        "external_id": own["external_id"],
        "channel": it,
        "code": "wrong",
    },
    "track_event.subscriber_id": lambda it, own: {"subscriber_id": it, "name": "visit"},
    "track_event.external_id": lambda it, own: {"external_id": it, "name": "visit"},
    "track_event.channel": lambda it, own: {
        "external_id": own["external_id"],
        "channel": it,
        "name": "visit",
    },
    **{
        f"create_drip.steps.{place}": lambda it, own, place=place: {
            "name": "Welcome",
            "trigger": {"on": "manual"},
            "steps": [_step(place, it)],
        }
        for place in _IN_STEPS
    },
    **{
        f"update_drip.steps.{place}": lambda it, own, place=place: {"steps": [_step(place, it)]}
        for place in _IN_STEPS
    },
    "enroll_in_drip.subscriber_id": lambda it, own: {"subscriber_id": it},
    "enroll_in_drip.external_id": lambda it, own: {"external_id": it},
    "enroll_in_drip.channel": lambda it, own: {"external_id": own["external_id"], "channel": it},
    "open_ticket.subscriber_id": lambda it, own: {"subscriber_id": it, "text": "Hi"},
    "open_ticket.external_id": lambda it, own: {"external_id": it, "text": "Hi"},
    "open_ticket.channel": lambda it, own: {
        "external_id": own["external_id"],
        "channel": it,
        "text": "Hi",
    },
    **{
        f"open_ticket.{name}": lambda it, own, name=name: {
            "channel": "virtual",
            "text": "Hi",
            name: [it] if name.endswith("s") else it,
        }
        for name in ("tags", "assignee_id", "file_ids")
    },
    **{
        f"reply_to_ticket.{name}": lambda it, own, name=name: {
            "text": "Hi",
            "internal": True,
            name: it,
        }
        for name in ("file_id", "member_id")
    },
    "add_customer_reply.file_ids": lambda it, own: {"text": "Hi", "file_ids": [it]},
    "update_ticket.assignee_id": lambda it, own: {"assignee_id": it},
    "update_ticket.tags": lambda it, own: {"tags": [it]},
    **FORM_BODIES,
    "subscribe_in_mini_app.channel": lambda it, own: {"channel": it, "init_data": "Cat"},
    "subscribe_in_mini_app.external_id": lambda it, own: {
        "channel": MINI_APP,
        "init_data": "Cat",
        "external_id": it,
    },
    "subscribe_in_mini_app.tags": lambda it, own: {
        "channel": MINI_APP,
        "init_data": "Cat",
        "tags": [it],
    },
}

#: Files for routes that take one, and that name a resource elsewhere.
UPLOADS: dict[str, Any] = {
    "start_people_import": {"file": ("people.csv", b"address\ncat@shop.example\n")}
}

#: Routes that refuse one's own resource as it is, with 409.
REFUSED_AS_IT_IS = {
    # It has ended.
    "cancel_people_import",
    "cancel_ticket_bulk_action",
    "subscribe_again",
    "redeliver_webhook_delivery",
    "pause_broadcast",
    "resume_broadcast",
    "enroll_in_drip",
    "resend_broadcast_to_unknown",
    "choose_broadcast_winner",
    "resume_recurring",
}

#: Fields whose value is kept as it is, and not looked up: one's own is answered as a missing one too.
KEPT_AS_GIVEN = {
    "create_link.tags",
    "create_link.external_id",
    "add_subscriber.tags",
    "add_subscriber.external_id",
    # Those of an audience are looked up at its time.
    "schedule_message.audience.subscriber_ids",
    "create_recurring.audience.subscriber_ids",
    # Who is named and not there counts as failed; the filters are those of the list.
    "start_ticket_bulk_action.ticket_ids",
    "start_ticket_bulk_action.filters.assignee_id",
    "start_ticket_bulk_action.filters.subscriber_id",
    "start_ticket_bulk_action.filters.tag",
    "start_bulk_action.subscriber_ids",
    "start_bulk_action.filters.external_id",
    "start_bulk_action.filters.permission",
    "start_bulk_action.filters.tag",
    # Who is named and not there counts as skipped.
    "broadcast.audience.subscriber_ids",
    # Those of a ticket are its own.
    "create_form.rules.to.tags",
    "update_form.rules.to.tags",
    "subscribe_in_mini_app.tags",
    "subscribe_in_mini_app.external_id",
    # Labels of tickets are no tags of people.
    "open_ticket.tags",
    "update_ticket.tags",
    *(
        f"{name}.steps.when.tags_{which}"
        for name in ("create_drip", "update_drip")
        for which in ("any", "none")
    ),
}

#: Parameters of paths that name no resource: labels of tickets are no tags of people.
LABELS = {"ticket_tag"}

#: Fields that are named like a resource, and name none.
NO_RESOURCES = {"paths.id"}

_NAMES_RESOURCE = re.compile(
    r"(\w+_)?ids?|(tag|permission|template|channel|subscriber|webhook)s?(_(any|all|none))?"
)


@dataclass(frozen=True)
class Place:
    """A place in a request that names a resource of `kind`; `name` is the parameter or field."""

    endpoint: Endpoint
    where: str
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.endpoint.method} {self.endpoint.path} {self.where} {self.name}"

    @property
    def key(self) -> str:
        return f"{self.endpoint.name}.{self.name}"

    @property
    def is_alone(self) -> bool:
        """Whether the request names nothing else."""
        asked: set[str] = set()

        class Own(dict[str, str]):
            def __missing__(self, kind: str) -> str:
                asked.add(kind)
                return kind

        self.request("it", Own())
        return not asked

    def request(self, it: str, own: Resources) -> dict[str, Any]:
        """Arguments for `AsyncClient.request`: `it` stands in this place, `own` in all others."""
        in_path = {
            kind: it if (self.where, self.kind) == ("path", kind) else own[kind]
            for kind in kinds_in(self.endpoint.path)
        }
        request: dict[str, Any] = {
            "method": self.endpoint.method,
            "url": by_kind(self.endpoint.path).format_map(in_path),
        }
        body = BODIES.get(self.endpoint.name)
        if self.where == "body":
            body = NAMING_BODIES[self.key](it, own)
        if self.where == "query":
            request["params"] = {self.name: it}
        if self.where == "part":
            request["data"] = {self.name: it}
        if self.endpoint.name in UPLOADS:
            request["files"] = UPLOADS[self.endpoint.name]
        return request if body is None else {**request, "json": body}


def places() -> list[Place]:
    """Every place of every route that needs an API key."""
    settings = {
        **SETTINGS,
        "secret_keys": (SECRET_KEY,),
        "channels": {"messenger_a": {"plugin": "sandbox"}},
        "plugins": ("sandbox", *PLUGINS),
    }
    service = Service(Settings.model_validate(settings))
    endpoints = [endpoint for endpoint in service.endpoints if not endpoint.public]
    return [place for endpoint in endpoints for place in _places_of(endpoint)]


def _places_of(endpoint: Endpoint) -> Iterator[Place]:
    for name, kind in zip(endpoint.path_parameters, kinds_in(endpoint.path), strict=True):
        if kind not in LABELS:
            yield Place(endpoint, "path", name, kind)
    models = (("query", endpoint.query), ("part", endpoint.parts), ("body", endpoint.body))
    for where, model in models:
        if model is None:
            continue
        schema = model.model_json_schema()
        for name in sorted(set(_fields(schema, schema.get("$defs", {}), ""))):
            last = name.rpartition(".")[2]
            if _NAMES_RESOURCE.fullmatch(last) and name not in NO_RESOURCES:
                yield Place(endpoint, where, name, _kind(last))


def _fields(schema: Any, definitions: Mapping[str, Any], before: str) -> Iterator[str]:
    """The names of all fields, those of a nested object after the names that lead to it."""
    if isinstance(schema, list):
        for part in schema:
            yield from _fields(part, definitions, before)
        return
    if not isinstance(schema, dict):
        return
    if reference := schema.get("$ref"):
        target = reference.rpartition("/")[2]
        # A type that holds itself would have names without end.
        rest = {name: found for name, found in definitions.items() if name != target}
        yield from _fields(definitions.get(target, {}), rest, before)
    for name, field in schema.get("properties", {}).items():
        yield before + name
        yield from _fields(field, definitions, f"{before}{name}.")
    for word in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
        yield from _fields(schema.get(word), definitions, before)


def _kind(name: str) -> str:
    """`subscriber_ids` names a `subscriber_id`, and `tags_any` names a `tag`."""
    for ending in ("_any", "_all", "_none", "s"):
        name = name.removesuffix(ending)
    return name
