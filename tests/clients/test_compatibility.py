"""A change of the API that would break installed clients fails here, and says which clients and why."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contrib.clients.codegen import compatibility
from contrib.clients.codegen.compatibility import Kind, breaks, may_break, report, without_texts

Document = dict[str, Any]
Change = Callable[[Document], None]

#: Where the parts of the small document are.
OPERATION = "paths|/v1/send|post"
BODY = "components|schemas|SendBody"
ANSWER = "components|schemas|MessageAnswer"
LIST = "paths|/v1/messages|get"
EVENT = "components|schemas|AuthCompleted"


def small_document() -> Document:
    """Two operations and an event, with something of each kind."""
    answer = {"content": {"application/json": {"schema": _ref("MessageAnswer")}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "small", "version": "0.1.0"},
        "security": [{"bearer": []}, {"header": []}],
        "paths": {
            "/v1/send": {
                "post": {
                    "operationId": "send",
                    "parameters": [
                        {"in": "header", "name": "Idempotency-Key", "schema": {"type": "string"}}
                    ],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": _ref("SendBody")}},
                    },
                    "responses": {
                        "202": {**answer, "headers": {"X-RateLimit-Limit": {}}},
                        "400": {"x-error-codes": ["validation_failed"]},
                        "429": {"x-error-codes": ["rate_limit_project"]},
                    },
                }
            },
            "/v1/messages": {
                "get": {
                    "operationId": "list_messages",
                    "parameters": [
                        {"in": "query", "name": "cursor", "schema": {"type": "string"}},
                        {
                            "in": "query",
                            "name": "limit",
                            "schema": {"type": "integer", "maximum": 100, "default": 50},
                        },
                    ],
                    "responses": {
                        "200": {"content": {"application/json": {"schema": _ref("MessageList")}}}
                    },
                }
            },
            "/v1/messages/{message_id}": {
                "get": {
                    "operationId": "get_message",
                    "parameters": [
                        {
                            "in": "path",
                            "name": "message_id",
                            "required": True,
                            "schema": {"type": "string"},
                        }
                    ],
                    "responses": {"200": answer},
                }
            },
        },
        "webhooks": {
            "auth.completed": {
                "post": {
                    "parameters": [{"in": "header", "name": "webhook-id"}],
                    "requestBody": {
                        "content": {"application/json": {"schema": _ref("AuthCompleted")}}
                    },
                }
            }
        },
        "components": {
            "schemas": {
                "SendBody": _object(
                    {
                        "subscriber_id": {"type": "string"},
                        "text": _nullable({"type": "string", "maxLength": 64}),
                        "format": {"type": "string", "enum": ["plain", "html"], "default": "plain"},
                        "expires_in": {"type": "integer", "minimum": 1, "maximum": 3600},
                        "media": _nullable(_ref("MediaBody")),
                        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
                        "to": {"oneOf": [_ref("ToTag"), _ref("ToTicket")]},
                    },
                    required=["subscriber_id"],
                ),
                "MediaBody": _object(
                    {"url": {"type": "string", "format": "uri"}, "type": {"type": "string"}},
                    required=["url"],
                ),
                "ToTag": _object({"kind": {"const": "tag"}, "tag": {"type": "string"}}),
                "ToTicket": _object({"kind": {"const": "ticket"}, "priority": {"type": "string"}}),
                "MessageAnswer": _object(
                    {
                        "message_id": {"type": "string"},
                        "status": {"type": "string", "enum": ["queued", "sent"]},
                        "reason": _nullable({"type": "string"}),
                        "attempts": {"type": "integer"},
                        "sent_at": {"type": "string", "format": "date-time"},
                        "route": {"oneOf": [_ref("ToTag"), _ref("ToTicket")]},
                        "answers": {"type": "array", "items": _ref("MessageAnswer")},
                    },
                    required=["message_id", "status", "attempts", "sent_at"],
                ),
                "MessageList": _object(
                    {
                        "data": {"type": "array", "items": _ref("MessageAnswer")},
                        "next_cursor": _nullable({"type": "string"}),
                    },
                    required=["data", "next_cursor"],
                ),
                "AuthCompleted": _object(
                    {"data": _object({"state": {"type": "string"}}, required=["state"])},
                    required=["data"],
                ),
            }
        },
    }


def _ref(model: str) -> Document:
    return {"$ref": f"#/components/schemas/{model}"}


def _nullable(schema: Document) -> Document:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Document, required: list[str] | None = None) -> Document:
    return {
        "type": "object",
        "properties": properties,
        "required": required or [],
        "additionalProperties": False,
    }


def at(document: Document, path: str) -> Any:
    node: Any = document
    for part in path.split("|"):
        node = node[int(part)] if isinstance(node, list) else node[part]
    return node


def put(path: str, value: object) -> Change:
    """Sets what stands at a path."""
    folder, _, name = path.rpartition("|")

    def change(document: Document) -> None:
        node = at(document, folder)
        node[int(name) if isinstance(node, list) else name] = value

    return change


def drop(path: str) -> Change:
    """Removes what stands at a path."""
    folder, _, name = path.rpartition("|")

    def change(document: Document) -> None:
        node = at(document, folder)
        del node[int(name) if isinstance(node, list) else name]

    return change


def add(path: str, value: object) -> Change:
    """Appends to the list at a path."""
    return lambda document: at(document, path).append(value)


def move(path: str, to: str) -> Change:
    def change(document: Document) -> None:
        put(to, at(document, path))(document)
        drop(path)(document)

    return change


def changed(*changes: Change) -> Document:
    document = small_document()
    for change in changes:
        change(document)
    return document


OPTIONAL_STRING = {"in": "query", "name": "filter", "schema": {"type": "string"}}
REQUIRED_STRING = {**OPTIONAL_STRING, "required": True}

BREAKING: dict[str, tuple[Change, Kind, str]] = {
    "an operation is gone": (drop("paths|/v1/send"), Kind.REMOVED_OPERATION, "POST /v1/send"),
    "an operation has another id": (
        put(f"{OPERATION}|operationId", "send_message"),
        Kind.RENAMED_OPERATION,
        "POST /v1/send",
    ),
    "an operation has another path": (
        move("paths|/v1/send", "paths|/v1/messages/new"),
        Kind.MOVED_OPERATION,
        "POST /v1/send",
    ),
    "an operation has another method": (
        move(OPERATION, "paths|/v1/send|put"),
        Kind.MOVED_OPERATION,
        "POST /v1/send",
    ),
    "a scheme of authentication is gone": (
        put(f"{OPERATION}|security", [{"header": []}]),
        Kind.AUTHENTICATION,
        "POST /v1/send",
    ),
    "a parameter is gone": (
        drop(f"{LIST}|parameters|1"),
        Kind.REMOVED_FIELD,
        "query parameter `limit`",
    ),
    "a parameter is required": (
        put(f"{LIST}|parameters|1|required", True),
        Kind.NEW_REQUIRED,
        "query parameter `limit`",
    ),
    "a parameter is new and required": (
        add(f"{LIST}|parameters", REQUIRED_STRING),
        Kind.NEW_REQUIRED,
        "query parameter `filter`",
    ),
    "a parameter has another range": (
        put(f"{LIST}|parameters|1|schema|maximum", 50),
        Kind.NARROWED,
        "query parameter `limit`",
    ),
    "a parameter has another default": (
        put(f"{LIST}|parameters|1|schema|default", 20),
        Kind.DEFAULT,
        "query parameter `limit`",
    ),
    "a path parameter has another name": (
        put("paths|/v1/messages/{message_id}|get|parameters|0|name", "id"),
        Kind.REMOVED_FIELD,
        "path parameter `message_id`",
    ),
    "the idempotency key is gone": (
        drop(f"{OPERATION}|parameters|0"),
        Kind.REMOVED_FIELD,
        "header parameter `Idempotency-Key`",
    ),
    "the body is gone": (drop(f"{OPERATION}|requestBody"), Kind.REMOVED_FIELD, "POST /v1/send"),
    "a body is needed": (
        put(f"{LIST}|requestBody", {"required": True, "content": {}}),
        Kind.NEW_REQUIRED,
        "GET /v1/messages",
    ),
    "the body is of another media type": (
        move(
            f"{OPERATION}|requestBody|content|application/json",
            f"{OPERATION}|requestBody|content|text/csv",
        ),
        Kind.MEDIA_TYPE,
        "POST /v1/send",
    ),
    "a field of the body is gone": (
        drop(f"{BODY}|properties|expires_in"),
        Kind.REMOVED_FIELD,
        "field `SendBody.expires_in`",
    ),
    "a field of a part of the body is gone": (
        drop("components|schemas|MediaBody|properties|type"),
        Kind.REMOVED_FIELD,
        "field `MediaBody.type`",
    ),
    "a field of the body is required": (
        add(f"{BODY}|required", "text"),
        Kind.NEW_REQUIRED,
        "field `SendBody.text`",
    ),
    "a field of the body is new and required": (
        lambda document: (
            put(f"{BODY}|properties|lang", {"type": "string"})(document),
            add(f"{BODY}|required", "lang")(document),
        )[0],
        Kind.NEW_REQUIRED,
        "field `SendBody.lang`",
    ),
    "null is not taken": (
        drop(f"{BODY}|properties|text|anyOf|1"),
        Kind.NULLABLE,
        "field `SendBody.text`",
    ),
    "a field of the body has another type": (
        put(f"{BODY}|properties|subscriber_id", {"type": "integer"}),
        Kind.RETYPED,
        "field `SendBody.subscriber_id`",
    ),
    "a value of an enum is not taken": (
        put(f"{BODY}|properties|format|enum", ["plain"]),
        Kind.ENUM,
        "field `SendBody.format`",
    ),
    "a field of the body becomes an enum": (
        put(f"{BODY}|properties|subscriber_id|enum", ["sub_1"]),
        Kind.RETYPED,
        "field `SendBody.subscriber_id`",
    ),
    "a default of the body changes": (
        put(f"{BODY}|properties|format|default", "html"),
        Kind.DEFAULT,
        "field `SendBody.format`",
    ),
    "a text may be less long": (
        put(f"{BODY}|properties|text|anyOf|0|maxLength", 10),
        Kind.NARROWED,
        "field `SendBody.text`",
    ),
    "a number has to be higher": (
        put(f"{BODY}|properties|expires_in|minimum", 60),
        Kind.NARROWED,
        "field `SendBody.expires_in`",
    ),
    "a list may be less long": (
        put(f"{BODY}|properties|tags|maxItems", 2),
        Kind.NARROWED,
        "field `SendBody.tags`",
    ),
    "the items of a list have a pattern": (
        put(f"{BODY}|properties|tags|items|pattern", "^[a-z]+$"),
        Kind.NARROWED,
        "field `SendBody.tags[]`",
    ),
    "the values of a map have another type": (
        put(f"{BODY}|properties|metadata|additionalProperties", {"type": "integer"}),
        Kind.RETYPED,
        "field `SendBody.metadata.*`",
    ),
    "the names of a map have a pattern": (
        put(f"{BODY}|properties|metadata|propertyNames", {"pattern": "^[a-z]+$"}),
        Kind.NARROWED,
        "field `SendBody.metadata.(names)`",
    ),
    "a text has another format": (
        put("components|schemas|MediaBody|properties|type|format", "uuid"),
        Kind.NARROWED,
        "field `MediaBody.type`",
    ),
    "an alternative of the body is gone": (
        drop(f"{BODY}|properties|to|oneOf|0"),
        Kind.ENUM,
        "field `SendBody.to`",
    ),
    "a field of an alternative is gone": (
        drop("components|schemas|ToTicket|properties|priority"),
        Kind.REMOVED_FIELD,
        "field `ToTicket.priority`",
    ),
    "the status is another one": (
        move(f"{OPERATION}|responses|202", f"{OPERATION}|responses|201"),
        Kind.STATUS,
        "POST /v1/send",
    ),
    "an error has another status": (
        lambda document: (
            drop(f"{OPERATION}|responses|429")(document),
            put(f"{OPERATION}|responses|403", {"x-error-codes": ["rate_limit_project"]})(document),
        )[0],
        Kind.ERROR_STATUS,
        "error `rate_limit_project`",
    ),
    "a header of the answer is gone": (
        drop(f"{OPERATION}|responses|202|headers|X-RateLimit-Limit"),
        Kind.HEADER,
        "answer header `X-RateLimit-Limit`",
    ),
    "the answer is of another media type": (
        put(f"{OPERATION}|responses|202|content", {"text/csv": {}}),
        Kind.MEDIA_TYPE,
        "POST /v1/send",
    ),
    "a field of the answer is gone": (
        drop(f"{ANSWER}|properties|attempts"),
        Kind.REMOVED_FIELD,
        "field `MessageAnswer.attempts`",
    ),
    "a field of the answer may be absent": (
        put(f"{ANSWER}|required", ["message_id", "status", "sent_at"]),
        Kind.OPTIONAL,
        "field `MessageAnswer.attempts`",
    ),
    "a field of the answer may be null": (
        put(f"{ANSWER}|properties|attempts", _nullable({"type": "integer"})),
        Kind.NULLABLE,
        "field `MessageAnswer.attempts`",
    ),
    "a field of the answer has another type": (
        put(f"{ANSWER}|properties|attempts|type", "number"),
        Kind.RETYPED,
        "field `MessageAnswer.attempts`",
    ),
    "a field of the answer has another format": (
        drop(f"{ANSWER}|properties|sent_at|format"),
        Kind.RETYPED,
        "field `MessageAnswer.sent_at`",
    ),
    "an enum of the answer has another value": (
        add(f"{ANSWER}|properties|status|enum", "unknown"),
        Kind.ENUM,
        "field `MessageAnswer.status`",
    ),
    "an answer has another alternative": (
        add(f"{ANSWER}|properties|route|oneOf", _ref("MediaBody")),
        Kind.ENUM,
        "field `MessageAnswer.route`",
    ),
    "an enum of the answer is any text": (
        drop(f"{ANSWER}|properties|status|enum"),
        Kind.RETYPED,
        "field `MessageAnswer.status`",
    ),
    "a list has no pages any more": (
        drop("components|schemas|MessageList|properties|next_cursor"),
        Kind.PAGINATION,
        "GET /v1/messages",
    ),
    "an event is gone": (
        drop("webhooks|auth.completed"),
        Kind.REMOVED_EVENT,
        "event `auth.completed`",
    ),
    "a header of webhooks is gone": (
        drop("webhooks|auth.completed|post|parameters|0"),
        Kind.HEADER,
        "webhook header `webhook-id`",
    ),
    "a field of an event is gone": (
        drop(f"{EVENT}|properties|data|properties|state"),
        Kind.REMOVED_FIELD,
        "field `AuthCompleted.data.state`",
    ),
    "a field of an event has another type": (
        put(f"{EVENT}|properties|data|properties|state", {"type": "integer"}),
        Kind.RETYPED,
        "field `AuthCompleted.data.state`",
    ),
}

NEW_OPERATION = {"get": {"operationId": "new", "responses": {"200": {}}}}

ADDITIONS: dict[str, Change] = {
    "nothing": lambda document: None,
    "an operation": put("paths|/v1/new", NEW_OPERATION),
    "an event": put("webhooks|auth.denied", {"post": {}}),
    "an optional parameter": add(f"{LIST}|parameters", OPTIONAL_STRING),
    "an optional field of a body": put(f"{BODY}|properties|lang", {"type": "string"}),
    "a field of an answer": put(f"{ANSWER}|properties|lang", {"type": "string"}),
    "a field of an event": put(f"{EVENT}|properties|lang", {"type": "string"}),
    "a value that a body takes": add(f"{BODY}|properties|format|enum", "markdown"),
    "null where a body takes it": put(
        f"{BODY}|properties|tags", _nullable({"type": "array", "items": {"type": "string"}})
    ),
    "a wider range": put(f"{BODY}|properties|expires_in|maximum", 7200),
    "a range less": drop(f"{BODY}|properties|expires_in|maximum"),
    "a range of an answer": put(f"{ANSWER}|properties|attempts|minimum", 1),
    "a wider type of a body": put(f"{BODY}|properties|expires_in|type", "number"),
    "an integer where any number was answered": put(
        f"{ANSWER}|properties|sent_at", {"type": "string", "format": "date-time", "maxLength": 24}
    ),
    "another alternative of a body": add(f"{BODY}|properties|to|oneOf", _ref("MediaBody")),
    "what is always answered": add(f"{ANSWER}|required", "reason"),
    "what is never null": put(f"{ANSWER}|properties|reason", {"type": "string"}),
    "an alternative of an answer less": drop(f"{ANSWER}|properties|route|oneOf|0"),
    "fewer values of an answer": put(f"{ANSWER}|properties|status|enum", ["sent"]),
    "what may be left out": put(f"{BODY}|required", []),
    "an error code": add(f"{OPERATION}|responses|400|x-error-codes", "invalid_url"),
    "an error code less": drop(f"{OPERATION}|responses|429"),
    "an error with a status of its own": put(
        f"{OPERATION}|responses|402", {"x-error-codes": ["billing_blocked"]}
    ),
    "a header of an answer": put(f"{OPERATION}|responses|202|headers|X-New", {}),
    "another scheme of authentication": add("security", {"basic": []}),
    "a name of a model": lambda document: (
        put("components|schemas|Media", at(document, "components|schemas|MediaBody"))(document),
        put(f"{BODY}|properties|media|anyOf|0", _ref("Media"))(document),
    )[0],
    "a text": put(f"{OPERATION}|description", "Sends."),
}


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks_clients_is_found(name: str) -> None:
    change, kind, place = BREAKING[name]

    found = breaks(small_document(), changed(change))

    assert (kind, place) in {(one.kind, one.place) for one in found}


def test_each_kind_of_break_is_shown() -> None:
    assert {kind for _, kind, _ in BREAKING.values()} == set(Kind)


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_break_nobody(name: str) -> None:
    assert breaks(small_document(), changed(ADDITIONS[name])) == []


def test_a_list_that_was_whole_may_not_get_pages() -> None:
    whole = changed(
        drop(f"{LIST}|parameters|0"),
        drop("components|schemas|MessageList|properties|next_cursor"),
        put("components|schemas|MessageList|required", ["data"]),
    )

    (found,) = breaks(whole, small_document())

    assert found.kind is Kind.PAGINATION
    assert "take the first page for the whole list" in found.why


def test_an_open_operation_may_not_be_closed() -> None:
    (found,) = breaks(changed(put(f"{OPERATION}|security", [])), small_document())

    assert found.kind is Kind.AUTHENTICATION


def test_a_break_of_a_shared_model_is_told_once_with_all_that_it_concerns() -> None:
    (found,) = breaks(small_document(), changed(drop(f"{ANSWER}|properties|reason")))

    assert found.concerns == ("send", "list_messages", "get_message")


def test_the_report_says_which_clients_why_and_what_to_do() -> None:
    found = breaks(small_document(), changed(drop(f"{BODY}|properties|expires_in")))

    assert report(found, "0.1.0") == (
        "This would break clients of 0.1.0, which people have installed:\n"
        "\n"
        "field `SendBody.expires_in`: it is no longer taken, and clients of 0.1.0 may send it\n"
        "    client.messages.send (Python), client.messages.send (TypeScript)\n"
        "\n"
        "Keep what they use, and add beside it: an optional field, another operation, another event.\n"
        'If it has to break, CONTRIBUTING.md says how: "A change that breaks clients".'
    )


def test_no_break_makes_no_report() -> None:
    assert report([], "0.1.0") == ""


def test_fields_that_are_called_like_texts_of_the_document_are_kept() -> None:
    document = changed(
        put(f"{BODY}|properties|description", {"type": "string", "description": "A text."}),
        put(f"{BODY}|description", "A message."),
    )

    kept = without_texts(document)

    assert kept["components"]["schemas"]["SendBody"]["properties"]["description"] == {
        "type": "string"
    }
    assert "description" not in kept["components"]["schemas"]["SendBody"]
    assert breaks(kept, document) == breaks(document, kept) == []


@pytest.mark.parametrize(
    ("released", "current", "allowed"),
    [
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.1.1", False),
        ("0.1.0", "0.2.0", True),
        ("0.1.0", "1.0.0", True),
        ("1.2.3", "1.9.0", False),
        ("1.2.3", "2.0.0", True),
        ("0.0.1", "0.0.2", True),
        ("1.2.3", "0.9.0", False),
    ],
)
def test_only_a_version_that_says_so_breaks_clients(
    released: str, current: str, allowed: bool
) -> None:
    assert may_break(released, current) is allowed


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the small document, of which nothing has been released."""
    (tmp_path / "openapi.json").write_text(json.dumps(small_document()), "utf-8")
    monkeypatch.setattr(compatibility, "DOCUMENT", tmp_path / "openapi.json")
    monkeypatch.setattr(compatibility, "RELEASED", tmp_path / "released.json")
    return tmp_path


def test_a_release_is_recorded_and_then_holds(written: Path) -> None:
    said: list[str] = []
    assert compatibility.main(["--release"], said.append) == 0
    assert compatibility.main([], said.append) == 0

    (written / "openapi.json").write_text(json.dumps(changed(drop("paths|/v1/send"))), "utf-8")

    assert compatibility.main([], said.append) == 1
    assert "POST /v1/send: it is gone, and clients of 0.1.0 call it" in said[-1]


def test_a_release_that_breaks_needs_a_version_that_says_so(written: Path) -> None:
    said: list[str] = []
    compatibility.main(["--release"], said.append)
    released = (written / "released.json").read_bytes()
    without_send = changed(drop("paths|/v1/send"))
    (written / "openapi.json").write_text(json.dumps(without_send), "utf-8")

    assert compatibility.main(["--release"], said.append) == 1
    assert said[-1] == "\nNot released: 0.1.0 may not break clients of 0.1.0."
    assert (written / "released.json").read_bytes() == released

    without_send["info"]["version"] = "0.2.0"
    (written / "openapi.json").write_text(json.dumps(without_send), "utf-8")

    assert compatibility.main(["--release"], said.append) == 0
    assert compatibility.main([], said.append) == 0


# The real document ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document() -> Document:
    found: Document = json.loads(compatibility.DOCUMENT.read_text("utf-8"))
    return found


#: Models that are one of several types of a field: what they lose is found as another type of that field.
ALTERNATIVES = {"AnsweredFile"}


def test_installed_clients_go_on_working(document: Document) -> None:
    released = json.loads(compatibility.RELEASED.read_text("utf-8"))

    found = breaks(released, document)

    assert found == [], report(found, released["info"]["version"])


def models_by_use(document: Document) -> tuple[set[str], set[str]]:
    """The models of requests, and those of answers and events."""
    schemas = document["components"]["schemas"]

    def reached(node: Any) -> Iterator[str]:
        waiting, known = [node], set[str]()
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                model = str(one.get("$ref", "")).rpartition("/")[2]
                if model in schemas and model not in known:
                    known.add(model)
                    waiting.append(schemas[model])
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one
        return iter(known)

    requests, answers = set[str](), set[str]()
    for methods in document["paths"].values():
        for operation in methods.values():
            requests |= set(reached(operation.get("requestBody")))
            successes = [
                each for status, each in operation["responses"].items() if status[0] == "2"
            ]
            answers |= set(reached(successes)) - ALTERNATIVES
    for methods in document.get("webhooks", {}).values():
        answers |= set(reached(methods["post"]["requestBody"])) - ALTERNATIVES
    return requests, answers


def without_fields(document: Document, gone: set[tuple[str, str]]) -> Document:
    """The document without these fields, each with the name of its model."""
    schemas = {
        model: {
            **schema,
            "properties": {
                name: field
                for name, field in schema.get("properties", {}).items()
                if (model, name) not in gone
            },
        }
        for model, schema in document["components"]["schemas"].items()
    }
    return {**document, "components": {**document["components"], "schemas": schemas}}


def test_every_field_that_goes_is_found(document: Document) -> None:
    requests, answers = models_by_use(document)
    left = set[tuple[str, str]]()
    for model in requests | answers:
        fields = document["components"]["schemas"][model].get("properties", {})
        # What tells alternatives apart is missed as such.
        left |= {(model, name) for name, field in fields.items() if "const" not in field}
    gone = len(left)

    # In rounds, as a field that has gone hides what it holds.
    while left:
        found = breaks(document, without_fields(document, left))
        removed = {one.place for one in found if one.kind is Kind.REMOVED_FIELD}
        missed = {(model, name) for model, name in left if f"field `{model}.{name}`" not in removed}
        assert missed < left, missed
        left = missed

    assert gone > 500


def test_every_answer_that_may_be_null_is_found(document: Document) -> None:
    _, answers = models_by_use(document)
    current = copy.deepcopy(document)
    nulled = set()
    for model in answers:
        properties = current["components"]["schemas"][model].get("properties", {})
        for name, field in properties.items():
            if "$ref" not in field and "type" in field and isinstance(field["type"], str):
                properties[name] = {"anyOf": [field, {"type": "null"}]}
                nulled.add(f"field `{model}.{name}`")

    found = {one.place for one in breaks(document, current) if one.kind is Kind.NULLABLE}

    assert nulled - found == set()
    assert len(nulled) > 300


def test_every_field_that_becomes_required_is_found(document: Document) -> None:
    requests, _ = models_by_use(document)
    current = copy.deepcopy(document)
    required = set()
    for model in requests:
        schema = current["components"]["schemas"][model]
        optional = set(schema.get("properties", {})) - set(schema.get("required", ()))
        schema["required"] = [*schema.get("required", ()), *sorted(optional)]
        required |= {f"field `{model}.{name}`" for name in optional}

    found = {one.place for one in breaks(document, current) if one.kind is Kind.NEW_REQUIRED}

    assert required - found == set()
    assert len(required) > 100


def test_every_operation_and_every_event_that_goes_is_found(document: Document) -> None:
    events = document.get("webhooks", {})
    current = {**document, "paths": {}, "webhooks": {}}

    found = breaks(document, current)

    concerned = {name for one in found for name in one.concerns}
    operations = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert concerned == operations | set(events)
    assert len(operations) > 150


def test_a_field_more_in_every_model_breaks_nobody(document: Document) -> None:
    current = copy.deepcopy(document)
    for schema in current["components"]["schemas"].values():
        if "properties" in schema:
            schema["properties"]["brand_new"] = {"type": "string"}

    assert breaks(document, current) == []
