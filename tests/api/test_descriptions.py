"""Everything of the OpenAPI document says what it means, and shows a value."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.service import Service

#: Fields that no example shows, as they stand in place of those that it shows.
ALTERNATIVES = {"start_messages", "job_id", "merged_into"}

#: Times of bodies that may also be local ones.
LOCAL_TIMES = {"send_at", "starts_at", "ends_at"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """That of the API, as clients are generated from it."""
    service = Service(of_everything())
    return service.openapi([each for each in service.endpoints if each.path.startswith("/v1/")])


def properties(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for model, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield model, name, field


def parameters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in [*document["paths"].values(), *document["webhooks"].values()]:
        for operation in methods.values():
            for parameter in operation["parameters"]:
                yield operation["operationId"], parameter


def shows_itself(document: dict[str, Any], field: dict[str, Any]) -> bool:
    """Whether a reader sees a value of the field: in an example, or in the schema itself."""
    if field.get("examples") or {"const", "enum"} & field.keys() or field.get("type") == "boolean":
        return True
    if "$ref" in field:
        model = document["components"]["schemas"][field["$ref"].rpartition("/")[2]]
        return model.get("type") == "object" or shows_itself(document, model)
    parts = [*field.get("anyOf", ()), *field.get("oneOf", ()), field.get("items", {})]
    return any(part and shows_itself(document, part) for part in parts)


def test_every_field_says_what_it_means(document: dict[str, Any]) -> None:
    silent = [
        f"{model}.{name}"
        for model, name, field in properties(document)
        if not field.get("description", "").strip()
    ]

    assert silent == []


def test_every_field_shows_a_value(document: dict[str, Any]) -> None:
    blank = [
        f"{model}.{name}"
        for model, name, field in properties(document)
        if name not in ALTERNATIVES and not shows_itself(document, field)
    ]

    assert blank == []


def test_every_parameter_and_header_says_what_it_means_and_shows_a_value(
    document: dict[str, Any],
) -> None:
    described = [
        *(
            (f"{operation}: {parameter['name']}", parameter)
            for operation, parameter in parameters(document)
        ),
        *document["components"]["headers"].items(),
    ]

    assert [where for where, what in described if not what.get("description")] == []
    assert [where for where, what in described if "example" not in what] == []


def test_every_time_has_the_format_of_one(document: dict[str, Any]) -> None:
    times = [
        (model, name, field) for model, name, field in properties(document) if name.endswith("_at")
    ]
    untyped = [
        f"{model}.{name}"
        for model, name, field in times
        if "date-time" not in json.dumps(field)
        and not (model.endswith("Body") and name in LOCAL_TIMES)
    ]

    assert len(times) > 50
    assert untyped == []


def test_models_have_short_names(document: dict[str, Any]) -> None:
    """Two of one name would be called by their modules, or by the use that is made of them."""
    names = document["components"]["schemas"]

    assert [name for name in names if "_" in name or "-" in name or name.startswith("Msgsvc")] == []


def test_every_body_has_an_example(document: dict[str, Any]) -> None:
    """Files too, and the parts of an upload."""
    bodies = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for where, holder in [
                ("request", operation.get("requestBody", {})),
                *operation["responses"].items(),
            ]:
                for kind, content in holder.get("content", {}).items():
                    bodies[f"{method} {path} {where} {kind}"] = content

    assert "get /v1/subscribers/export 200 text/csv" in bodies
    assert [name for name, one in bodies.items() if not {"example", "examples"} & one.keys()] == []
