"""The description and the validation come from one type: what one says of a body, the other takes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.config.settings import Settings
from msgsvc_core.http.openapi import openapi
from msgsvc_core.mailings import MailingMessage
from msgsvc_core.messages import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from tests.api.resources import PLUGINS


@pytest.fixture(scope="module")
def described() -> Service:
    settings = {"secret_keys": (SECRET_KEY,), "plugins": ("sandbox", "billing", *PLUGINS)}
    return Service(Settings.model_validate(settings))


@pytest.fixture(scope="module")
def document(described: Service) -> dict[str, Any]:
    return openapi(described.endpoints, "http://msgsvc.test")


def bodies(described: Service) -> Iterator[tuple[type[BaseModel], dict[str, Any]]]:
    """Every model of a body, those inside others too, with its schema."""
    waiting = [endpoint.body for endpoint in described.endpoints if endpoint.body]
    seen: set[type[BaseModel]] = set()
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        yield model, model.model_json_schema()
        for field in model.model_fields.values():
            waiting += models_in(field.annotation)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [each for part in getattr(annotation, "__args__", ()) for each in models_in(part)]


def refusal_of(model: type[BaseModel], field: str, value: Any) -> str | None:
    """Why that field can't have the value, whatever else stands in the body; None if it can."""
    try:
        model.model_validate({field: value})
    except ValidationError as error:
        for problem in error.errors():
            # What fields are to each other is said by the whole body, of one of them.
            of_the_whole = problem["type"] == "wrong_field" and problem["loc"] == (field,)
            if problem["loc"][:1] == (field,) and not of_the_whole:
                return problem["msg"]
    return None


def kinds(schema: dict[str, Any], root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The alternatives of a field's schema."""
    if "$ref" in schema:
        yield from kinds(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from kinds(each, root)
    else:
        yield schema


def test_null_is_taken_exactly_where_it_is_described(described: Service) -> None:
    wrong = []
    for model, root in bodies(described):
        for name, schema in root["properties"].items():
            told = any(each.get("type") == "null" or not each for each in kinds(schema, root))
            if told is not (refusal_of(model, name, None) is None):
                wrong.append(f"{model.__name__}.{name}: described {told}")

    assert wrong == []


def test_every_default_that_is_described_is_taken(described: Service) -> None:
    wrong = [
        f"{model.__name__}.{name}: {why}"
        for model, root in bodies(described)
        for name, schema in root["properties"].items()
        if schema.get("default") is not None
        and (why := refusal_of(model, name, schema["default"])) is not None
    ]

    assert wrong == []


def test_every_example_of_a_field_is_taken(described: Service) -> None:
    wrong = [
        f"{model.__name__}.{name}: {example!r}: {why}"
        for model, root in bodies(described)
        for name, schema in root["properties"].items()
        for example in examples_in(schema, root)
        if (why := refusal_of(model, name, example)) is not None
    ]

    assert wrong == []


def examples_in(schema: dict[str, Any], root: dict[str, Any]) -> list[Any]:
    """The examples of a field itself, else those of its alternatives."""
    inside = [each for kind in kinds(schema, root) for each in kind.get("examples", ())]
    return list(schema.get("examples", inside))


def test_every_example_of_a_body_is_taken(described: Service) -> None:
    """Through the model, in strict mode: the rules between its fields hold too."""
    shown = [
        (model, example)
        for model, root in bodies(described)
        for example in root.get("examples", ())
    ]

    assert SendBody in {model for model, _ in shown}
    for model, example in shown:
        assert model.model_validate_json(json.dumps(example))


def test_an_integer_may_be_written_as_a_float_without_fraction(described: Service) -> None:
    wrong = []
    for model, root in bodies(described):
        for name, schema in root["properties"].items():
            found = list(kinds(schema, root))
            for kind in found:
                if kind.get("type") == "integer" and {"type": "number"} not in found:
                    value = float(kind.get("minimum", 1) or 1)
                    if why := refusal_of(model, name, value):
                        wrong.append(f"{model.__name__}.{name}: {value}: {why}")
                    if refusal_of(model, name, value + 0.5) is None:
                        wrong.append(f"{model.__name__}.{name}: takes {value + 0.5}")

    assert wrong == []


def test_no_number_stands_for_true_and_no_text_for_a_boolean(described: Service) -> None:
    taken = [
        f"{model.__name__}.{name}: {value!r}"
        for model, root in bodies(described)
        for name, schema in root["properties"].items()
        if [each.get("type") for each in kinds(schema, root)] in (["boolean"], ["boolean", "null"])
        for value in (1, 0, 1.0, "true", "")
        if refusal_of(model, name, value) is None
    ]

    assert taken == []


def test_every_field_has_a_type(document: dict[str, Any]) -> None:
    untyped = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, what in schema.get("properties", {}).items()
        if not {"type", "anyOf", "oneOf", "allOf", "$ref", "const", "enum"} & set(what)
    ]

    assert untyped == []


def test_no_default_is_null(document: dict[str, Any]) -> None:
    def walk(part: Any, where: str) -> Iterator[str]:
        if isinstance(part, dict):
            if "default" in part and part["default"] is None:
                yield where
            for name, inner in part.items():
                yield from walk(inner, f"{where}/{name}")
        elif isinstance(part, list):
            for number, inner in enumerate(part):
                yield from walk(inner, f"{where}/{number}")

    assert list(walk(document, "")) == []


@pytest.mark.parametrize("model", [SendBody, MailingMessage])
def test_defaults_that_are_written_out_stand_beside_a_template(model: type[BaseModel]) -> None:
    written = {"text": None, "format": "plain", "media": None, "buttons": [], "variables": None}

    body = model.model_validate({**written, "template": "welcome"})

    assert body == model.model_validate({"template": "welcome"})


@pytest.mark.parametrize("own", [{"text": "Hi"}, {"format": "html"}, {"buttons": [[]]}])
def test_contents_of_its_own_do_not_stand_beside_a_template(own: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="can't be combined with template"):
        SendBody.model_validate({"template": "welcome", **own})


def test_defaults_that_are_written_out_change_no_body(
    described: Service, document: dict[str, Any]
) -> None:
    """Clients that write out what is described as the default send the same as those that leave it out."""
    schemas = document["components"]["schemas"]
    changed, written = [], 0
    for endpoint in described.endpoints:
        if endpoint.body is None:
            continue
        body = document["paths"][endpoint.path][endpoint.method.lower()]["requestBody"]
        content = body["content"]["application/json"]
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        defaults = {
            name: field["default"]
            for name, field in schema["properties"].items()
            if "default" in field
        }
        written += len(defaults)
        for example in [content["example"], *schema.get("examples", ())]:
            plain = {name: value for name, value in example.items() if name not in defaults}
            try:
                expected = endpoint.body.model_validate(plain)
            except ValidationError:
                continue  # it is about one of those fields
            if endpoint.body.model_validate(defaults | plain) != expected:
                changed.append(f"{endpoint.name}: {example}")

    assert written > 20
    assert changed == []


def test_what_fields_are_to_each_other_is_said_in_words(described: Service) -> None:
    """JSON Schema can't say it so that people and generators understand it."""
    silent = []
    for model, schema in bodies(described):
        if not issubclass(model, RequestModel):
            continue
        after = [
            each
            for each in model.__pydantic_decorators__.model_validators.values()
            if each.info.mode == "after"
        ]
        said = schema.get("description", "")
        if len(model.described_rules()) < len(after) or any(
            rule not in said for rule in model.described_rules()
        ):
            silent.append(model.__name__)

    assert silent == []


def test_files_and_pages_have_each_of_their_media_types(document: dict[str, Any]) -> None:
    file = document["paths"]["/v1/files/{file_id}/content"]["get"]["responses"]["200"]["content"]
    page = document["paths"]["/login/{slug}/app"]["get"]["responses"]["404"]["content"]

    assert {"application/octet-stream", "image/*", "application/pdf"} <= file.keys()
    assert page.keys() == {"application/json", "text/html"}
