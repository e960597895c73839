"""The examples of the OpenAPI document are taken by what they are examples of."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import ValidationError

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.service import Service

FORMATS = FormatChecker(["date", "ipv4", "ipv6"])


@FORMATS.checks("date-time", raises=InvalidValue)
def is_time(value: Any) -> bool:
    return not isinstance(value, str) or bool(from_rfc3339(value))


@pytest.fixture(scope="module")
def service() -> Service:
    return Service(of_everything())


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    return service.openapi(service.endpoints)


def problems(document: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    """Why the schema does not allow the value."""
    whole = {
        "components": document["components"],
        "$schema": Draft202012Validator.META_SCHEMA["$id"],
    }
    validator = Draft202012Validator({**whole, **schema}, format_checker=FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def operation_of(document: dict[str, Any], endpoint: Any) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][endpoint.path][endpoint.method.lower()]
    return found


def test_bodies_are_taken(service: Service, document: dict[str, Any]) -> None:
    wrong = []
    for endpoint in service.endpoints:
        if endpoint.body is None:
            continue
        content = operation_of(document, endpoint)["requestBody"]["content"]["application/json"]
        schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        for example in [content["example"], *schema.get("examples", ())]:
            try:
                endpoint.body.model_validate(example)
            except ValidationError as error:
                wrong.append(f"{endpoint.name}: {example}: {error}")
            wrong += [
                f"{endpoint.name}: {example}: {problem}"
                for problem in problems(document, content["schema"], example)
            ]

    assert wrong == []


def test_query_parameters_are_taken(service: Service, document: dict[str, Any]) -> None:
    wrong = []
    for endpoint in service.endpoints:
        for parameter in operation_of(document, endpoint)["parameters"]:
            if parameter["in"] != "query":
                continue
            assert endpoint.query is not None
            name, example = parameter["name"], parameter["example"]
            text = str(example).lower() if isinstance(example, bool) else str(example)
            try:
                endpoint.query.model_validate({name: text})
            except ValidationError as error:
                wrong += [
                    f"{endpoint.name}: {name}: {problem['msg']}"
                    for problem in error.errors()
                    if problem["loc"][:1] == (name,)
                ]

    assert wrong == []


def test_responses_are_as_described(service: Service, document: dict[str, Any]) -> None:
    wrong = []
    for endpoint in service.endpoints:
        for status, response in operation_of(document, endpoint)["responses"].items():
            content = response.get("content", {}).get("application/json")
            if content is None:
                continue
            shown = content.get("examples") or {"": {"value": content["example"]}}
            for example in shown.values():
                if "$ref" in example:
                    name = example["$ref"].rpartition("/")[2]
                    example = document["components"]["examples"][name]  # noqa: PLW2901 - the same
                wrong += [
                    f"{endpoint.name} {status}: {problem}"
                    for problem in problems(document, content["schema"], example["value"])
                ]

    assert wrong == []


def test_events_are_as_described(document: dict[str, Any]) -> None:
    wrong = []
    for name, methods in document["webhooks"].items():
        content = methods["post"]["requestBody"]["content"]["application/json"]
        wrong += [
            f"{name}: {problem}"
            for problem in problems(document, content["schema"], content["example"])
        ]

    assert wrong == []


def fields(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema that has examples."""
    if isinstance(schema, dict):
        if isinstance(schema.get("examples"), list):
            yield schema
        for name, inner in schema.items():
            if name != "examples":
                yield from fields(inner)
    elif isinstance(schema, list):
        for each in schema:
            yield from fields(each)


def test_models_and_fields_allow_their_examples(document: dict[str, Any]) -> None:
    wrong = [
        f"{name}: {example!r}: {problem}"
        for name, model in document["components"]["schemas"].items()
        for field in fields(model)
        for example in field["examples"]
        for problem in problems(document, field, example)
    ]

    assert wrong == []
