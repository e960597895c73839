"""The conventions of decision 0170 hold for each operation, field and status of the published API.

The only exceptions are names that the contract gives (decision 0075); each list of them says which.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.service import Service

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"

#: Contract: "status `active` or `disabled`, changed by PUT".
CHANGED_BY_PUT = {"/v1/webhooks/{webhook_id}"}

#: Contract: OAuth's names, the lifetime of one-time codes, and periods of campaigns and recurring messages.
DURATIONS = {"expires_in", "interval", "ttl_minutes", "minutes", "hours", "days"}

#: Contract: what a site says of itself when somebody signs in, and gets back.
STATES = {"CreateSessionBody", "SessionStatus", "VerifiedSignIn", "AuthCompletedEventData"}

#: Contract: "`username` (a string)"; and a site that passes no `state` gets back an empty one.
EMPTY = {"username", "first_name", "state"}

#: Contract: OpenID Connect's name.
TIMES = {"auth_time"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return published()


@cache
def published() -> dict[str, Any]:
    service = Service(of_everything())
    return service.openapi([each for each in service.endpoints if each.path.startswith("/v1/")])


def operations(method: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Method with path, and operation."""
    for path, item in published()["paths"].items():
        for of, operation in item.items():
            if method in {None, of}:
                yield f"{of.upper()} {path}", operation


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Model, name and schema of each field."""
    for model, schema in published()["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield model, name, field


def kinds(field: dict[str, Any]) -> list[dict[str, Any]]:
    """What a field may be, other than null."""
    found = field.get("anyOf", [field])
    return [kind for kind in found if kind.get("type") != "null"]


def success(operation: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    ((status, response),) = (
        (int(status), each) for status, each in operation["responses"].items() if status < "300"
    )
    return status, response


def schema_of(content: dict[str, Any]) -> dict[str, Any]:
    name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema: dict[str, Any] = published()["components"]["schemas"][name]
    return schema


def test_resources_are_changed_by_patch_and_put_adds_to_a_set() -> None:
    paths = published()["paths"]
    created = {path for path, item in paths.items() if "post" in item}
    changed = {
        path for path, item in paths.items() if "put" in item and path.rpartition("/")[0] in created
    }

    assert changed == CHANGED_BY_PUT


def test_changes_that_keep_omitted_fields_are_made_by_patch() -> None:
    wrong = []
    for name, operation in operations("put"):
        content = operation.get("requestBody", {}).get("content", {})
        merges = content and "omitted" in schema_of(content).get("description", "")
        if merges and name.removeprefix("PUT ") not in CHANGED_BY_PUT:
            wrong.append(name)

    assert wrong == []


def test_put_repeats_without_effect_on_one_element() -> None:
    others = [name for name, _ in operations("put") if not name.endswith("}")]

    assert others == []


def test_statuses_of_success() -> None:
    allowed = {"get": {200}, "post": {200, 201, 202}, "put": {200}, "patch": {200, 202}}
    wrong = [
        f"{name}: {status}"
        for method, statuses in allowed.items()
        for name, operation in operations(method)
        if (status := success(operation)[0]) not in statuses
    ]

    assert wrong == []


def test_delete_answers_without_a_body_or_is_accepted() -> None:
    wrong = [
        name
        for name, operation in operations("delete")
        if (answer := success(operation))[0] != 202 and (answer[0] != 204 or "content" in answer[1])
    ]

    assert wrong == []


def test_path_keys_are_ids_or_keys() -> None:
    found = {key for name, _ in operations() for key in re.findall(r"{(\w+)}", name)}

    assert {key for key in found if key != "key" and not key.endswith("_id")} == set()


def test_lists_have_one_envelope_and_one_set_of_filters() -> None:
    wrong = []
    for name, operation in operations("get"):
        content = success(operation)[1].get("content", {})
        if (
            "application/json" not in content
            or "data" not in (schema := schema_of(content))["properties"]
        ):
            continue
        parameters = {each["name"] for each in operation["parameters"]}
        lacking = {"limit", "cursor", "created_after", "created_before"} - parameters
        if lacking or set(schema["properties"]) != {"data", "next_cursor"}:
            wrong.append(f"{name}: {sorted(lacking)} {sorted(schema['properties'])}")

    assert wrong == []


def test_collections_are_lists() -> None:
    """A path whose next part is a key or an id is a collection, and reading it gives a list."""
    paths = published()["paths"]
    collections = {path.rpartition("/{")[0] for path in paths if path.endswith("}")}
    wrong = [
        path
        for path in collections
        if "get" in paths.get(path, {})
        and "data" not in schema_of(success(paths[path]["get"])[1]["content"])["properties"]
    ]

    assert wrong == []


def test_times_are_named_as_times() -> None:
    named = re.compile(r"(_at|_since|_until)$|^(since|until|created_(after|before))$")
    wrong = [
        f"{model}.{name}"
        for model, name, field in fields()
        if name not in TIMES
        and any(kind.get("format") == "date-time" for kind in kinds(field))
        and not named.search(name)
    ]

    assert wrong == []


def test_what_is_named_as_a_time_is_one() -> None:
    wrong = [
        f"{model}.{name}"
        for model, name, field in fields()
        if re.search(r"(_at|_since|_until)$", name)
        and not any(kind.get("format") == "date-time" for kind in kinds(field))
        # A schedule's times may also be local ones.
        and "local" not in field["description"]
    ]

    assert wrong == []


def test_durations_are_seconds() -> None:
    unit = re.compile(
        r"(^|_)(s|ms|sec|secs|minutes|hours|days)$|^(expires_in|interval|lifetime\w*)$"
    )
    found = {name for _, name, field in fields() if unit.search(name) and _is_number(field)}

    assert found - DURATIONS == set()


def _is_number(field: dict[str, Any]) -> bool:
    return any(kind.get("type") in {"integer", "number"} for kind in kinds(field))


def test_absent_values_are_null() -> None:
    empty = [f"{model}.{name}" for model, name in _empty_texts() if name not in EMPTY]

    assert empty == []


def _empty_texts() -> Iterator[tuple[str, str]]:
    for model, name, field in fields():
        texts = [field.get("default"), *field.get("examples", ())]
        if "" in [text for text in texts if isinstance(text, str)]:
            yield model, name


def test_an_error_has_a_code() -> None:
    """Of a message, `reason` is the code (contract)."""
    schemas = published()["components"]["schemas"]
    wrong = {
        model
        for model, name, _ in fields()
        if name == "error" and not {"code", "reason"} & schemas[model]["properties"].keys()
    }

    assert wrong == set()


def test_only_what_a_site_gets_back_is_a_state() -> None:
    assert {model for model, name, _ in fields() if name == "state"} - STATES == set()


def test_statuses_are_words_of_the_table() -> None:
    text = next(DECISIONS.glob("0170-*.md")).read_text("utf-8")
    words = set(
        re.findall(r"`(\w+)`", text.partition("**Statuses**")[2].partition("## Consequences")[0])
    )
    wrong = [
        f"{model}.{name}: {word}"
        for model, name, field in fields()
        if name == "status"
        for kind in kinds(field)
        for word in kind.get("enum", [kind["const"]] if "const" in kind else [])
        if word not in words
    ]

    assert wrong == []


def test_references_to_a_route_are_ids() -> None:
    assert {f"{model}.{name}" for model, name, _ in fields() if name in {"route", "match"}} == set()


def test_replaced_secrets_say_until_when_the_previous_one_works() -> None:
    old = re.compile(r"^(old|previous)_")

    assert {name for _, name, _ in fields() if old.search(name)} == {"previous_valid_until"}


def test_languages_are_no_enumeration() -> None:
    wrong = [
        f"{model}.{name}"
        for model, name, field in fields()
        if name in {"lang", "langs", "languages", "default_lang"}
        for kind in [*kinds(field), *(kind.get("items", {}) for kind in kinds(field))]
        if "enum" in kind
    ]

    assert wrong == []


def test_schemas_are_named_after_resources() -> None:
    bodies = {
        content["schema"]["$ref"].rpartition("/")[2]
        for _, operation in operations()
        for content in operation.get("requestBody", {}).get("content", {}).values()
        if "$ref" in content["schema"]
    }
    schemas = set(published()["components"]["schemas"])

    assert {name for name in bodies if not name.endswith("Body")} == set()
    assert {name for name in schemas if name.endswith("Answer")} - {"CannedAnswer"} == set()
    assert {name for name in schemas if "__" in name} == set()
